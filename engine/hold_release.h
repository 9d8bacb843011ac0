/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which segments of the guest pass a port that holds segments (hold.h), which wait, and when those
 * leave.
 */
#ifndef VCC_HOLD_RELEASE_H
#define VCC_HOLD_RELEASE_H

#include "hold_buffer.h"
#include "engine.h"
#include "pacing.h"

/*
 * The fate of a segment from the guest, by its bytes in sequence: some were released before and
 * pass as a retransmission, some are held already and are dropped, the rest is held.
 */
struct vcc_admission {
	uint32_t pass_bytes;
	uint32_t drop_bytes;
	bool whole; /* all of it passes, its FIN included; else its FIN goes with the rest */
	bool hold;  /* there is a rest, perhaps only a FIN */
	bool gap;   /* data is missing before the rest: it leaves at once, or waits out of order */
	bool probe; /* send an empty segment at snd_nxt - 1 in its place */
};

/* Right edge by the underlay's window. Between ACKs, idle time or a timeout may have reduced it. */
VCC_INLINE uint32_t hold_underlay_edge(const struct vcc_flow *f, const struct vcc_hold *h,
				       const struct vcc_params *p)
{
	uint32_t granted_segs = cap_segs(f, p, window_segs(f, p));

	if (f->dupacks)
		granted_segs += bytes_to_segs_ceil(f, sacked_bytes(f));
	return seq_min(h->grant_edge, f->snd_una + granted_segs * f->mss_bytes);
}

/*
 * Was the guest shown more than its pool has granted, as its window had room for the buffer? If the
 * shell let all of that leave, the pool would have to be charged with it, even for a guest that
 * only receives.
 */
VCC_INLINE bool is_shown_beyond_pool(const struct vcc_flow *f, const struct vcc_hold *h,
				     const struct vcc_params *p)
{
	return pool_has(f, p) && seq_after(f->right_edge, seq_max(h->grant_edge, f->snd_nxt));
}

/*
 * Does the shell hold the flow's segments? After a change of its treatment it continues to do so
 * until nothing is held, and the peer's window and the pool have reached the edge that the guest
 * was shown.
 */
VCC_INLINE bool is_holding(const struct vcc_flow *f, const struct vcc_hold *h,
			   const struct vcc_params *p)
{
	if (!h->begun || f->stage != STAGE_ESTABLISHED)
		return false;
	return (is_managed(f) && acts_by_hold(f, p)) || is_held(f, h) || split_owes(f, h) ||
	       seq_after(f->right_edge, seq_max(h->peer_edge, f->snd_nxt)) ||
	       is_shown_beyond_pool(f, h, p);
}

/* Is this a retransmission of what the shell repairs? */
VCC_INLINE bool is_repaired(const struct vcc_flow *f, const struct vcc_hold *h,
			    const struct vcc_segment *s)
{
	return segment_end(s) != s->seq && hold_repairs(f, h);
}

/* From-guest: what becomes of the segment; called before the engine sees any of it. */
VCC_INLINE struct vcc_admission hold_admit(struct vcc_flow *f, struct vcc_hold *h,
					   const struct vcc_params *p, const struct vcc_segment *s)
{
	struct vcc_admission all = { .pass_bytes = s->payload_bytes, .whole = true };
	struct vcc_admission none = { .drop_bytes = s->payload_bytes };
	const uint32_t fins = FLOW_FIN_GUEST | FLOW_FIN_PEER;
	uint32_t end = segment_end(s), guest_nxt = hold_guest_nxt(f, h);

	if (f->stage == STAGE_CLOSED && acts_by_hold(f, p) && !(s->flags & (TCP_SYN | TCP_RST))) {
		/* Nothing follows a FIN. */
		if ((f->flags & fins) == fins)
			return seq_after(end, f->snd_nxt) || is_repaired(f, h, s) ? none : all;
		/* A guest that still sends did not accept the RST. */
		f->stage = STAGE_ESTABLISHED;
	}
	/* Pure ACKs, keep-alives and what left before pass at once. */
	if (!is_holding(f, h, p) || (s->flags & (TCP_SYN | TCP_RST)) || end == s->seq)
		return all;
	/* The peer would discard it (law 14). */
	if (!seq_plausible(f->snd_una, end))
		return none;
	if (!seq_after(end, f->snd_nxt))
		return is_repaired(f, h, s) ? none : all;
	restart_after_idle(f, p, s);
	struct vcc_admission parts = {
		.pass_bytes = seq_distance(s->seq, f->snd_nxt),
		/* Nothing follows a FIN. */
		.hold = seq_after(end, guest_nxt) && !(is_held(f, h) && h->held_fin),
		/*
		 * What is held is contiguous. Behind a gap it could fill the peer's window and keep
		 * out what is missing, so the shell has another queue for it.
		 */
		.gap = seq_after(s->seq, guest_nxt),
	};

	if (seq_before(s->seq, guest_nxt))
		parts.drop_bytes =
		    seq_distance(seq_max(s->seq, f->snd_nxt), seq_min(end, guest_nxt));
	if (parts.hold)
		h->sent_ms = (uint32_t)(s->now_us / 1000);
	parts.pass_bytes = vcc_min(parts.pass_bytes, s->payload_bytes);
	parts.drop_bytes = vcc_min(parts.drop_bytes, s->payload_bytes - parts.pass_bytes);
	if (h->retains) {
		/* The shell retransmits and probes the window itself. */
		if (hold_repairs(f, h)) {
			parts.drop_bytes += parts.pass_bytes;
			parts.pass_bytes = 0;
		}
		return parts;
	}
	/*
	 * The guest retransmits what waits for the peer's window: its retransmission timer is the
	 * persist timer (RFC 9293, 3.8.6.1). The probe has no data, so none exceeds the window.
	 */
	parts.probe = !parts.pass_bytes && !parts.hold && !flight_bytes(f);
	return parts;
}

/*
 * Does a segment that does not pass say more than has been sent to the peer? Its acknowledgement
 * and window do not wait for the peer's window.
 */
VCC_INLINE bool hold_acks(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (s->flags & TCP_ACK) && seq_plausible(f->snd_una, s->seq) &&
	       (!f->settled || seq_after(s->ack, f->rcv_wup) ||
		seq_after(guests_edge(f, s), f->rcv_edge));
}

/*
 * The sequence number for a segment that passes what is held or was dropped: a pure ACK or RST
 * beyond the peer's window would be discarded (RFC 9293, 3.10.7.4). Beyond the edge that the guest
 * was shown, a RST does not belong to this connection.
 */
VCC_INLINE uint32_t hold_seq(const struct vcc_flow *f, const struct vcc_hold *h,
			     const struct vcc_segment *s)
{
	bool ends = (s->flags & TCP_RST) && !seq_after(s->seq, seq_max(h->held_end, f->right_edge));
	bool empty = segment_end(s) == s->seq && !(s->flags & TCP_RST);

	return h->begun && (ends || empty) ? seq_min(s->seq, f->snd_nxt) : s->seq;
}

/* Segments until the burst of a native sender would end (push.h). */
VCC_INLINE uint32_t burst_left_segs(const struct vcc_flow *f, const struct vcc_params *p)
{
	uint32_t burst_segs = vcc_max(cap_segs(f, p, f->cc.cwnd_segs) / 2, 1);

	return burst_segs - f->segs_since_ack % burst_segs;
}

/*
 * The bytes of the FIFO's first segment that may leave now, its FIN included. Whole segments, but
 * where the peer's window is smaller than one and nothing is in flight (RFC 9293, 3.8.6.2.1).
 */
VCC_INLINE uint32_t hold_leaves_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				      const struct vcc_params *p, const struct vcc_segment *s)
{
	uint32_t whole_bytes = segment_end(s) - s->seq;
	uint32_t unit_bytes = vcc_max(s->seg_bytes ? s->seg_bytes : s->payload_bytes, 1);
	uint32_t peer_bytes = seq_distance(s->seq, h->peer_edge);
	uint32_t leaves_bytes = peer_bytes;

	if (is_managed(f) && imposes(f, p)) {
		uint32_t underlay_edge = hold_underlay_edge(f, h, p);
		uint32_t window_bytes = seq_distance(s->seq, underlay_edge);

		/*
		 * A segment leaves where nothing is in flight. What is missing before one would
		 * pass as a retransmission.
		 */
		if (!flight_bytes(f) && !seq_after(s->seq, f->snd_nxt))
			window_bytes = vcc_max(window_bytes, unit_bytes);
		if (paces(f, p))
			window_bytes = segment_interval_us(f, p, (uint32_t)s->now_us)
					   ? 0
					   : vcc_min(window_bytes, unit_bytes);
		/* A FIN takes no room in a congestion window. */
		if (window_bytes >= s->payload_bytes && !seq_after(s->seq, underlay_edge))
			window_bytes = whole_bytes;
		leaves_bytes = vcc_min(leaves_bytes, window_bytes);
	}
	if (s->seg_bytes && p->pace_push)
		leaves_bytes = vcc_min(leaves_bytes, burst_left_segs(f, p) * unit_bytes);
	if (leaves_bytes >= whole_bytes)
		return whole_bytes;
	if (leaves_bytes >= s->payload_bytes)
		leaves_bytes = s->payload_bytes;
	else if (leaves_bytes >= unit_bytes)
		leaves_bytes -= leaves_bytes % unit_bytes;
	else if (flight_bytes(f) || leaves_bytes != peer_bytes)
		leaves_bytes = 0;
	VCC_LAW(!leaves_bytes || !seq_after(s->seq + leaves_bytes, h->peer_edge)); /* law 14 */
	return leaves_bytes;
}

#endif
