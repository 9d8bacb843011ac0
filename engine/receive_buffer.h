/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shell's receive buffer, the mirror of `split`: data that has no room in the guest's ring, or
 * lies beyond the guest's window, is acknowledged in the guest's name once the shell has it. The
 * peer is offered the room of the buffer, and the guest is given what is stored as its own window
 * and its ring admit.
 *
 * The ring gets data in sequence only. The shell stores what comes behind a hole, or behind data
 * that is stored, and keeps all of it until the guest has acknowledged it (law 16).
 */
#ifndef VCC_RECEIVE_BUFFER_H
#define VCC_RECEIVE_BUFFER_H

#include "receive_ring.h"

/* The most of one connection that a shell stores. */
#define RECEIVE_BUFFER_MAX_BYTES (4u << 20)

/* What becomes of a segment to the guest that the engine has let pass. */
enum vcc_way {
	WAY_PASS = 0, /* into the ring */
	WAY_MOVED,    /* empty: into the ring, with the guest's next sequence number */
	WAY_STORE,    /* snoop_stored() says what is due */
	WAY_ANSWER,   /* it brings no data that is taken; an acknowledgement is due */
	WAY_FIN,      /* a FIN alone: into the ring behind all data */
	WAY_DROP,
};

/* Does the shell store data of the flow? */
VCC_INLINE bool buffers(const struct vcc_flow *f, const struct vcc_snoop *sn,
			const struct vcc_params *p)
{
	return p->receive >= RECEIVE_BUFFER && snoops(f, sn, p);
}

/*
 * The right edge to offer the peer with `ack`. While the shell stores data of the flow, an edge
 * that was offered is not withdrawn (RFC 9293, 3.8.6), and it moves by no less than a window update
 * does. What the guest has not acknowledged is the connection's part of the buffer, so one that the
 * guest does not read leaves as much as it has to the others (hold_buffer.h).
 */
VCC_INLINE uint32_t receive_edge(const struct vcc_flow *f, const struct vcc_snoop *sn,
				 const struct vcc_params *p, const struct vcc_room *room,
				 uint32_t ack)
{
	if (!buffers(f, sn, p))
		return snoop_edge(f, sn, p, room, ack);
	uint32_t ring_edge = has_stored(sn) ? ack : snoop_edge(f, sn, p, room, ack);
	uint32_t share_bytes = vcc_min(room->buffer_bytes, RECEIVE_BUFFER_MAX_BYTES);
	uint32_t most_edge = ack + ((uint32_t)UINT16_MAX << f->wscale_guest);
	uint32_t edge = seq_min(sn->guest_ack + share_bytes, most_edge);

	if (!seq_after(edge, sn->told_edge + snoop_update_bytes(f, sn)))
		edge = sn->told_edge;
	return seq_max(seq_max(edge, ring_edge), sn->told_edge);
}

/*
 * Is a window update due to the peer: does it double what it may send (Linux as receiver:
 * __tcp_select_window, tcp_cleanup_rbuf)?
 */
VCC_INLINE bool receive_updates(const struct vcc_flow *f, const struct vcc_snoop *sn,
				const struct vcc_params *p, const struct vcc_room *room)
{
	uint32_t left_bytes = seq_distance(sn->ring_nxt, sn->told_edge);
	uint32_t edge = receive_edge(f, sn, p, room, sn->ring_nxt);

	return seq_distance(sn->ring_nxt, edge) >=
	       2 * vcc_min(left_bytes, SEQ_WINDOW_MAX / 2) + snoop_update_bytes(f, sn);
}

/* May the peer be waiting for a window? */
VCC_INLINE bool is_shut(const struct vcc_flow *f, const struct vcc_snoop *sn,
			const struct vcc_params *p)
{
	return buffers(f, sn, p) &&
	       seq_distance(sn->ring_nxt, sn->told_edge) < 2u * vcc_max(sn->seg_bytes, 1);
}

/* Has the ring buffers for a segment besides those that are kept for others? */
VCC_INLINE bool ring_takes(const struct vcc_room *room, const struct vcc_segment *s)
{
	uint32_t seg_bytes = s->seg_bytes ? s->seg_bytes : vcc_max(s->payload_bytes, 1);
	uint32_t segs = (s->payload_bytes + seg_bytes - 1) / seg_bytes;

	return segs <= snoop_open_segs(room);
}

/* To-guest: the way of a segment that the guest accepts, with the arguments of snoop_placed(). */
VCC_INLINE uint8_t receive_way(const struct vcc_flow *f, const struct vcc_snoop *sn,
			       const struct vcc_params *p, const struct vcc_room *room,
			       const struct vcc_segment *s, uint32_t sent, bool stamped,
			       uint32_t tsval)
{
	uint32_t end = s->seq + s->payload_bytes, given = given_nxt(sn);
	bool waits = has_stored(sn), fin = s->flags & TCP_FIN;
	uint32_t edge = offered_to(f, sn, p);

	if (!sn->begun || is_inconsistent(f, sn) || (s->flags & (TCP_SYN | TCP_RST)) ||
	    !(waits || buffers(f, sn, p)))
		return WAY_PASS;
	if (!s->payload_bytes && !fin) {
		if (waits && s->seq + 1 == sn->ring_nxt)
			return WAY_ANSWER;
		return seq_after(s->seq, given) ? WAY_MOVED : WAY_PASS;
	}
	/* Behind the FIN lies data that was promised: it is not the peer's last word. */
	if (!seq_after(end, given))
		return waits && fin ? WAY_DROP : WAY_PASS;
	if (!f->settled || !buffers(f, sn, p) ||
	    !snoop_acceptable(f, sn, s, edge, sent, stamped, tsval))
		return waits ? WAY_DROP : WAY_PASS;
	if (!s->payload_bytes)
		return waits || seq_after(s->seq, given) ? WAY_FIN : WAY_PASS;
	if (!seq_after(end, sn->ring_nxt))
		return WAY_ANSWER;
	if (seq_after(end, edge))
		return waits ? WAY_ANSWER : WAY_PASS;
	if (waits || seq_after(s->seq, given) || seq_after(end, sn->guest_edge) ||
	    !ring_takes(room, s))
		return WAY_STORE;
	return WAY_PASS;
}

/* The shell has stored a segment. */
VCC_INLINE struct vcc_placed snoop_stored(const struct vcc_flow *f, struct vcc_snoop *sn,
					  const struct vcc_params *p, const struct vcc_segment *s,
					  uint32_t sent, bool stamped, uint32_t tsval)
{
	return snoop_take(f, sn, p, s, sent, stamped, tsval, true);
}

/* The shell has all data up to `nxt`: what was behind a hole is promised as well. */
VCC_INLINE bool snoop_covered(const struct vcc_flow *f, struct vcc_snoop *sn,
			      const struct vcc_params *p, uint32_t nxt)
{
	uint32_t given = given_nxt(sn);

	if (!f->settled || !buffers(f, sn, p) || !seq_after(nxt, sn->ring_nxt) ||
	    !seq_plausible(sn->ring_nxt, nxt) || seq_after(nxt, offered_to(f, sn, p)) ||
	    (sn->fin && seq_after(nxt, sn->fin_seq)))
		return false;
	snoop_advance(sn, nxt);
	sn->stored_bytes = seq_distance(given, sn->ring_nxt);
	return true;
}

/*
 * How much of the next stored segment the guest's window admits, which ends at `end` and consists
 * of segments of `seg_bytes`: whole segments, unless nothing is on its way to the guest (RFC 9293,
 * 3.8.6.2.1).
 */
VCC_INLINE uint32_t receive_gives_bytes(const struct vcc_snoop *sn, uint32_t end,
					uint32_t seg_bytes)
{
	uint32_t given = given_nxt(sn);
	uint32_t whole_bytes = seq_distance(given, seq_min(end, sn->ring_nxt));
	uint32_t window_bytes = seq_distance(given, sn->guest_edge);

	if (whole_bytes <= window_bytes)
		return whole_bytes;
	uint32_t segs_bytes = window_bytes - window_bytes % vcc_max(seg_bytes, 1);

	return segs_bytes || given != sn->guest_ack ? segs_bytes : window_bytes;
}

/* The guest has been given stored data up to `end`. */
VCC_INLINE void receive_gave(struct vcc_snoop *sn, uint32_t end)
{
	VCC_LAW(!seq_after(end, sn->ring_nxt) && !seq_after(end, sn->guest_edge));
	snoop_given(sn, given_nxt(sn), end);
}

/*
 * Is the guest to be asked for its window (RFC 9293, 3.8.6.1)? It has acknowledged all that it was
 * given, and more waits.
 */
VCC_INLINE bool receive_probes(const struct vcc_snoop *sn)
{
	return sn->begun && has_stored(sn) && given_nxt(sn) == sn->guest_ack &&
	       !seq_after(sn->guest_edge, sn->guest_ack);
}

#endif
