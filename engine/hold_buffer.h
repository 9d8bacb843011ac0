/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The buffer of a port that holds segments (hold.h), how its flows share it (vFlood, 3.3), and when
 * a flow is offline for it (vFlood, 3.2).
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
	uint32_t used_bytes;
	uint32_t policy; /* enum vcc_buffer_policy */
};

/* Online, the guest may fill its share of the buffer; offline, only the underlay's window. */
enum vcc_hold_state {
	HOLD_ACTIVE = 0,
	HOLD_NO_BUFFER,	  /* offline: the flow has filled its share of the buffer */
	HOLD_PACKET_LOSS, /* offline: the guest repairs a loss */
	HOLD_DRAINING,	  /* offline for good: the treatment has changed */
};

/* What a shell that holds segments keeps for each flow besides struct vcc_flow. */
struct vcc_hold {
	uint32_t held_end;    /* one past the last byte held, if any is */
	uint32_t held_bytes;  /* of the buffer */
	uint32_t grant_edge;  /* right edge by the underlay's window, at the last ACK */
	uint32_t peer_edge;   /* right edge by the peer's window */
	uint8_t state;	      /* enum vcc_hold_state */
	uint8_t begun;	      /* bool: the edges are valid */
	uint8_t retains;      /* bool: the shell retains what leaves (repair.h) */
	uint8_t promises;     /* bool: the shell has acknowledged in the peer's name (split.h) */
	uint32_t promised;    /* with `promises`: the highest acknowledgement shown to the guest */
	uint32_t kept_from;   /* with `retains`: all that has left from here on is retained */
	uint32_t no_buffer;   /* times that the flow went offline as the buffer was full */
	uint32_t packet_loss; /* and for a loss */
};

/* RTT below which `prioritized` favours a flow (vFlood, 3.3). */
#define SHORT_RTT_US 1000u
/* Factors of equation 1. */
#define ALPHA	    1u
#define ALPHA_SHORT 8u

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

/* The bytes of the buffer that the flow may use (equation 1; Choudhury and Hahne 1998). */
VCC_INLINE uint32_t hold_threshold_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
					 const struct vcc_buffer *b)
{
	uint32_t free_bytes = vcc_sub_floor0(b->size_bytes, b->used_bytes);
	uint64_t alpha = ALPHA;

	if (b->policy == BUFFER_NONE)
		return h->held_bytes + free_bytes;
	if (b->policy == BUFFER_PRIORITIZED && f->srtt_us8 && f->srtt_us8 >> 3 < SHORT_RTT_US)
		alpha = ALPHA_SHORT;
	uint64_t threshold_bytes = alpha * free_bytes;

	return threshold_bytes < b->size_bytes ? (uint32_t)threshold_bytes : b->size_bytes;
}

/* Takes the flow offline and online (vFlood, figure 3). */
VCC_INLINE void hold_transition(const struct vcc_flow *f, struct vcc_hold *h,
				const struct vcc_buffer *b)
{
	uint32_t threshold_bytes = hold_threshold_bytes(f, h, b);
	bool losing = f->ca_state == CA_RECOVERY || f->ca_state == CA_LOSS;
	bool lost = losing && !hold_repairs(f, h);
	bool full = h->held_bytes && h->held_bytes >= threshold_bytes;
	/* Back online at half the threshold, or the state would change with each segment. */
	bool drained = h->held_bytes <= threshold_bytes / 2;

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

/* The shell holds a segment up to `end`, in `bytes` of the buffer. */
VCC_INLINE void hold_kept(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			  uint32_t end, uint32_t bytes)
{
	h->held_end = is_held(f, h) ? seq_max(h->held_end, end) : end;
	h->held_bytes += bytes;
	b->used_bytes += bytes;
	hold_transition(f, h, b);
}

/* `bytes` of the buffer are free again. */
VCC_INLINE void hold_left(struct vcc_hold *h, struct vcc_buffer *b, uint32_t bytes)
{
	VCC_LAW(bytes <= h->held_bytes && h->held_bytes <= b->used_bytes);
	h->held_bytes -= bytes;
	b->used_bytes -= bytes;
}

#endif
