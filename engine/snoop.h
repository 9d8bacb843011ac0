/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `receive` (vSnoop; vFlood, section 6): the shell acknowledges in-order data in the guest's name
 * once the guest's receive ring has it, so that the peer need not wait until the guest's vCPU runs.
 *
 * Such an acknowledgement is a promise (law 16). It is given only for what the guest will accept:
 * data that is complete up to it in memory that outlives the shell, within the window that the
 * guest itself last offered, and acceptable (RFC 9293, 3.10.7.4; RFC 5961; RFC 7323, 5). The shell
 * keeps a copy until the guest has acknowledged it.
 *
 * receive_ring.h has the ring's room, receive_buffer.h what the shell stores beyond it, snoop_ack.h
 * what the peer is sent.
 */
#ifndef VCC_SNOOP_H
#define VCC_SNOOP_H

#include "engine.h"
#include "mss.h"

/* What a shell that snoops keeps for each flow besides struct vcc_flow. */
struct vcc_snoop {
	uint32_t ring_nxt;    /* the guest's ring, or the shell's buffer, has all data before it */
	uint32_t guest_ack;   /* the guest's own last acknowledgement */
	uint32_t guest_edge;  /* ack + window of that acknowledgement */
	uint32_t peer_ack;    /* the highest acknowledgement of the guest's data in its ring */
	uint32_t told_edge;   /* ack + window that the peer was sent last */
	uint32_t due_edge;    /* the peer may have sent data before it */
	uint32_t sacked_from; /* what the guest has reported behind a hole, if after ring_nxt */
	uint32_t sacked_end;
	uint32_t ts_recent; /* TS.Recent as in the guest (RFC 7323, 4.3) */
	uint32_t syn_tsval; /* TSval of the peer's last SYN */
	uint32_t irs_nxt;   /* the first acknowledgement: irs + 1, or after data on the SYN */
	uint32_t fin_seq;   /* of the peer's FIN, if one is in the ring */
	uint16_t mss_bytes; /* the guest's, as it announced it */
	uint16_t seg_bytes; /* payload of the peer's full segments */
	uint8_t opening;    /* bool: the guest's SYN has passed */
	uint8_t begun;	    /* bool: the guest has acknowledged the peer's SYN */
	uint8_t barred;	    /* bool: never promise */
	uint8_t latched;    /* bool: the guest would set ECE (RFC 3168, 6.1.3) */
	uint8_t repeats;    /* bool: the guest's last segment repeated its acknowledgement */
	uint8_t fin;	    /* bool: fin_seq is valid */
	uint8_t silent;	    /* bool: the peer is not expected to send */
	/*
	 * The last of what is before ring_nxt: in the shell's buffer, and not in the ring yet
	 * (receive_buffer.h).
	 */
	uint32_t stored_bytes;
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

/* The MSS of a guest that does not announce one (RFC 9293, 3.7.1). */
#define SNOOP_SEG_BYTES 536u

/* Has data been acknowledged that the guest has not acknowledged itself? */
VCC_INLINE bool is_promise_due(const struct vcc_snoop *sn)
{
	return sn->begun && seq_after(sn->ring_nxt, sn->guest_ack);
}

/* Is some of it in the shell's buffer alone? */
VCC_INLINE bool has_stored(const struct vcc_snoop *sn)
{
	return sn->stored_bytes;
}

/* All data before it has been put into the guest's ring. */
VCC_INLINE uint32_t given_nxt(const struct vcc_snoop *sn)
{
	return sn->ring_nxt - sn->stored_bytes;
}

/*
 * Has the guest begun another connection than the engine's, by a SYN or SYN-ACK that the engine
 * does not believe? Then its acknowledgements do not belong to this one.
 */
VCC_INLINE bool is_inconsistent(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	return seq_before(sn->ring_nxt, f->rcv_wup);
}

/*
 * May the flow's data be promised? After its own FIN a guest may answer data with RST (RFC 9293,
 * 3.10.7.1). AccECN's counters (RFC 9768) are the guest's own.
 */
VCC_INLINE bool snoops(const struct vcc_flow *f, const struct vcc_snoop *sn,
		       const struct vcc_params *p)
{
	const uint32_t never = FLOW_FIN_GUEST | FLOW_ACCECN_GUEST | FLOW_RELEASED;

	return p->receive != RECEIVE_GUEST && mode_changes(p) && sn->begun && !sn->barred &&
	       !is_inconsistent(f, sn) && f->stage == STAGE_ESTABLISHED && !(f->flags & never);
}

/*
 * The right edge up to which data is taken: the guest's own, or with a buffer the one that the peer
 * was sent, which is rounded up to a unit.
 */
VCC_INLINE uint32_t offered_to(const struct vcc_flow *f, const struct vcc_snoop *sn,
			       const struct vcc_params *p)
{
	if (p->receive < RECEIVE_BUFFER)
		return sn->guest_edge;
	return seq_max(sn->guest_edge, sn->told_edge + (1u << f->wscale_guest) - 1);
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
	uint16_t mss_bytes = sn->mss_bytes;

	if (s->flags & TCP_SYN)
		mss_bytes = (s->options & OPT_MSS) ? s->mss : SNOOP_SEG_BYTES;
	*sn = (struct vcc_snoop){
		.ring_nxt = s->ack,
		.guest_ack = s->ack,
		.guest_edge = edge,
		.peer_ack = s->seq + !!(s->flags & TCP_SYN),
		/* The window of a SYN-ACK is not changed. */
		.told_edge = (s->flags & TCP_SYN) ? edge : s->ack,
		/* The peer is not held back. */
		.due_edge = s->ack - mss_bytes,
		.sacked_end = s->ack,
		.ts_recent = sn->syn_tsval,
		.syn_tsval = sn->syn_tsval,
		.irs_nxt = s->ack,
		.mss_bytes = mss_bytes,
		.seg_bytes = mss_bytes,
		.opening = true,
		.begun = !!(s->flags & TCP_ACK),
		.barred = sn->barred,
		.silent = true,
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
 * the hole is used.
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
 * From-guest: the guest's own acknowledgement, before the engine sees it. False if a new connection
 * begins, of which nothing is promised yet.
 */
VCC_INLINE bool snoop_guest_acked(const struct vcc_flow *f, struct vcc_snoop *sn,
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
	/* It has what it acknowledges, even if it was not given that. */
	if (!seq_after(sn->ring_nxt, s->ack))
		sn->stored_bytes = 0;
	else
		sn->stored_bytes = vcc_min(sn->stored_bytes, seq_distance(s->ack, sn->ring_nxt));
	/* It may discard what lies beyond a window that it has drawn back. */
	if (seq_after(sn->sacked_end, edge))
		sn->sacked_end = sn->ring_nxt;
	snoop_advance(sn, seq_max(sn->ring_nxt, s->ack));
	/* Its latch may differ from ours only while it has not read all of the ring. */
	if (!is_promise_due(sn))
		sn->latched = !!(s->flags & TCP_ECE);
	return true;
}

/*
 * Is the segment one that the guest accepts, whatever it has read of its ring by then? `sent`: the
 * highest acknowledgement that the guest may be shown, under `split` of what has not left yet;
 * `edge`: of the window; `stamped`: it has timestamps, with `tsval`.
 */
VCC_INLINE bool snoop_acceptable(const struct vcc_flow *f, const struct vcc_snoop *sn,
				 const struct vcc_segment *s, uint32_t edge, uint32_t sent,
				 bool stamped, uint32_t tsval)
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
	return seq_plausible(sn->ring_nxt, s->seq) && !seq_after(s->seq, edge);
}

/* TS.Recent: from a segment at or before the last acknowledgement sent (RFC 7323, 4.3). */
VCC_INLINE void snoop_stamp(const struct vcc_flow *f, struct vcc_snoop *sn,
			    const struct vcc_segment *s, uint32_t tsval)
{
	if ((f->flags & FLOW_TIMESTAMPS) && !seq_after(s->seq, f->rcv_wup))
		sn->ts_recent = tsval;
}

/* The ring has what is between `from` and `end`, of which the shell's buffer has a copy. */
VCC_INLINE void snoop_given(struct vcc_snoop *sn, uint32_t from, uint32_t end)
{
	uint32_t given = given_nxt(sn);

	if (seq_after(from, given) || !seq_after(end, given) || seq_after(end, sn->ring_nxt))
		return;
	sn->stored_bytes = seq_distance(end, sn->ring_nxt);
}

/*
 * A segment lies in the guest's ring, or is `stored` in the shell's buffer, and its checksums are
 * right: may it be acknowledged in the guest's name, and when? Its FIN is the guest's to
 * acknowledge.
 */
VCC_INLINE struct vcc_placed snoop_take(const struct vcc_flow *f, struct vcc_snoop *sn,
					const struct vcc_params *p, const struct vcc_segment *s,
					uint32_t sent, bool stamped, uint32_t tsval, bool stored)
{
	struct vcc_placed nothing = {}, at_once = { .answer = ANSWER_NOW };
	struct vcc_placed kept = { .keep = true };
	uint32_t edge = stored ? offered_to(f, sn, p) : sn->guest_edge;
	uint32_t end = s->seq + s->payload_bytes;

	if (!f->settled || !snoops(f, sn, p) ||
	    !snoop_acceptable(f, sn, s, edge, sent, stamped, tsval))
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

		if (!stored && !seq_after(end, sn->guest_edge))
			snoop_given(sn, s->seq, end);
		return s->payload_bytes || probes ? at_once : nothing;
	}
	/* Nothing follows a FIN. */
	if (seq_after(end, edge) || (sn->fin && seq_after(end, sn->fin_seq)))
		return nothing;
	if (seq_after(s->seq, sn->ring_nxt)) {
		/*
		 * In the ring, it is promised once the guest has reported it and the hole before it
		 * is filled. What is stored is answered at once (RFC 5681, 4.2).
		 */
		if (stored)
			kept.answer = ANSWER_NOW;
		return s->payload_bytes ? kept : nothing;
	}
	uint32_t seg_bytes = s->seg_bytes ? s->seg_bytes : s->payload_bytes;
	uint32_t given = given_nxt(sn);
	bool fills = has_hole(sn), placed = !stored && !seq_after(s->seq, given);

	/* Options take their part of the MSS (RFC 6691, 2), or the ring would seem too full. */
	if (seg_bytes && seg_bytes < sn->seg_bytes &&
	    seg_bytes + TCP_OPTIONS_BYTES >= sn->mss_bytes)
		sn->seg_bytes = (uint16_t)seg_bytes;
	snoop_advance(sn, end);
	sn->stored_bytes = placed ? 0 : seq_distance(given, sn->ring_nxt);
	/* Law 16 */
	VCC_LAW(!seq_after(sn->ring_nxt, edge));
	/* RFC 5681, 4.2 */
	if (fills || (s->flags & (TCP_PSH | TCP_FIN)) ||
	    seq_distance(f->rcv_wup, end) > sn->seg_bytes)
		kept.answer = ANSWER_NOW;
	else
		kept.answer = ANSWER_LATER;
	return kept;
}

/* A segment lies in the guest's ring. */
VCC_INLINE struct vcc_placed snoop_placed(const struct vcc_flow *f, struct vcc_snoop *sn,
					  const struct vcc_params *p, const struct vcc_segment *s,
					  uint32_t sent, bool stamped, uint32_t tsval)
{
	return snoop_take(f, sn, p, s, sent, stamped, tsval, false);
}

/* A stray SYN does not end a connection of which the guest still lacks promised data (law 16). */
VCC_INLINE bool snoop_outlives_syn(const struct vcc_flow *f, const struct vcc_snoop *sn,
				   const struct vcc_segment *s)
{
	return (s->flags & TCP_SYN) && f->stage == STAGE_CLOSED && is_promise_due(sn) &&
	       !is_inconsistent(f, sn);
}

/*
 * vcc_to_guest() judges a segment by the guest's acknowledgement. Between these two that is its
 * own: what is old to the peer may still be new to the guest. Returns the acknowledgement that the
 * peer was sent.
 */
VCC_INLINE uint32_t snoop_judge_begin(struct vcc_flow *f, const struct vcc_snoop *sn)
{
	uint32_t rcv_wup = f->rcv_wup;

	if (is_promise_due(sn) && !is_inconsistent(f, sn) && f->stage == STAGE_ESTABLISHED)
		f->rcv_wup = sn->guest_ack;
	return rcv_wup;
}

VCC_INLINE void snoop_judge_end(struct vcc_flow *f, const struct vcc_snoop *sn, uint32_t rcv_wup)
{
	if (is_promise_due(sn) && f->rcv_wup == sn->guest_ack)
		f->rcv_wup = rcv_wup;
}

#endif
