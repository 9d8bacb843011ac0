/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guest's receive ring, which the connections of a port share under `receive`: how large a
 * window the peer of one is offered, and when an acknowledgement waits for room.
 *
 * A peer that has been offered a window need not use it, so buffers are set aside for what it may
 * have sent: twice what was acknowledged last (slow start, RFC 5681, 3.1; RFC 3465), within its
 * window.
 */
#ifndef VCC_RECEIVE_RING_H
#define VCC_RECEIVE_RING_H

#include "snoop.h"

/* What a flow finds of the ring. */
struct vcc_room {
	uint32_t free_segs;    /* buffers without a frame */
	uint32_t others_segs;  /* set aside for other flows */
	uint32_t flows;	       /* that share the ring, this one among them */
	uint32_t buffer_bytes; /* the flow's part of what is free of the shell's receive buffer */
};

/* The buffers that matter to a flow. */
struct vcc_needs {
	uint32_t due_segs;	 /* to set aside for it */
	uint32_t opens_at_segs;	 /* besides these: an acknowledgement, or a window update, is due */
	uint32_t widens_at_segs; /* of its share: its peer is offered twice the window */
};

/* Buffers of the ring for what the peer's window does not count: empty and short segments. */
#define SNOOP_RESERVED_SEGS 8u

/* What a peer sends at once that has been silent: an initial window (RFC 6928). */
#define SNOOP_BURST_SEGS 10u

/* No number of buffers makes an answer due. */
#define SNOOP_NEVER_SEGS 0xffffffffu

VCC_INLINE uint32_t segs_between(const struct vcc_snoop *sn, uint32_t from, uint32_t to)
{
	uint32_t seg_bytes = vcc_max(sn->seg_bytes, 1);

	if (!seq_after(to, from))
		return 0;
	return (seq_distance(from, to) + seg_bytes - 1) / seg_bytes;
}

/* Buffers to set aside for what the peer may have sent and is not in the ring. */
VCC_INLINE uint32_t snoop_due_segs(const struct vcc_snoop *sn)
{
	return segs_between(sn, sn->ring_nxt, sn->due_edge);
}

/*
 * Has the peer sent all that it has for now? Within a stream, segments are full but for options.
 */
VCC_INLINE bool ends_message(const struct vcc_snoop *sn, const struct vcc_segment *s)
{
	uint32_t seg_bytes = s->seg_bytes ? s->seg_bytes : sn->seg_bytes;
	uint32_t last_bytes = s->payload_bytes;

	if (last_bytes > seg_bytes && seg_bytes)
		last_bytes %= seg_bytes;
	return (s->flags & TCP_FIN) ||
	       ((s->flags & TCP_PSH) && last_bytes && last_bytes + TCP_OPTIONS_BYTES < seg_bytes);
}

/* The peer has been silent, and sends again. */
VCC_INLINE void snoop_resumes(struct vcc_snoop *sn)
{
	sn->silent = false;
	sn->due_edge = seq_min(sn->ring_nxt + SNOOP_BURST_SEGS * sn->seg_bytes, sn->told_edge);
}

/* The peer waits for an acknowledgement, and has sent what it may until then. */
VCC_INLINE void snoop_has_sent_all(struct vcc_snoop *sn)
{
	sn->due_edge = sn->ring_nxt;
}

/* The peer has sent nothing for a while, though it could, or has ended a message. */
VCC_INLINE void snoop_peer_silent(struct vcc_snoop *sn)
{
	sn->silent = true;
	snoop_has_sent_all(sn);
}

/* May its window be what holds the peer back? */
VCC_INLINE bool is_held_back(const struct vcc_snoop *sn)
{
	return seq_after(sn->due_edge + sn->seg_bytes, sn->told_edge);
}

/* What the peer may have sent once it has received all promises and `edge`. */
VCC_INLINE uint32_t snoop_next_due_edge(const struct vcc_flow *f, const struct vcc_snoop *sn,
					uint32_t edge)
{
	uint32_t acked_bytes = 0;

	if (is_held_back(sn))
		return edge;
	if (sn->silent)
		return sn->due_edge;
	if (seq_after(sn->ring_nxt, f->rcv_wup))
		acked_bytes = seq_distance(f->rcv_wup, sn->ring_nxt);
	return seq_min(seq_max(sn->due_edge, sn->ring_nxt) + 2 * acked_bytes, edge);
}

/* The buffers that are not set aside for other flows. */
VCC_INLINE uint32_t snoop_open_segs(const struct vcc_room *room)
{
	return vcc_sub_floor0(room->free_segs, SNOOP_RESERVED_SEGS + room->others_segs);
}

/* The payload that there is room for: an equal share, and what others leave. */
VCC_INLINE uint32_t snoop_room_bytes(const struct vcc_snoop *sn, const struct vcc_room *room)
{
	uint32_t share_segs =
	    vcc_sub_floor0(room->free_segs, SNOOP_RESERVED_SEGS) / vcc_max(room->flows, 1u);
	uint64_t bytes = (uint64_t)vcc_min(share_segs, snoop_open_segs(room)) * sn->seg_bytes;

	return bytes < SEQ_WINDOW_MAX ? (uint32_t)bytes : SEQ_WINDOW_MAX;
}

/*
 * How far a window update moves the edge at least, as of a receiver that avoids the silly window
 * syndrome (RFC 9293, 3.8.6.2.2): two segments, or half of the guest's window.
 */
VCC_INLINE uint32_t snoop_update_bytes(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	uint32_t half_bytes = seq_distance(sn->ring_nxt, sn->guest_edge) / 2;

	return vcc_max(vcc_min(2u * sn->seg_bytes, half_bytes), 1u << f->wscale_guest);
}

/*
 * The right edge to offer the peer with `ack`: the guest's own, and no further than there is room.
 * The edge that was offered last stays, unless the guest itself has moved it back.
 */
VCC_INLINE uint32_t snoop_edge(const struct vcc_flow *f, const struct vcc_snoop *sn,
			       const struct vcc_params *p, const struct vcc_room *room,
			       uint32_t ack)
{
	if (!snoops(f, sn, p))
		return sn->guest_edge;
	/* The guest has not closed its window, so neither does the room (RFC 9293, 3.8.6). */
	uint32_t room_edge = ack + vcc_max(snoop_room_bytes(sn, room), sn->seg_bytes);

	/*
	 * With any number of flows at the ring, buffers that none needs are given out in a few
	 * steps.
	 */
	if (is_held_back(sn)) {
		uint32_t update_edge = sn->told_edge + snoop_update_bytes(f, sn);
		uint32_t opens_segs = segs_between(sn, ack, update_edge);
		uint32_t open_segs = snoop_open_segs(room);

		if (opens_segs <= open_segs) {
			uint32_t part_segs = (open_segs - opens_segs) / vcc_max(room->flows, 1u);
			uint32_t part_bytes =
			    vcc_min(part_segs * sn->seg_bytes, SEQ_WINDOW_MAX / 2);

			room_edge = seq_max(room_edge, update_edge + part_bytes);
		}
	}
	return seq_min(sn->guest_edge, seq_max(room_edge, sn->told_edge));
}

/* Is there an acknowledgement that the peer has not been sent? */
VCC_INLINE bool is_answer_due(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	return is_promise_due(sn) && seq_after(sn->ring_nxt, f->rcv_wup);
}

/*
 * The buffers that an acknowledgement of all that was promised needs, at least one: without, its
 * window could only be shut.
 */
VCC_INLINE uint32_t snoop_needs_segs(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	uint32_t edge = snoop_next_due_edge(f, sn, sn->told_edge);
	uint32_t segs = segs_between(sn, sn->ring_nxt, edge);

	/* The window was offered for segments of the MSS, of which options take a part. */
	return vcc_max(vcc_sub_floor0(segs, segs / 32 + SNOOP_RESERVED_SEGS / 2), 1u);
}

/* Has the ring room for what an acknowledgement lets the peer send? Without, it waits. */
VCC_INLINE bool snoop_has_room(const struct vcc_flow *f, const struct vcc_snoop *sn,
			       const struct vcc_room *room)
{
	return snoop_needs_segs(f, sn) <= snoop_open_segs(room);
}

/* The buffers for a window that is larger by so much; never, if the guest's own is not. */
VCC_INLINE uint32_t snoop_grows_at_segs(const struct vcc_snoop *sn, uint32_t more_bytes)
{
	if (seq_distance(sn->told_edge, sn->guest_edge) < more_bytes)
		return SNOOP_NEVER_SEGS;
	return segs_between(sn, sn->ring_nxt, sn->told_edge + more_bytes);
}

/*
 * The number of buffers, besides those set aside for it, from which on a peer that is held back is
 * offered a larger window.
 */
VCC_INLINE uint32_t snoop_opens_at_segs(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	uint32_t segs = snoop_grows_at_segs(sn, snoop_update_bytes(f, sn));

	return segs == SNOOP_NEVER_SEGS ? segs : vcc_sub_floor0(segs, snoop_due_segs(sn));
}

/*
 * The flow's share of the ring from which on its peer, which is not held back, is offered a window
 * twice as large. So it does not begin with one that is small because the ring was full.
 */
VCC_INLINE uint32_t snoop_widens_at_segs(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	uint32_t told_bytes = seq_distance(sn->ring_nxt, sn->told_edge);

	return snoop_grows_at_segs(sn, vcc_max(told_bytes, snoop_update_bytes(f, sn)));
}

/* After each change of the flow, of which an acknowledgement `waits` for room or does not. */
VCC_INLINE struct vcc_needs snoop_needs(const struct vcc_flow *f, const struct vcc_snoop *sn,
					const struct vcc_params *p, bool waits)
{
	/* What the ring lacks room for, the shell's buffer takes. */
	bool offers_more = snoops(f, sn, p) && p->receive == RECEIVE_RING;
	struct vcc_needs needs = {
		.due_segs = offers_more ? snoop_due_segs(sn) : 0,
		.opens_at_segs = SNOOP_NEVER_SEGS,
		.widens_at_segs = SNOOP_NEVER_SEGS,
	};

	if (waits)
		needs.opens_at_segs = vcc_sub_floor0(snoop_needs_segs(f, sn), snoop_due_segs(sn));
	else if (offers_more && is_held_back(sn))
		needs.opens_at_segs = snoop_opens_at_segs(f, sn);
	else if (offers_more)
		needs.widens_at_segs = snoop_widens_at_segs(f, sn);
	return needs;
}

#endif
