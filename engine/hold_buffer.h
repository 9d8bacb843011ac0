/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The buffer of a port that holds segments (hold.h), how its flows share it (vFlood, 3.3), and when
 * a flow is offline for it (vFlood, 3.2).
 *
 * The buffer is an account: what a flow has in it, and what it has been granted by the window that
 * the guest was shown. A grant counts as taken until the guest has used it, the data may leave at
 * once without taking room, or the flow is idle. So the flows' shares add up to the buffer, and
 * what one flow does takes nothing that another one was granted.
 */
#ifndef VCC_HOLD_BUFFER_H
#define VCC_HOLD_BUFFER_H

#include "sequence_tracking.h"

/* Policies for a port's buffer (vFlood, 3.3). */
enum vcc_buffer_policy {
	BUFFER_NONE = 0,    /* first come, first served */
	BUFFER_FAIR,	    /* a threshold for each flow (equation 1) */
	BUFFER_PRIORITIZED, /* a higher threshold for flows with a short RTT */
};

/* The buffer that a port's flows share. */
struct vcc_buffer {
	uint32_t size_bytes;
	uint32_t used_bytes;	/* by what is held and retained */
	uint32_t granted_bytes; /* to guests, which have not used it yet */
	uint32_t policy;	/* enum vcc_buffer_policy */
};

/*
 * Online, the guest may fill its share of the buffer. A flow whose share is full is offline in that
 * its window has no more room than the underlay's; those that lose or drain have no share.
 */
enum vcc_hold_state {
	HOLD_ACTIVE = 0,
	HOLD_NO_BUFFER,	  /* offline: the flow has filled its share of the buffer */
	HOLD_PACKET_LOSS, /* offline: the guest repairs a loss */
	HOLD_DRAINING,	  /* offline for good: the treatment has changed */
};

/* What a shell that holds segments keeps for each flow besides struct vcc_flow. */
struct vcc_hold {
	uint32_t held_end;	/* one past the last byte held, if any is */
	uint32_t held_bytes;	/* of the buffer */
	uint32_t granted_bytes; /* of the buffer, besides: shown to the guest and not used yet */
	uint32_t most_bytes;	/* the most that it has held and had in flight since it was idle */
	uint32_t grant_edge;	/* right edge by the underlay's window, at the last ACK */
	uint32_t resend_bytes;	/* what a reduction grants besides, to retransmissions alone */
	uint32_t peer_edge;	/* right edge by the peer's window */
	uint8_t state;		/* enum vcc_hold_state */
	uint8_t begun;		/* bool: the edges are valid */
	uint8_t retains;	/* bool: the shell retains what leaves (repair.h) */
	uint8_t promises;	/* bool: the shell has acknowledged in the peer's name (split.h) */
	uint8_t held_fin;	/* bool: a FIN is before held_end */
	uint32_t promised;    /* with `promises`: the highest acknowledgement shown to the guest */
	uint32_t kept_from;   /* with `retains`: all that has left from here on is retained */
	uint16_t charge_64;   /* bytes of the buffer for 64 of data, lately; 0: not known */
	uint32_t no_buffer;   /* times that the flow went offline as the buffer was full */
	uint32_t packet_loss; /* and for a loss */
	uint32_t sent_ms;     /* the guest last sent new data */
};

/* What a frame takes of the buffer besides its bytes, so that small frames cost more. */
#define HELD_FRAME_BYTES 96u
/* Headers of a full segment: Ethernet, IPv6, TCP with timestamps. */
#define HELD_HEADER_BYTES 86u
/* The largest charge that is learned; below some 25 bytes a segment takes more. */
#define CHARGE_64_MAX 512u
/* A flow is granted this much, or half of its share, before it has shown that it uses more. */
#define FIRST_GRANT_BYTES (128u << 10)
/* This part of a share is not granted, for segments that are smaller than expected. */
#define GRANT_SLACK_SHIFT 4
/* A flow whose guest sends nothing new for this time gives back what it was granted. */
#define GRANT_IDLE_MS 200u

VCC_INLINE bool is_held(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return h->held_bytes && seq_after(h->held_end, f->snd_nxt);
}

/* The next sequence number of new data from the guest. */
VCC_INLINE uint32_t hold_guest_nxt(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return is_held(f, h) ? h->held_end : f->snd_nxt;
}

/* Has the guest been shown an acknowledgement of bytes that the peer has not acknowledged? */
VCC_INLINE bool split_owes(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return h->promises && seq_after(h->promised, f->snd_una);
}

/* The acknowledgement to show to the guest in place of the peer's. */
VCC_INLINE uint32_t split_ack(const struct vcc_hold *h, uint32_t ack)
{
	return h->promises ? seq_max(h->promised, ack) : ack;
}

/* Does the shell retain all that is in flight? */
VCC_INLINE bool hold_covers(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return h->retains && !seq_after(h->kept_from, f->snd_una);
}

/* Does the shell repair the flow's losses, so that the guest need not see one nor retransmit? */
VCC_INLINE bool hold_repairs(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return hold_covers(f, h) && flight_bytes(f);
}

/*
 * The bytes of the buffer that the flow may take: alpha times what is free (equation 1; Choudhury
 * and Hahne 1998), solved for a flow that takes all of that, which is alpha / (1 + alpha) of what
 * the others leave.
 */
VCC_INLINE uint32_t hold_share_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				     const struct vcc_buffer *b, const struct vcc_params *p)
{
	uint64_t taken_bytes = (uint64_t)b->used_bytes + b->granted_bytes;
	uint64_t own_bytes = (uint64_t)h->held_bytes + h->granted_bytes;
	uint64_t others_bytes = taken_bytes > own_bytes ? taken_bytes - own_bytes : 0;
	uint64_t left_bytes = b->size_bytes > others_bytes ? b->size_bytes - others_bytes : 0;
	uint64_t alpha = p->buffer_alpha;

	if (b->policy == BUFFER_NONE)
		return (uint32_t)left_bytes;
	if (b->policy == BUFFER_PRIORITIZED && f->srtt_us8 &&
	    f->srtt_us8 >> 3 < p->buffer_short_rtt_us)
		alpha = p->buffer_alpha_short;
	return (uint32_t)(left_bytes * alpha / (1 + alpha));
}

/* Does the flow have more than its share, if what others were granted and have not used is free? */
VCC_INLINE bool hold_exceeds_share(const struct vcc_flow *f, const struct vcc_hold *h,
				   const struct vcc_buffer *b, const struct vcc_params *p)
{
	struct vcc_buffer used = *b;

	used.granted_bytes = h->granted_bytes;
	return h->held_bytes > hold_share_bytes(f, h, &used, p);
}

/*
 * The bytes of the buffer that may be granted to the flow beyond the `stays_bytes` that it keeps:
 * the rest of its share, but at most twice what it has made use of. Without that limit, the first
 * of many short flows would take what all of them need.
 */
VCC_INLINE uint32_t hold_grant_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				     const struct vcc_buffer *b, const struct vcc_params *p,
				     uint32_t stays_bytes)
{
	uint32_t share_bytes = hold_share_bytes(f, h, b, p);

	share_bytes -= share_bytes >> GRANT_SLACK_SHIFT;
	uint32_t first_bytes = vcc_max(share_bytes / 2, FIRST_GRANT_BYTES);
	uint32_t used_bytes = vcc_min(h->most_bytes, SEQ_WINDOW_MAX / 2);

	return vcc_sub_floor0(vcc_min(share_bytes, vcc_max(first_bytes, 2 * used_bytes)),
			      stays_bytes);
}

/* Bytes of the buffer for 64 bytes of data: as of late, or in full segments. */
VCC_INLINE uint32_t hold_charge_64(const struct vcc_flow *f, const struct vcc_hold *h)
{
	uint32_t mss_bytes = vcc_max(f->mss_bytes, 1u);

	if (h->charge_64)
		return vcc_max(h->charge_64, 64);
	return 64 + 64 * (HELD_FRAME_BYTES + HELD_HEADER_BYTES) / mss_bytes;
}

/* The data that fits into so many bytes of the buffer, and back. */
VCC_INLINE uint32_t hold_data_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				    uint32_t buffer_bytes)
{
	return (uint32_t)(64ull * buffer_bytes / hold_charge_64(f, h));
}

VCC_INLINE uint32_t hold_buffer_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				      uint32_t data_bytes)
{
	uint64_t bytes = (uint64_t)data_bytes * hold_charge_64(f, h) / 64;

	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* A segment took `bytes` of the buffer for its data. The charge rises by 1/4, falls by 1/16. */
VCC_INLINE void hold_learns_charge(struct vcc_hold *h, uint32_t data_bytes, uint32_t bytes)
{
	uint64_t charge_64 = 64ull * bytes / vcc_max(data_bytes, 1u);
	uint32_t capped_64 = charge_64 < CHARGE_64_MAX ? (uint32_t)charge_64 : CHARGE_64_MAX;

	if (!h->charge_64)
		h->charge_64 = (uint16_t)capped_64;
	else if (capped_64 > h->charge_64)
		h->charge_64 += (uint16_t)((capped_64 - h->charge_64 + 3) / 4);
	else
		h->charge_64 -= (uint16_t)((h->charge_64 - capped_64 + 15) / 16);
}

/* Takes the flow offline and online (vFlood, figure 3). */
VCC_INLINE void hold_transition(const struct vcc_flow *f, struct vcc_hold *h,
				const struct vcc_buffer *b, const struct vcc_params *p)
{
	uint32_t share_bytes = hold_share_bytes(f, h, b, p);
	bool losing = f->ca_state == CA_RECOVERY || f->ca_state == CA_LOSS;
	bool lost = losing && !hold_repairs(f, h);
	bool full = h->held_bytes && h->held_bytes >= share_bytes;
	/* Back online at half the share, or the state would change with each segment. */
	bool drained = h->held_bytes <= share_bytes / 2;

	if (h->state == HOLD_DRAINING)
		return;
	if (lost) {
		h->packet_loss += h->state != HOLD_PACKET_LOSS;
		h->state = HOLD_PACKET_LOSS;
	} else if (full) {
		h->no_buffer += h->state != HOLD_NO_BUFFER;
		h->state = HOLD_NO_BUFFER;
	} else if (h->state == HOLD_PACKET_LOSS || drained) {
		h->state = HOLD_ACTIVE;
	}
}

VCC_INLINE void hold_set_grant(struct vcc_hold *h, struct vcc_buffer *b, uint32_t granted_bytes)
{
	VCC_LAW(h->granted_bytes <= b->granted_bytes);
	b->granted_bytes += granted_bytes - h->granted_bytes;
	h->granted_bytes = granted_bytes;
}

/* New data of the guest takes `bytes` of the buffer: so much of the flow's grant is used. */
VCC_INLINE void hold_uses_grant(struct vcc_hold *h, struct vcc_buffer *b, uint32_t data_bytes,
				uint32_t bytes)
{
	hold_learns_charge(h, data_bytes, bytes);
	hold_set_grant(h, b, vcc_sub_floor0(h->granted_bytes, bytes));
}

/* The shell holds a segment, in `bytes` of the buffer. */
VCC_INLINE void hold_kept(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			  const struct vcc_params *p, const struct vcc_segment *s, uint32_t bytes)
{
	uint32_t end = segment_end(s);

	hold_uses_grant(h, b, seq_distance(hold_guest_nxt(f, h), end), bytes);
	h->held_fin = !!(s->flags & TCP_FIN);
	h->held_end = is_held(f, h) ? seq_max(h->held_end, end) : end;
	h->held_bytes += bytes;
	b->used_bytes += bytes;
	hold_transition(f, h, b, p);
}

/* `bytes` of the buffer are free again. */
VCC_INLINE void hold_left(struct vcc_hold *h, struct vcc_buffer *b, uint32_t bytes)
{
	VCC_LAW(bytes <= h->held_bytes && h->held_bytes <= b->used_bytes);
	h->held_bytes -= bytes;
	b->used_bytes -= bytes;
}

/*
 * For how long has the guest sent nothing new, with nothing held or in flight? `now_ms` is the time
 * of the last segment of either end, or later.
 */
VCC_INLINE uint32_t hold_idle_ms(const struct vcc_flow *f, const struct vcc_hold *h,
				 uint32_t now_ms)
{
	return is_held(f, h) || flight_bytes(f) ? 0 : now_ms - h->sent_ms;
}

/* The flow has ended, or is idle: it gives back what it was granted. */
VCC_INLINE void hold_gives_back(struct vcc_hold *h, struct vcc_buffer *b)
{
	hold_set_grant(h, b, 0);
	h->most_bytes = 0;
	h->charge_64 = 0;
}

#endif
