/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What leaves for the peer under `receive`: the acknowledgement, which is as high as what was
 * promised, the window and ECE; and which of the guest's own segments bring nothing new.
 */
#ifndef VCC_SNOOP_ACK_H
#define VCC_SNOOP_ACK_H

#include "receive_buffer.h"

/* The acknowledgement, window and flags of a segment that leaves for the peer. */
struct vcc_snoop_ack {
	uint32_t ack;
	uint32_t edge; /* the right edge that `window` is rounded from */
	uint16_t window;
	uint16_t flags;
};

/*
 * The window field for a right edge. It is rounded up, as in Linux (__tcp_select_window), or each
 * segment would move the edge; but not beyond the guest's own edge, unless the shell's buffer takes
 * what comes there: what the peer sent there would not be promised, nor what follows it.
 */
VCC_INLINE uint16_t snoop_field(const struct vcc_flow *f, const struct vcc_snoop *sn, uint32_t ack,
				uint32_t edge)
{
	uint32_t units = units_ceil(seq_distance(ack, edge), f->wscale_guest);

	if (units && !seq_after(edge, sn->guest_edge) &&
	    seq_after(ack + (units << f->wscale_guest), sn->guest_edge))
		units--;
	return (uint16_t)vcc_min(units, UINT16_MAX);
}

/* From-guest: what a segment that leaves says. */
VCC_INLINE struct vcc_snoop_ack
snoop_ack_to_send(const struct vcc_flow *f, const struct vcc_snoop *sn, const struct vcc_params *p,
		  const struct vcc_room *room, const struct vcc_segment *s)
{
	uint32_t own_edge = guests_edge(f, s);
	struct vcc_snoop_ack answer = {
		.ack = s->ack, .edge = own_edge, .window = s->window, .flags = s->flags
	};
	bool due = is_promise_due(sn);

	if (!sn->begun || !(s->flags & TCP_ACK) || (s->flags & (TCP_SYN | TCP_RST)) ||
	    is_inconsistent(f, sn))
		return answer;
	/* Reordered between guest and port: the peer ignores its window, too. */
	if (!due && (!snoops(f, sn, p) || s->ack != sn->guest_ack))
		return answer;
	answer.ack = sn->ring_nxt;
	uint32_t edge = receive_edge(f, sn, p, room, answer.ack);

	answer.edge = edge;
	if (answer.ack != s->ack || edge != own_edge)
		answer.window = snoop_field(f, sn, answer.ack, edge);
	/*
	 * Law 3, toward the peer: shut if the guest's is, but for less than a unit, or while the
	 * shell's buffer is full.
	 */
	VCC_LAW(answer.window || has_stored(sn) ||
		!seq_after(sn->guest_edge, answer.ack + (1u << f->wscale_guest) - 1));
	/* Classic ECN of the guest's own. */
	if (due &&
	    (f->flags & (FLOW_ECN_GUEST | FLOW_ECN_FABRIC)) == (FLOW_ECN_GUEST | FLOW_ECN_FABRIC)) {
		answer.flags &= (uint16_t)~TCP_ECE;
		if (sn->latched)
			answer.flags |= TCP_ECE;
	}
	return answer;
}

/* The acknowledgement is sent to the peer. */
VCC_INLINE void snoop_ack_sent(const struct vcc_flow *f, struct vcc_snoop *sn,
			       const struct vcc_snoop_ack *answer)
{
	if (!sn->begun || !(answer->flags & TCP_ACK) || (answer->flags & (TCP_SYN | TCP_RST)) ||
	    is_inconsistent(f, sn))
		return;
	/* The peer ignores it. */
	if (seq_before(answer->ack, f->rcv_wup) || !seq_plausible(sn->ring_nxt, answer->ack))
		return;
	/* Law 16: nothing is acknowledged that neither the guest has acknowledged nor its ring has.
	 */
	VCC_LAW(!seq_after(answer->ack, sn->ring_nxt));
	sn->due_edge = snoop_next_due_edge(f, sn, answer->edge);
	sn->told_edge = answer->edge;
}

/*
 * From-guest, after snoop_guest_acked(): does the segment bring nothing new to the peer? A repeated
 * acknowledgement at the edge of what was promised is a duplicate ACK, or the answer to a
 * keep-alive.
 */
VCC_INLINE bool snoop_absorbs(const struct vcc_flow *f, const struct vcc_snoop *sn,
			      const struct vcc_params *p, const struct vcc_room *room,
			      const struct vcc_segment *s)
{
	const uint16_t news = TCP_SYN | TCP_FIN | TCP_RST | TCP_URG | TCP_CWR;
	bool acked = f->settled && !seq_after(sn->ring_nxt, f->rcv_wup);

	if (!sn->begun || sn->barred || !(s->flags & TCP_ACK) || (s->flags & news) ||
	    s->payload_bytes || (s->options & OPT_SACK) || !acked)
		return false;
	if (!snoops(f, sn, p) && !is_promise_due(sn))
		return false;
	/* A keep-alive is answered. */
	if (seq_before(s->seq, f->snd_nxt) || seq_after(s->ack, f->rcv_wup))
		return false;
	if (s->ack == f->rcv_wup && sn->repeats)
		return false;
	if (buffers(f, sn, p))
		return !receive_updates(f, sn, p, room);
	struct vcc_snoop_ack answer = snoop_ack_to_send(f, sn, p, room, s);

	/* The guest may round its window down (RFC 7323, 2.4). */
	return answer.window <= snoop_field(f, sn, answer.ack, sn->told_edge) &&
	       seq_distance(answer.edge, sn->told_edge) <= 1u << f->wscale_guest;
}

/*
 * Has the peer used up the window that it was offered, so that it waits for the guest to make room?
 * `f` as before the segment that makes some.
 */
VCC_INLINE bool has_no_room(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	return seq_after(f->rcv_nxt + sn->seg_bytes, f->rcv_edge);
}

/*
 * Does the peer wait for the guest, which has not acknowledged what was promised in its name? It
 * has used up the window, and each further ACK is the port's.
 */
VCC_INLINE bool waits_for_room(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	return f->asked == ASKED_ANSWER && is_promise_due(sn) && has_no_room(f, sn);
}

/*
 * Before the engine sees a segment that leaves: an acknowledgement beyond the guest's own is no
 * answer of the guest's to what it was asked (delay.h). Its response is, and so is the room that
 * the peer has waited for. Returns what it is still asked, for snoop_leave_end().
 */
VCC_INLINE uint8_t snoop_leave_begin(struct vcc_flow *f, const struct vcc_snoop *sn,
				     const struct vcc_segment *s)
{
	bool asks_ack = f->asked == ASKED_ANSWER || f->asked == ASKED_ACK;

	if (!asks_ack || !sn->begun || !(s->flags & TCP_ACK))
		return ASKED_NOTHING;
	bool waits = has_no_room(f, sn);

	if (waits && opens_window(f, s)) {
		f->asked = ASKED_ACK;
		return ASKED_NOTHING;
	}
	/* An ACK of the guest that cannot open the window, because the ring is still full. */
	bool may_open = waits && seq_after(sn->guest_edge, f->rcv_edge + sn->seg_bytes);

	if (!seq_after(s->ack, sn->guest_ack) && !may_open)
		return ASKED_NOTHING;
	f->asked = ASKED_NOTHING;
	return ASKED_ANSWER;
}

VCC_INLINE void snoop_leave_end(struct vcc_flow *f, uint8_t asked)
{
	if (asked)
		f->asked = asked;
}

/* From-guest: a segment that is absorbed. It ends the question as one that leaves does. */
VCC_INLINE void snoop_absorbed(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (f->asked == ASKED_ANSWER && !seq_before(s->ack, f->asked_seq))
		f->asked = ASKED_NOTHING;
}

#endif
