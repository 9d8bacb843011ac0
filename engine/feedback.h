/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Feedback between two vcc ends (AC/DC, 3.2). The receiver half counts the marked and unmarked
 * payload received for its guest and reports the counters: in a PACK option on a pure ACK, or in a
 * FACK beside a segment that has no room for the option. The sender half reads and removes both.
 * hello.h negotiates feedback, report.h is the receiver half, this file is the sender half. For a
 * far end that speaks AccECN itself, accecn.h and marks.h have both halves.
 *
 * The counters are cumulative, so a lost or repeated report does no harm. PACK is an AccECN option
 * (RFC 9768, 3.2.3): kind 172, length 8, ECT(0) bytes, CE bytes. Hello and FACK share an
 * experimental option (RFC 6994):
 *
 *	Hello	253, 8,  0x76 0x63 ("vc"), version, HELLO_OFFER or HELLO_ACCEPT, 0, 0
 *	FACK	253, 12, 0x76 0x63, version, 3, ECT(0) bytes, CE bytes
 *
 * A FACK acknowledges one byte less than the segment beside it, so a host without vcc mistakes it
 * for an old ACK, never for a duplicate.
 *
 * The receiver half also echoes marks by ECE like a classic receiver (RFC 3168, 6.1.3). A mark is
 * therefore answered even if a middlebox removes options or the ends disagree on the negotiation:
 * by alpha with a report, by half without.
 */
#ifndef VCC_FEEDBACK_H
#define VCC_FEEDBACK_H

#include "hello.h"
#include "report.h"

/* Reports count as lost after two windows and this many acknowledged bytes without one. */
#define SILENCE_BYTES 65536u
/* The receiver half counts network duplicates too, so reports may exceed the bytes sent by this. */
#define REPEATED_BYTES 65536u

/* Lost bytes are never reported; the sum saturates so that it cannot wrap. */
VCC_INLINE void expect_report(struct vcc_flow *f, uint32_t bytes)
{
	f->unreported_bytes = vcc_min(f->unreported_bytes + bytes, SEQ_WINDOW_MAX);
}

/* From-guest: reports may cover these bytes if they leave ECN-capable. */
VCC_INLINE void feedback_expect(struct vcc_flow *f, const struct vcc_segment *s, uint8_t ip_ecn)
{
	expect_report(f, ip_ecn == IP_ECN_NOT_ECT ? 0 : s->payload_bytes);
}

/* Marks learned from one segment. */
struct mark_news {
	uint32_t reported_bytes;
	uint32_t marked_bytes;
	bool precise;
	bool late; /* the report is old: it does not explain the current ECE */
};

/*
 * A report after a silence, such as the late FACKs of a busy host. The counters may have wrapped
 * since, so they only set the new base. Marks in between were answered by ECE if it was echoed.
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

/* Takes over a report of `bytes` more than the last. */
VCC_INLINE void feedback_believe(struct vcc_flow *f, const struct vcc_segment *s, uint32_t bytes)
{
	f->heard = s->feedback;
	f->unreported_bytes = vcc_sub_floor0(f->unreported_bytes, bytes);
	/* ECE matters again once reports stop, so only ECE after the last report counts. */
	f->flags &= ~(uint32_t)FLOW_ECE_HEARD;
	f->flags |= FLOW_FEEDBACK_HEARD;
}

/*
 * Reads a report. Counters cannot decrease with a newer acknowledgement, nor exceed the bytes sent
 * by much. After an impossible report, the far end's reports are ignored for good and its ECE is
 * answered as a classic receiver's.
 */
VCC_INLINE void feedback_read(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a,
			      struct mark_news *news)
{
	uint32_t ect0_bytes = (s->feedback.ect0_bytes - f->heard.ect0_bytes) & COUNTER_MASK;
	uint32_t ce_bytes = (s->feedback.ce_bytes - f->heard.ce_bytes) & COUNTER_MASK;
	uint32_t repeated_bytes = vcc_sub_floor0(ect0_bytes + ce_bytes, f->unreported_bytes);
	bool back = (ect0_bytes | ce_bytes) & (COUNTER_MASK / 2 + 1);
	/* A FACK acknowledges one byte less than the segment beside it. */
	uint32_t ack = s->ack + !!(s->options & OPT_FACK);
	bool newer = seq_after(ack, f->feedback_ack) && !seq_after(ack, f->snd_nxt);

	if (back && !newer) {
		news->late = true; /* reordered: a newer report has arrived */
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
	feedback_believe(f, s, ect0_bytes + ce_bytes);
	if (newer)
		f->feedback_ack = ack;
	/* Duplicated payload is not newly delivered, but its marks are valid. */
	news->reported_bytes = vcc_sub_floor0(ect0_bytes, repeated_bytes) + ce_bytes;
	news->marked_bytes = ce_bytes;
}

/* The number of bytes that may be acknowledged before a missing report counts as lost. */
VCC_INLINE uint32_t patience_bytes(const struct vcc_flow *f)
{
	uint32_t window_bytes = vcc_min(f->cc.cwnd_segs * f->mss_bytes, SEQ_WINDOW_MAX);

	return 2 * window_bytes + SILENCE_BYTES;
}

/*
 * An ACK without a report from a far end that agreed to report: its vcc has detached, or a
 * middlebox removes options. If it has not echoed ECE since its last report, no one answers marks,
 * and the sender half must not send ECT. `acked_bytes` are exempt: this segment's FACK, which
 * follows it, may report them.
 */
VCC_INLINE void feedback_missed(struct vcc_flow *f, uint32_t acked_bytes)
{
	/* A retransmission may be Not-ECT, and its ACK covers bytes that were reported before. */
	if (f->ca_state >= CA_RECOVERY)
		f->feedback_ack = f->snd_una;
	if (seq_distance(f->feedback_ack, f->snd_una - acked_bytes) < patience_bytes(f))
		return;
	f->flags |= FLOW_FEEDBACK_LOST;
	/* A far end that never reported may have missed our acceptance; it echoes marks by ECE. */
	if ((f->flags & (FLOW_FEEDBACK_HEARD | FLOW_ECE_HEARD)) == FLOW_FEEDBACK_HEARD)
		f->flags |= FLOW_UNHEARD;
}

/* Is this a FACK of a flow that negotiated feedback? */
VCC_INLINE bool is_fack(const struct vcc_flow *f, const struct vcc_params *p,
			const struct vcc_segment *s)
{
	return (s->options & OPT_FACK) && (f->flags & FLOW_FEEDBACK) && !s->payload_bytes &&
	       is_controlled(f) && translates(f, p);
}

/*
 * Are the FACK's sequence and acknowledgement numbers acceptable (RFC 5961, 5)? An off-path
 * attacker can forge a FACK too, and the guest never checks it. The range includes old numbers: a
 * FACK may arrive after the super-segment beside it has been acknowledged.
 */
VCC_INLINE bool fack_plausible(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t oldest_ack = f->snd_una - patience_bytes(f);
	uint32_t oldest_seq = f->rcv_wup - (f->rcv_edge - f->rcv_wup) - SILENCE_BYTES;

	return s->ack - oldest_ack <= f->snd_nxt - oldest_ack &&
	       s->seq - oldest_seq <= f->rcv_edge - oldest_seq;
}

/*
 * ECE that no report explains. The far end echoes marks in addition to its reports, so an echoed
 * mark is in the counters of its next report, and ECE lasts until our CWR arrives. Reports without
 * a mark in the meantime are wrong or forged: the echo is then answered as a classic receiver's.
 */
VCC_INLINE void answer_untold(struct vcc_flow *f, uint32_t ack, bool echoed, struct mark_news *news)
{
	if (news->marked_bytes) {
		f->ece_reported = f->snd_nxt;
		return;
	}
	/* No new mark: ECE during a reduction, or after a report of the mark until CWR stops it. */
	if (!echoed || news->late || f->ca_state != CA_OPEN || !seq_after(ack, f->ece_reported))
		return;
	news->marked_bytes = vcc_max(news->reported_bytes, 1);
	news->precise = false;
	f->ece_reported = f->snd_nxt;
}

VCC_INLINE bool is_echo(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (s->flags & TCP_ECE) && (f->flags & FLOW_ECN_FABRIC) && !f->accecn;
}

VCC_INLINE bool believes_reports(const struct vcc_flow *f)
{
	return (f->flags & (FLOW_FEEDBACK | FLOW_FEEDBACK_FALSE)) == FLOW_FEEDBACK;
}

/*
 * To-guest: the marks that this segment's report carries. Out of line, because the callers have no
 * stack to spare.
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

/* To-guest: the marks that ECE echoes if there is no report. */
VCC_INLINE void marks_by_echo(struct vcc_flow *f, const struct vcc_segment *s, uint32_t acked_bytes,
			      struct mark_news *news)
{
	bool echo = is_echo(f, s);

	if (echo)
		f->flags |= FLOW_ECE_HEARD;
	/* However long the silence, the next report is newer than the last. */
	if (f->flags & FLOW_FEEDBACK_LOST)
		f->feedback_ack =
		    f->snd_una - vcc_min(f->snd_una - f->feedback_ack, SEQ_WINDOW_MAX);
	if (believes_reports(f) && !(f->flags & FLOW_FEEDBACK_LOST)) {
		feedback_missed(f, acked_bytes);
		/* Until the first report, rely on ECE. */
		if (f->flags & FLOW_FEEDBACK_HEARD)
			return;
	}
	news->reported_bytes = acked_bytes;
	news->marked_bytes = echo ? vcc_max(acked_bytes, 1) : 0;
	news->precise = (f->flags & (FLOW_PEER_DCTCP | FLOW_FEEDBACK)) == FLOW_PEER_DCTCP;
}

/* An ACK without ECE: the next ECE is a new mark. */
VCC_INLINE void note_unmarked(struct vcc_flow *f)
{
	if (seq_after(f->snd_una, f->ece_reported))
		f->ece_reported = f->snd_una - 1;
}

#endif
