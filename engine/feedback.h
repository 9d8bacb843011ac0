/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What two vcc ends tell each other (AC/DC, 3.2). The receiver half counts the payload that came
 * for its guest, marked and unmarked, and reports the counters: in a PACK on a pure ACK, or in a
 * FACK beside a segment that cannot take the option. The sender half reads and removes both.
 *
 * The counters are cumulative, so a report that is lost or repeated does no harm. They are laid
 * out as those of AccECN (RFC 9768, 3.2.3), with its option kind: kind 172, length 8, ECT(0)
 * bytes, CE bytes. Hello and FACK share an experimental option (RFC 6994) of ours:
 *
 *	Hello	253, 8,  0x76 0x63 ("vc"), version, HELLO_OFFER or HELLO_ACCEPT, 0, 0
 *	FACK	253, 12, 0x76 0x63, version, 3, ECT(0) bytes, CE bytes
 *
 * A FACK acknowledges one byte less than the segment beside it: who is not vcc takes it for an old
 * ACK, never for a duplicate.
 *
 * Beside its reports the receiver half echoes marks as a classic receiver does (RFC 3168, 6.1.3).
 * So whatever a middlebox does to options, and whatever the far end believes was agreed, a mark is
 * answered: by alpha if the report is there, by half if not.
 */
#ifndef VCC_FEEDBACK_H
#define VCC_FEEDBACK_H

#include "ecn.h"

#define COUNTER_MASK 0xffffffu
/* RFC 9768, 3.2.1: what the ECT(0) counter starts at. */
#define COUNTER_ECT0_INITIAL 1u
/* Without a report for two windows and this much, none will come. */
#define SILENCE_BYTES 65536u
/* A network may deliver twice, and the receiver half counts both: so much beyond what was sent. */
#define REPEATED_BYTES 65536u
/* Beside data a report waits for two segments, as an ACK may (RFC 9293, 3.8.6.3), or a mark. */
#define REPORT_SEGS 2u

VCC_INLINE void count_forged(struct vcc_flow *f, struct vcc_action *a)
{
	a->forged = true;
	f->forged += f->forged < UINT8_MAX;
}

/* May this flow's segments carry options of ours at all? */
VCC_INLINE bool speaks_hello(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->feedback && brings_ecn(f, p);
}

/* The guest's SYN: ask the far end whether it is vcc. Once, in case a middlebox minds options. */
VCC_INLINE void hello_offer(struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, struct vcc_action *a)
{
	bool own_ecn = (f->syn_flags & FLOW_ECN_GUEST) && p->guest_ecn == GUEST_ECN_LEAVE;

	if (!speaks_hello(f, p) || own_ecn || (f->syn_flags & FLOW_ACCECN_GUEST) ||
	    s->option_room_bytes < OPT_HELLO_BYTES)
		return;
	f->syn_flags |= FLOW_HELLO_OFFERED;
	a->emit = EMIT_HELLO;
	a->hello = HELLO_OFFER;
}

/*
 * The peer's SYN may bring an offer; the guest never sees it. Nor does it see that the SYN asks for
 * ECN: that is the far end's vcc asking, and a guest that only answers (Linux, by default) would
 * else count as one that uses ECN itself. Returns whether it did.
 */
VCC_INLINE bool hello_offered(const struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *a)
{
	if (!speaks_hello(f, p) || !(s->options & OPT_HELLO) || s->hello != HELLO_OFFER)
		return false;
	a->flags &= (uint16_t)~TCP_ECN_BITS;
	a->ip_ecn = IP_ECN_NOT_ECT;
	return true;
}

/* The guest's SYN-ACK. One that accepted is repeated as it was, whatever is wanted by now. */
VCC_INLINE void hello_accept(const struct vcc_flow *f, const struct vcc_segment *s,
			     struct vcc_action *a)
{
	if (!(f->flags & FLOW_FEEDBACK) || s->option_room_bytes < OPT_HELLO_BYTES)
		return;
	a->emit = EMIT_HELLO;
	a->hello = HELLO_ACCEPT;
}

/* The guest's first SYN-ACK: accept an offer, if ECN is on and is ours to answer. */
VCC_INLINE void hello_answer(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s)
{
	if (speaks_hello(f, p) && (f->flags & FLOW_HELLO_OFFERED) && (f->flags & FLOW_ECN_FABRIC) &&
	    !keeps_own_ecn(f, p) && s->option_room_bytes >= OPT_HELLO_BYTES)
		f->flags |= FLOW_FEEDBACK;
}

/* The peer's SYN-ACK: did the far end accept? An echo of our own offer is no answer. */
VCC_INLINE void hello_accepted(struct vcc_flow *f, const struct vcc_segment *s)
{
	if ((f->flags & FLOW_HELLO_OFFERED) && (f->flags & FLOW_ECN_FABRIC) &&
	    (s->options & OPT_HELLO) && s->hello == HELLO_ACCEPT)
		f->flags |= FLOW_FEEDBACK;
}

/* Both SYNs have passed: counting begins. */
VCC_INLINE void feedback_start(struct vcc_flow *f)
{
	f->counted.ect0_bytes = COUNTER_ECT0_INITIAL;
	f->heard.ect0_bytes = COUNTER_ECT0_INITIAL;
	f->feedback_ack = f->snd_una;
}

/* ---- Receiver half ---- */

/* Is the receiver half's ECN played by us, for a guest that has none or must not see it? */
VCC_INLINE bool receives_for_guest(const struct vcc_flow *f)
{
	return ecn_is_ours(f) || (f->flags & FLOW_FEEDBACK);
}

/* Is the peer a native DCTCP sender to whose echo our receiver half must keep? */
VCC_INLINE bool echoes_dctcp(const struct vcc_flow *f)
{
	return ecn_is_ours(f) && (f->flags & (FLOW_PEER_DCTCP | FLOW_FEEDBACK)) == FLOW_PEER_DCTCP;
}

/* To-guest: payload came. */
VCC_INLINE void feedback_count(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!s->payload_bytes || s->ip_ecn == IP_ECN_NOT_ECT)
		return;
	f->flags |= FLOW_REPORT_DUE;
	f->uncounted_bytes += s->payload_bytes;
	if (s->ip_ecn == IP_ECN_CE) {
		f->counted.ce_bytes = (f->counted.ce_bytes + s->payload_bytes) & COUNTER_MASK;
		f->flags |= FLOW_REPORT_CE;
	} else {
		f->counted.ect0_bytes = (f->counted.ect0_bytes + s->payload_bytes) & COUNTER_MASK;
	}
}

/* From-guest: let what goes to the peer anyway carry the report, or go beside it. */
VCC_INLINE void feedback_report(struct vcc_flow *f, const struct vcc_segment *s,
				struct vcc_action *a)
{
	bool pure = !s->payload_bytes && !(s->flags & (TCP_SYN | TCP_FIN | TCP_RST));

	if (!(f->flags & FLOW_REPORT_DUE) || !(s->flags & TCP_ACK) || (s->flags & TCP_RST))
		return;
	if (!pure && !(f->flags & FLOW_REPORT_CE) &&
	    f->uncounted_bytes < REPORT_SEGS * f->mss_bytes)
		return;
	a->emit = pure && s->option_room_bytes >= OPT_PACK_BYTES ? EMIT_PACK : EMIT_FACK;
	a->feedback = f->counted;
	f->flags &= ~(uint32_t)(FLOW_REPORT_DUE | FLOW_REPORT_CE);
	f->uncounted_bytes = 0;
}

/*
 * Receiver half for a native DCTCP sender (RFC 8257, 3.2; vCC, A.7), which takes all that an ACK
 * acknowledges for marked if it says ECE. The RFC sends an ACK of its own wherever marks begin or
 * end; we invent none, and say ECE where that comes closer to the sum of what was marked. What is
 * still owed, or was said too much, is kept in ce_bytes, with its sign.
 */
VCC_INLINE void dctcp_echo(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a)
{
	if (!(s->flags & TCP_ACK) || (s->flags & TCP_RST))
		return;
	int32_t news_bytes = (int32_t)vcc_min(f->uncounted_bytes, COUNTER_MASK / 2);
	int32_t owed_bytes = (int32_t)(f->counted.ce_bytes << 8) >> 8;

	a->flags &= (uint16_t)~TCP_ECE;
	if (news_bytes && 2 * owed_bytes >= news_bytes) {
		a->flags |= TCP_ECE;
		f->counted.ce_bytes = (uint32_t)(owed_bytes - news_bytes) & COUNTER_MASK;
	}
	f->uncounted_bytes = 0;
}

/* ---- Sender half ---- */

/* From-guest: so many bytes can be reported more, if they go out ECN-capable. */
VCC_INLINE void feedback_expect(struct vcc_flow *f, const struct vcc_segment *s, uint8_t ip_ecn)
{
	uint32_t bytes = ip_ecn == IP_ECN_NOT_ECT ? 0 : s->payload_bytes;

	/* What is lost is never reported, and must not come round to zero. */
	f->unreported_bytes = vcc_min(f->unreported_bytes + bytes, SEQ_WINDOW_MAX);
}

/* What is known of marks since the last time. */
struct mark_news {
	uint32_t reported_bytes;
	uint32_t marked_bytes;
	bool precise;
	bool late; /* it tells nothing of the ECE of now */
};

/*
 * A report after a silence: a host that is busy sends its FACKs late. By now the counters may have
 * come round, so they only say where to go on from; and marks were answered by ECE, if anybody
 * echoed.
 */
VCC_INLINE void feedback_resume(struct vcc_flow *f, const struct vcc_segment *s, uint32_t ack,
				uint32_t ce_bytes, struct mark_news *news)
{
	news->late = true;
	if (f->flags & FLOW_UNHEARD) {
		news->reported_bytes = ce_bytes;
		news->marked_bytes = ce_bytes;
	}
	f->heard = s->feedback;
	f->feedback_ack = ack;
	f->unreported_bytes = vcc_min(f->unreported_bytes, flight_bytes(f));
	f->flags &= ~(uint32_t)(FLOW_FEEDBACK_LOST | FLOW_UNHEARD | FLOW_ECE_HEARD);
	f->flags |= FLOW_FEEDBACK_HEARD;
}

/*
 * Reads a report. Counters cannot run back beside a newer acknowledgement, nor count much that was
 * never sent: a far end that says so is not believed again, and its ECE is answered as that of a
 * classic receiver.
 */
VCC_INLINE void feedback_read(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a,
			      struct mark_news *news)
{
	uint32_t ect0_bytes = (s->feedback.ect0_bytes - f->heard.ect0_bytes) & COUNTER_MASK;
	uint32_t ce_bytes = (s->feedback.ce_bytes - f->heard.ce_bytes) & COUNTER_MASK;
	uint32_t repeated_bytes = vcc_sub_floor0(ect0_bytes + ce_bytes, f->unreported_bytes);
	bool back = (ect0_bytes | ce_bytes) & (COUNTER_MASK / 2 + 1);
	/* What a FACK went beside acknowledges a byte more. */
	uint32_t ack = s->ack + !!(s->options & OPT_FACK);
	bool newer = seq_after(ack, f->feedback_ack) && !seq_after(ack, f->snd_nxt);

	if (back && !newer) {
		news->late = true; /* overtaken on its way */
		return;
	}
	if ((f->flags & FLOW_FEEDBACK_LOST) && newer) {
		feedback_resume(f, s, ack, back ? 0 : ce_bytes, news);
		return;
	}
	if (back || repeated_bytes > REPEATED_BYTES) {
		f->flags |= FLOW_FEEDBACK_LOST | FLOW_FEEDBACK_FALSE;
		count_forged(f, a);
		return;
	}
	f->heard = s->feedback;
	f->unreported_bytes = vcc_sub_floor0(f->unreported_bytes, ect0_bytes + ce_bytes);
	if (newer)
		f->feedback_ack = ack;
	/* Whether its guest echoes ECE too will matter when it has gone. */
	f->flags &= ~(uint32_t)FLOW_ECE_HEARD;
	f->flags |= FLOW_FEEDBACK_HEARD;
	/* A copy is no news, but its mark is. */
	news->reported_bytes = vcc_sub_floor0(ect0_bytes, repeated_bytes) + ce_bytes;
	news->marked_bytes = ce_bytes;
}

/* So much may be acknowledged without a report, or a report be late. */
VCC_INLINE uint32_t patience_bytes(const struct vcc_flow *f)
{
	uint32_t window_bytes = vcc_min(f->cc.cwnd_segs * f->mss_bytes, SEQ_WINDOW_MAX);

	return 2 * window_bytes + SILENCE_BYTES;
}

/*
 * Who agreed to report and acknowledges without: its vcc has gone, or a middlebox takes options
 * away. If it has not echoed by ECE since, nobody answers marks, and ECT would be a lie. What this
 * segment itself acknowledged, perhaps all of a large window, its FACK may report: that comes right
 * behind.
 */
VCC_INLINE void feedback_missed(struct vcc_flow *f, uint32_t acked_bytes)
{
	/* What is sent again may not be ECT, and its ACK jumps over what was reported before. */
	if (f->ca_state >= CA_RECOVERY)
		f->feedback_ack = f->snd_una;
	if (seq_distance(f->feedback_ack, f->snd_una - acked_bytes) < patience_bytes(f))
		return;
	f->flags |= FLOW_FEEDBACK_LOST;
	/* Who never reported may have lost our acceptance, and echoes marks when there are some. */
	if ((f->flags & (FLOW_FEEDBACK_HEARD | FLOW_ECE_HEARD)) == FLOW_FEEDBACK_HEARD)
		f->flags |= FLOW_UNHEARD;
}

/* A FACK, from a far end that agreed to send such. */
VCC_INLINE bool is_fack(const struct vcc_flow *f, const struct vcc_params *p,
			const struct vcc_segment *s)
{
	return (s->options & OPT_FACK) && (f->flags & FLOW_FEEDBACK) && !s->payload_bytes &&
	       is_controlled(f) && translates(f, p);
}

/*
 * Has the far end sent this FACK, as far as its numbers tell (RFC 5961, 5)? Who only knows the
 * ports can make a FACK too. No guest judges it, and it may come behind the super-segment that it
 * went beside, when that is acknowledged.
 */
VCC_INLINE bool fack_plausible(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t oldest_ack = f->snd_una - patience_bytes(f);
	uint32_t oldest_seq = f->rcv_wup - (f->rcv_edge - f->rcv_wup) - SILENCE_BYTES;

	return s->ack - oldest_ack <= f->snd_nxt - oldest_ack &&
	       s->seq - oldest_seq <= f->rcv_edge - oldest_seq;
}

/*
 * ECE that no report explains. The far end echoes beside its reports, so what it echoes stands in
 * its counters when the next report comes, and stays echoed until our CWR has. Reports that tell of
 * no mark meanwhile are wrong, whoever made them, and the echo is answered as a classic receiver's.
 */
VCC_INLINE void answer_untold(struct vcc_flow *f, uint32_t ack, bool echoed, struct mark_news *news)
{
	if (news->marked_bytes) {
		f->ece_told = f->snd_nxt;
		return;
	}
	/* What is being answered already, or was told of and not yet stopped by CWR, is no news. */
	if (!echoed || news->late || f->ca_state != CA_OPEN || !seq_after(ack, f->ece_told))
		return;
	news->marked_bytes = vcc_max(news->reported_bytes, 1);
	news->precise = false;
	f->ece_told = f->snd_nxt;
}

VCC_INLINE bool is_echo(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (s->flags & TCP_ECE) && (f->flags & FLOW_ECN_FABRIC);
}

VCC_INLINE bool believes_reports(const struct vcc_flow *f)
{
	return (f->flags & (FLOW_FEEDBACK | FLOW_FEEDBACK_FALSE)) == FLOW_FEEDBACK;
}

/*
 * To-guest: what the report on this segment says of marks on the guest's data. Apart, as the next,
 * for their callers have no stack to spare.
 */
VCC_APART int marks_by_report(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a,
			      struct mark_news *news)
{
	if (!f || !s || !a || !news)
		return -1;
	bool echoed = is_echo(f, s) || (f->flags & FLOW_ECE_HEARD);

	feedback_read(f, s, a, news);
	if (!(f->flags & FLOW_FEEDBACK_LOST))
		answer_untold(f, s->ack + !!(s->options & OPT_FACK), echoed, news);
	return 0;
}

/* The same by ECE, where no report says it. */
VCC_APART int marks_by_echo(struct vcc_flow *f, const struct vcc_segment *s, uint32_t acked_bytes,
			    struct mark_news *news)
{
	if (!f || !s || !news)
		return -1;
	bool echo = is_echo(f, s);

	if (echo)
		f->flags |= FLOW_ECE_HEARD;
	if (believes_reports(f) && !(f->flags & FLOW_FEEDBACK_LOST)) {
		feedback_missed(f, acked_bytes);
		/* Until the first report, ECE is all that there is. */
		if (f->flags & FLOW_FEEDBACK_HEARD)
			return 0;
	}
	news->reported_bytes = acked_bytes;
	news->marked_bytes = echo ? vcc_max(acked_bytes, 1) : 0;
	news->precise = (f->flags & (FLOW_PEER_DCTCP | FLOW_FEEDBACK)) == FLOW_PEER_DCTCP;
	return 0;
}

/* To-guest: what this segment says of marks on the guest's data. */
VCC_INLINE void feedback_from_peer(struct vcc_flow *f, const struct vcc_segment *s,
				   uint32_t acked_bytes, struct vcc_action *a,
				   struct mark_news *news)
{
	*news = (struct mark_news){ .precise = true };
	/* An ACK without ECE: the next with it has a reason of its own. */
	if (!(s->options & OPT_FACK) && !is_echo(f, s) && seq_after(f->snd_una, f->ece_told))
		f->ece_told = f->snd_una - 1;
	if (believes_reports(f) && (s->options & (OPT_PACK | OPT_FACK))) {
		marks_by_report(f, s, a, news);
		if (!(f->flags & FLOW_FEEDBACK_LOST))
			return;
	}
	marks_by_echo(f, s, acked_bytes, news);
}

/*
 * Options of ours leave every segment of a flow that is ours: a guest must not see them, and must
 * not send them. What comes without having been agreed is counted.
 */
VCC_INLINE void strip_ours(struct vcc_flow *f, const struct vcc_params *p, bool agreed,
			   const struct vcc_segment *s, struct vcc_action *a)
{
	if (!(s->options & OPT_OURS) || !translates(f, p) || !is_controlled(f) ||
	    (f->flags & FLOW_ACCECN_GUEST))
		return;
	a->strip = true;
	if (!agreed || (s->options & OPT_OURS_BAD))
		count_forged(f, a);
}

#endif
