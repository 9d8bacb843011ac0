/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `snoop` (vSnoop; vFlood, section 6): the shell acknowledges in-order data in the guest's name
 * once the guest's receive ring has it, so that the peer need not wait until the guest's vCPU runs.
 *
 * Such an acknowledgement is a promise (law 16). It is given only for what the guest will accept:
 * data that is complete up to it in memory that outlives the shell, within the window that the
 * guest itself last offered, and acceptable (RFC 9293, 3.10.7.4; RFC 5961; RFC 7323, 5). The shell
 * keeps a copy until the guest has acknowledged it.
 *
 * All that leaves for the peer acknowledges as much as was promised. What the guest says later and
 * the peer knows already is absorbed.
 */
#ifndef VCC_SNOOP_H
#define VCC_SNOOP_H

#include "engine.h"

/* What a shell that snoops keeps for each flow beside struct vcc_flow. */
struct vcc_snoop {
	uint32_t ring_nxt;    /* the guest's ring has all data before it */
	uint32_t guest_ack;   /* the guest's own last acknowledgement */
	uint32_t guest_edge;  /* ack + window of that acknowledgement */
	uint32_t peer_ack;    /* the highest acknowledgement of the guest\'s data in its ring */
	uint32_t told_edge;   /* ack + window that the peer was told last */
	uint32_t sacked_from; /* what the guest has reported behind a hole, if after ring_nxt */
	uint32_t sacked_end;
	uint32_t ts_recent; /* TS.Recent as the guest will have it (RFC 7323, 4.3) */
	uint32_t syn_tsval; /* TSval of the peer's last SYN */
	uint32_t irs_nxt;   /* the first acknowledgement: irs + 1, or after data on the SYN */
	uint32_t fin_seq;   /* of the peer's FIN, if one is in the ring */
	uint16_t seg_bytes; /* the guest's MSS, or a larger segment */
	uint8_t opening;    /* bool: the guest's SYN has passed */
	uint8_t begun;	    /* bool: the guest has acknowledged the peer's SYN */
	uint8_t barred;	    /* bool: never promise */
	uint8_t latched;    /* bool: the guest would set ECE (RFC 3168, 6.1.3) */
	uint8_t repeats;    /* bool: the guest's last segment repeated its acknowledgement */
	uint8_t fin;	    /* bool: fin_seq is valid */
};

/* Room for what arrives: free in the guest's ring and in the shell's buffer behind it. */
struct vcc_room {
	uint32_t ring_segs;
	uint32_t backlog_bytes;
};

/* When the shell answers a segment in the guest's name. */
enum vcc_answer {
	ANSWER_NOTHING = 0,
	ANSWER_LATER, /* with a delayed ACK (RFC 5681, 4.2) */
	ANSWER_NOW,
};

/* What the shell does about a segment that is in the guest's ring now. */
struct vcc_placed {
	uint8_t answer; /* enum vcc_answer */
	uint8_t keep;	/* bool: keep a copy until the guest has acknowledged it */
};

/* The acknowledgement, window and flags of a segment that leaves for the peer. */
struct vcc_said {
	uint32_t ack;
	uint32_t edge; /* the right edge that `window` is rounded up from */
	uint16_t window;
	uint16_t flags;
};

/* Buffers of the ring for what the peer's window does not count: empty and short segments. */
#define SNOOP_RESERVED_SEGS 8u

/* The MSS of a guest that does not announce one (RFC 9293, 3.7.1). */
#define SNOOP_SEG_BYTES 536u

/* Has data been acknowledged that the guest has not acknowledged itself? */
VCC_INLINE bool is_promise_due(const struct vcc_snoop *sn)
{
	return sn->begun && seq_after(sn->ring_nxt, sn->guest_ack);
}

/*
 * May the flow's data be promised? After its own FIN a guest may answer data with RST (RFC 9293,
 * 3.10.7.1). AccECN's counters (RFC 9768) are the guest's own.
 */
VCC_INLINE bool snoops(const struct vcc_flow *f, const struct vcc_snoop *sn,
		       const struct vcc_params *p)
{
	const uint32_t never = FLOW_FIN_GUEST | FLOW_ACCECN_GUEST | FLOW_RELEASED;

	return p->snoop && mode_changes(p) && sn->begun && !sn->barred &&
	       f->stage == STAGE_ESTABLISHED && !(f->flags & never);
}

/* Has the guest reported data behind a hole? */
VCC_INLINE bool has_hole(const struct vcc_snoop *sn)
{
	return seq_after(sn->sacked_end, sn->ring_nxt);
}

/*
 * A connection whose acknowledgements cannot be made: signed (RFC 2385, RFC 5925), MPTCP, whose
 * data ACKs are options (RFC 8684, 3.3.2), or of a guest that sends ECT on SYNs: its DCTCP echoes
 * each mark by itself (RFC 8257, 3.2).
 */
VCC_INLINE bool bars_snoop(const struct vcc_segment *s, bool from_guest, bool stripped)
{
	bool mptcp = (s->options & OPT_MPTCP) && !stripped;

	return (s->options & OPT_SIGNED) || mptcp ||
	       (from_guest && (s->flags & TCP_SYN) && s->ip_ecn != IP_ECN_NOT_ECT);
}

/* To-guest: a SYN or SYN-ACK. `tsval` is 0 without timestamps. */
VCC_INLINE void snoop_peer_syn(struct vcc_snoop *sn, const struct vcc_segment *s, uint32_t tsval,
			       bool stripped)
{
	if (bars_snoop(s, false, stripped))
		sn->barred = true;
	sn->syn_tsval = tsval;
}

/* From-guest: its SYN or SYN-ACK, or the first ACK of its active open. */
VCC_INLINE void snoop_begin(struct vcc_snoop *sn, const struct vcc_segment *s, uint32_t edge)
{
	uint16_t seg_bytes = sn->seg_bytes;

	if (s->flags & TCP_SYN)
		seg_bytes = (s->options & OPT_MSS) ? s->mss : SNOOP_SEG_BYTES;
	*sn = (struct vcc_snoop){
		.ring_nxt = s->ack,
		.guest_ack = s->ack,
		.guest_edge = edge,
		.peer_ack = s->seq + !!(s->flags & TCP_SYN),
		/* The window of a SYN-ACK is not changed. */
		.told_edge = (s->flags & TCP_SYN) ? edge : s->ack,
		.sacked_end = s->ack,
		.ts_recent = sn->syn_tsval,
		.syn_tsval = sn->syn_tsval,
		.irs_nxt = s->ack,
		.seg_bytes = seg_bytes,
		.opening = true,
		.begun = !!(s->flags & TCP_ACK),
		.barred = sn->barred,
	};
}

/*
 * All data before `nxt` is in the ring or acknowledged. What the guest has reported behind it is in
 * its memory, so it is complete up to there. Data that is only in the ring behind a hole is not
 * promised: some guests keep no more than a few such ranges. A guest may discard what it has
 * reported (RFC 2018, 8), so only what the shell has a copy of counts.
 */
VCC_INLINE void snoop_advance(struct vcc_snoop *sn, uint32_t nxt)
{
	sn->ring_nxt = nxt;
	if (has_hole(sn) && !seq_after(sn->sacked_from, nxt))
		sn->ring_nxt = sn->sacked_end;
	if (!has_hole(sn))
		sn->sacked_end = sn->ring_nxt;
}

/*
 * From-guest: a SACK block (RFC 2018), as far as the shell has copies of it. The lowest one above
 * the hole counts.
 */
VCC_INLINE void snoop_sacked(struct vcc_snoop *sn, uint32_t from, uint32_t end)
{
	if (!sn->begun || !seq_after(from, sn->ring_nxt) || !seq_after(end, from) ||
	    seq_after(end, sn->guest_edge))
		return;
	if (!has_hole(sn) || seq_before(end, sn->sacked_from)) {
		sn->sacked_from = from;
		sn->sacked_end = end;
	} else if (!seq_after(from, sn->sacked_end)) {
		sn->sacked_from = seq_min(sn->sacked_from, from);
		sn->sacked_end = seq_max(sn->sacked_end, end);
	}
}

/*
 * From-guest: what the guest says itself, before the engine sees it. False if a new connection
 * begins, of which nothing is promised yet.
 */
VCC_INLINE bool snoop_heard(const struct vcc_flow *f, struct vcc_snoop *sn,
			    const struct vcc_segment *s)
{
	if (s->flags & TCP_SYN) {
		bool again =
		    sn->begun && (s->flags & TCP_ACK) && s->ack == sn->irs_nxt && s->seq == f->iss;

		/* The last ACK of the handshake lies in the ring, or found no room in the guest. */
		if (again)
			return true;
		if (!(s->flags & TCP_ACK))
			sn->barred = false;
		sn->barred |= bars_snoop(s, true, false);
		snoop_begin(sn, s, s->ack + s->window);
		return false;
	}
	if (!(s->flags & TCP_ACK) || (s->flags & TCP_RST))
		return true;
	uint32_t edge = guests_edge(f, s);

	/* TS.Recent is unknown without the SYN. */
	if (!sn->opening)
		return true;
	sn->barred |= bars_snoop(s, true, false);
	if (!sn->begun) {
		snoop_begin(sn, s, edge);
		return false;
	}
	sn->repeats = s->ack == sn->guest_ack;
	if (seq_before(s->ack, sn->guest_ack) || !seq_plausible(sn->ring_nxt, s->ack))
		return true;
	sn->guest_ack = s->ack;
	sn->guest_edge = edge;
	snoop_advance(sn, seq_max(sn->ring_nxt, s->ack));
	/* Its latch may differ from ours only while it has not read all of the ring. */
	if (!is_promise_due(sn))
		sn->latched = !!(s->flags & TCP_ECE);
	return true;
}

/* The payload that there is room for. */
VCC_INLINE uint32_t snoop_room_bytes(const struct vcc_snoop *sn, const struct vcc_room *room)
{
	uint64_t segs = vcc_sub_floor0(room->ring_segs, SNOOP_RESERVED_SEGS);
	uint64_t bytes = segs * sn->seg_bytes + room->backlog_bytes;

	return bytes < SEQ_WINDOW_MAX ? (uint32_t)bytes : SEQ_WINDOW_MAX;
}

/*
 * The right edge to tell the peer behind `ack`: the guest's own, and no further than there is room.
 * The edge that the peer was told stays, unless the guest itself has moved it back.
 */
VCC_INLINE uint32_t snoop_edge(const struct vcc_flow *f, const struct vcc_snoop *sn,
			       const struct vcc_params *p, const struct vcc_room *room,
			       uint32_t ack)
{
	if (!snoops(f, sn, p))
		return sn->guest_edge;
	/* The guest has not closed its window, so neither does the room (RFC 9293, 3.8.6). */
	uint32_t room_edge = ack + vcc_max(snoop_room_bytes(sn, room), sn->seg_bytes);

	return seq_min(sn->guest_edge, seq_max(room_edge, sn->told_edge));
}

/* The window field for a right edge, rounded up. */
VCC_INLINE uint16_t snoop_field(const struct vcc_flow *f, uint32_t ack, uint32_t edge)
{
	return (uint16_t)vcc_min(units_ceil(seq_distance(ack, edge), f->wscale_guest), UINT16_MAX);
}

/*
 * From-guest: what a segment says that leaves. The window is rounded up, as in Linux
 * (__tcp_select_window), or its right edge would be before the guest's own.
 */
VCC_INLINE struct vcc_said snoop_says(const struct vcc_flow *f, const struct vcc_snoop *sn,
				      const struct vcc_params *p, const struct vcc_room *room,
				      const struct vcc_segment *s)
{
	uint32_t own_edge = guests_edge(f, s);
	struct vcc_said said = {
		.ack = s->ack, .edge = own_edge, .window = s->window, .flags = s->flags
	};
	bool due = is_promise_due(sn);

	if (!sn->begun || !(s->flags & TCP_ACK) || (s->flags & (TCP_SYN | TCP_RST)))
		return said;
	/* Reordered between guest and port: the peer ignores its window, too. */
	if (!due && (!snoops(f, sn, p) || s->ack != sn->guest_ack))
		return said;
	said.ack = sn->ring_nxt;
	uint32_t edge = snoop_edge(f, sn, p, room, said.ack);

	said.edge = edge;
	if (said.ack != s->ack || edge != own_edge)
		said.window = snoop_field(f, said.ack, edge);
	/* Law 3, toward the peer. */
	VCC_LAW(said.window || !seq_after(sn->guest_edge, said.ack));
	/* Classic ECN of the guest's own. */
	if (due &&
	    (f->flags & (FLOW_ECN_GUEST | FLOW_ECN_FABRIC)) == (FLOW_ECN_GUEST | FLOW_ECN_FABRIC)) {
		said.flags &= (uint16_t)~TCP_ECE;
		if (sn->latched)
			said.flags |= TCP_ECE;
	}
	return said;
}

/* The peer is told it. */
VCC_INLINE void snoop_told(const struct vcc_flow *f, struct vcc_snoop *sn,
			   const struct vcc_said *said)
{
	if (!sn->begun || !(said->flags & TCP_ACK) || (said->flags & (TCP_SYN | TCP_RST)))
		return;
	/* Law 16: nothing is acknowledged that neither the guest has acknowledged nor its ring has.
	 */
	VCC_LAW(!seq_after(said->ack, sn->ring_nxt) || !seq_plausible(sn->ring_nxt, said->ack));
	if (!seq_before(said->ack, f->rcv_wup))
		sn->told_edge = said->edge;
}

/*
 * From-guest, after snoop_heard(): does the segment say nothing that the peer does not know? A
 * repeated acknowledgement at the edge of what was promised is a duplicate ACK, or the answer to a
 * keep-alive.
 */
VCC_INLINE bool snoop_absorbs(const struct vcc_flow *f, const struct vcc_snoop *sn,
			      const struct vcc_params *p, const struct vcc_room *room,
			      const struct vcc_segment *s)
{
	const uint16_t news = TCP_SYN | TCP_FIN | TCP_RST | TCP_URG | TCP_CWR;
	bool told = f->settled && !seq_after(sn->ring_nxt, f->rcv_wup);

	if (!sn->begun || sn->barred || !(s->flags & TCP_ACK) || (s->flags & news) ||
	    s->payload_bytes || (s->options & OPT_SACK) || !told)
		return false;
	if (!snoops(f, sn, p) && !is_promise_due(sn))
		return false;
	/* A keep-alive is answered. */
	if (seq_before(s->seq, f->snd_nxt) || seq_after(s->ack, f->rcv_wup))
		return false;
	if (s->ack == f->rcv_wup && sn->repeats)
		return false;
	struct vcc_said said = snoop_says(f, sn, p, room, s);

	/* The guest may round its window down (RFC 7323, 2.4). */
	return said.window <= snoop_field(f, said.ack, sn->told_edge) &&
	       seq_distance(said.edge, sn->told_edge) <= 1u << f->wscale_guest;
}

/*
 * Is the segment one that the guest accepts, whatever it has read of its ring by then? `sent`: the
 * highest acknowledgement that the guest may be shown, under `split` of what has not left yet;
 * `stamped`: it has timestamps, with `tsval`.
 */
VCC_INLINE bool snoop_acceptable(const struct vcc_flow *f, const struct vcc_snoop *sn,
				 const struct vcc_segment *s, uint32_t sent, bool stamped,
				 uint32_t tsval)
{
	const uint16_t odd = TCP_SYN | TCP_RST | TCP_URG;

	if (!(s->flags & TCP_ACK) || (s->flags & odd) || (s->options & OPT_SIGNED))
		return false;
	/*
	 * An ACK of what was not sent is not acceptable, nor one too far below snd_una (RFC 5961,
	 * 5.2). Some stacks discard any segment with an old acknowledgement.
	 */
	if (seq_after(s->ack, sent) || seq_before(s->ack, sn->peer_ack))
		return false;
	/* PAWS (RFC 7323, 5.3). A segment without timestamps may be dropped (3.2). */
	if ((f->flags & FLOW_TIMESTAMPS) && (!stamped || seq_before(tsval, sn->ts_recent)))
		return false;
	return seq_plausible(sn->ring_nxt, s->seq) && !seq_after(s->seq, sn->guest_edge);
}

/* TS.Recent: from a segment at or before the last acknowledgement sent (RFC 7323, 4.3). */
VCC_INLINE void snoop_stamp(const struct vcc_flow *f, struct vcc_snoop *sn,
			    const struct vcc_segment *s, uint32_t tsval)
{
	if ((f->flags & FLOW_TIMESTAMPS) && !seq_after(s->seq, f->rcv_wup))
		sn->ts_recent = tsval;
}

/*
 * A segment lies in the guest's ring, and its checksums are right: may it be acknowledged in the
 * guest's name, and when? Its FIN is the guest's to acknowledge.
 */
VCC_INLINE struct vcc_placed snoop_placed(const struct vcc_flow *f, struct vcc_snoop *sn,
					  const struct vcc_params *p, const struct vcc_segment *s,
					  uint32_t sent, bool stamped, uint32_t tsval)
{
	struct vcc_placed nothing = {}, at_once = { .answer = ANSWER_NOW };
	struct vcc_placed kept = { .keep = true };
	uint32_t end = s->seq + s->payload_bytes;

	if (!f->settled || !snoops(f, sn, p) || !snoop_acceptable(f, sn, s, sent, stamped, tsval))
		return nothing;
	if (s->flags & TCP_CWR)
		sn->latched = false;
	if (s->ip_ecn == IP_ECN_CE && s->payload_bytes)
		sn->latched = true;
	snoop_stamp(f, sn, s, tsval);
	sn->peer_ack = s->ack;
	if (s->flags & TCP_FIN) {
		sn->fin_seq = end;
		sn->fin = true;
	}
	/* Old data, and keep-alives (RFC 9293, 3.8.4), are answered (3.10.7.4). */
	if (!seq_after(end, sn->ring_nxt)) {
		bool probes = s->seq + 1 == sn->ring_nxt && !(s->flags & TCP_FIN);

		return s->payload_bytes || probes ? at_once : nothing;
	}
	/* Nothing follows a FIN. */
	if (seq_after(end, sn->guest_edge) || (sn->fin && seq_after(end, sn->fin_seq)))
		return nothing;
	/* Promised once the guest has reported it and the hole before it is filled. */
	if (seq_after(s->seq, sn->ring_nxt))
		return s->payload_bytes ? kept : nothing;
	uint32_t seg_bytes = s->seg_bytes ? s->seg_bytes : s->payload_bytes;
	bool fills = has_hole(sn);

	sn->seg_bytes = (uint16_t)vcc_min(vcc_max(sn->seg_bytes, seg_bytes), UINT16_MAX);
	snoop_advance(sn, end);
	/* Law 16 */
	VCC_LAW(!seq_after(sn->ring_nxt, sn->guest_edge));
	/* RFC 5681, 4.2 */
	if (fills || (s->flags & (TCP_PSH | TCP_FIN)) ||
	    seq_distance(f->rcv_wup, end) > sn->seg_bytes)
		kept.answer = ANSWER_NOW;
	else
		kept.answer = ANSWER_LATER;
	return kept;
}

/*
 * vcc_to_guest() judges a segment by the guest's acknowledgement. Between these two that is its
 * own: what is old to the peer may still be new to the guest. Returns what the peer was told.
 */
VCC_INLINE uint32_t snoop_judge_begin(struct vcc_flow *f, const struct vcc_snoop *sn)
{
	uint32_t told = f->rcv_wup;

	if (is_promise_due(sn) && f->stage == STAGE_ESTABLISHED)
		f->rcv_wup = sn->guest_ack;
	return told;
}

VCC_INLINE void snoop_judge_end(struct vcc_flow *f, const struct vcc_snoop *sn, uint32_t told)
{
	if (is_promise_due(sn) && f->rcv_wup == sn->guest_ack)
		f->rcv_wup = told;
}

/*
 * Has the ring room for what an acknowledgement lets the peer send? Without, it waits: the window
 * could only be shut.
 */
VCC_INLINE bool snoop_has_room(const struct vcc_snoop *sn, const struct vcc_room *room)
{
	return snoop_room_bytes(sn, room) >= sn->seg_bytes;
}

/* Is there an acknowledgement that the peer has not been told? */
VCC_INLINE bool is_answer_due(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	return is_promise_due(sn) && seq_after(sn->ring_nxt, f->rcv_wup);
}

/* No room makes an answer due. */
#define SNOOP_NEVER_SEGS 0xffffffffu

/*
 * The free buffers in the ring from which the flow has something to say: an acknowledgement that
 * `waits` for room, or a window update. As a receiver that avoids the silly window syndrome (RFC
 * 9293, 3.8.6.2.2), the latter for half of the guest's window or two segments.
 */
VCC_INLINE uint32_t snoop_opens_at_segs(const struct vcc_flow *f, const struct vcc_snoop *sn,
					const struct vcc_params *p, uint32_t backlog_bytes,
					bool waits)
{
	uint32_t least_bytes =
	    vcc_max(vcc_min(2u * sn->seg_bytes, seq_distance(sn->ring_nxt, sn->guest_edge) / 2),
		    1u << f->wscale_guest);
	uint32_t seg_bytes = vcc_max(sn->seg_bytes, 1), needs_bytes = seg_bytes;

	if (!waits) {
		if (!snoops(f, sn, p) || seq_distance(sn->told_edge, sn->guest_edge) < least_bytes)
			return SNOOP_NEVER_SEGS;
		needs_bytes =
		    vcc_max(needs_bytes, seq_distance(sn->ring_nxt, sn->told_edge + least_bytes));
	}
	if (needs_bytes <= backlog_bytes)
		return 0;
	return SNOOP_RESERVED_SEGS + (needs_bytes - backlog_bytes + seg_bytes - 1) / seg_bytes;
}

#endif
