/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The marks on the data of both directions, in each way that the ends report them: a vcc end's
 * reports, a classic receiver's echo (feedback.h), or AccECN (RFC 9768), whose sender half is here
 * and reads the peer's counters as Linux does (tcp_accecn_process).
 *
 * The ACE field counts marked packets modulo 8, on each segment. Where a path lets the option
 * through, the option counts the marked bytes; between two options the field's marks are taken as
 * packets of full size, and the next option corrects this.
 */
#ifndef VCC_MARKS_H
#define VCC_MARKS_H

#include "accecn.h"
#include "feedback.h"

/* As in Linux: the weight of one ACK, and the packets per ACK above which long ACKs are usual. */
#define ACK_SEGS_SHIFT 6u
#define ACK_SEGS_USUAL 4u

/* How many packets an ACK acknowledges, usually. */
VCC_INLINE void accecn_note_ack(struct vcc_flow *f, uint32_t segs)
{
	uint32_t segs64 = vcc_min(segs << ACK_SEGS_SHIFT, UINT16_MAX);
	uint32_t before = f->ack_segs64 ? f->ack_segs64 : segs64;

	f->ack_segs64 =
	    (uint16_t)(before + (segs64 >> ACK_SEGS_SHIFT) - (before >> ACK_SEGS_SHIFT));
}

/*
 * The marked packets of an ACK by the ACE field. More than seven may be marked if it acknowledges
 * as many, and ACKs were lost: then the most that the field allows (RFC 9768, A.2.1). A receiver
 * that always acknowledges many at once has lost none.
 */
VCC_INLINE uint32_t ace_segs(const struct vcc_flow *f, uint32_t ace, uint32_t segs)
{
	uint32_t marked_segs = (ace - f->ace_heard) & ACE_MASK;

	if (segs <= ACE_MASK || f->ack_segs64 > ACK_SEGS_USUAL << ACK_SEGS_SHIFT)
		return marked_segs;
	return segs - ((segs - marked_segs) & ACE_MASK);
}

/* Marks that the field has reported and the next option reports again. */
VCC_INLINE void accecn_guess(struct vcc_flow *f, uint32_t ce_bytes)
{
	f->heard.ce_bytes = (f->heard.ce_bytes + ce_bytes) & COUNTER_MASK;
	f->guessed_bytes = vcc_min(f->guessed_bytes + ce_bytes, COUNTER_MASK / 2);
}

/* What an option reports of marked bytes. */
enum accecn_news {
	TOLD_NOTHING, /* there is none, or none to believe */
	TOLD_BASE,    /* the next one can be compared with it */
	TOLD_OLD,     /* a newer one has come */
	TOLD_BYTES,
};

/*
 * Reads the option's count of marked bytes. It may correct what was guessed since the last one.
 * After half a turn of the counter without an option, it only sets the new base. A duplicate may be
 * older than the one before it. Otherwise a counter that runs back, or ahead of what was sent, is
 * the work of a middlebox or a lie: from then on only the field is believed (RFC 9768, 3.2.3.2.4).
 */
VCC_INLINE enum accecn_news accecn_read_option(struct vcc_flow *f, const struct vcc_segment *s,
					       const struct ack_news *news, struct vcc_action *a,
					       struct mark_news *marks)
{
	if (!(s->options & (OPT_PACK | OPT_ACCECN_CE)) || (f->accecn & ACCECN_OPTION_FALSE))
		return TOLD_NOTHING;
	uint32_t last_bytes = f->heard.ce_bytes - f->guessed_bytes; /* as of the last option */
	uint32_t ce_bytes = (s->feedback.ce_bytes - last_bytes) & COUNTER_MASK;

	if (ce_bytes > COUNTER_MASK / 2 && !news->acked_bytes)
		return TOLD_OLD;
	bool turned = f->unreported_bytes > COUNTER_MASK / 2;
	/* It counts what has come behind a hole, too. */
	uint32_t most_bytes = f->unreported_bytes + flight_bytes(f) + REPEATED_BYTES;

	marks->marked_bytes = vcc_sub_floor0(ce_bytes, f->guessed_bytes);
	f->heard.ce_bytes = s->feedback.ce_bytes;
	f->unreported_bytes = 0;
	f->guessed_bytes = 0;
	if (!turned && ce_bytes <= vcc_min(most_bytes, COUNTER_MASK / 2))
		return TOLD_BYTES;
	marks->marked_bytes = 0;
	if (turned)
		return TOLD_BASE;
	f->accecn |= ACCECN_OPTION_FALSE;
	count_forged(f, a);
	return TOLD_NOTHING;
}

/*
 * Does the first field come from a path that clears the bits (3.2.2.4)? The counter is zero after
 * three marks, too. It counts packets without data, of which the third ACK is one, and a guest that
 * has received data may have sent many.
 */
VCC_INLINE bool is_cleared(const struct vcc_flow *f, uint32_t ace, uint32_t segs,
			   const struct mark_news *marks)
{
	uint32_t packets = segs + !!(f->flags & FLOW_GUEST_OPENED);

	return !(f->accecn & ACCECN_HEARD) && !ace && packets < 3 && !f->peer_sends &&
	       !marks->marked_bytes;
}

/*
 * To-guest: the marks of an ACK by AccECN. One that delivers nothing may be older than the last
 * (A.1). The field counts marked packets without data, too. It is believed where the option reports
 * no marked byte, as in Linux: a middlebox may repeat an option that it has stored.
 */
VCC_INLINE void marks_by_accecn(struct vcc_flow *f, const struct vcc_segment *s,
				const struct ack_news *news, struct vcc_action *a,
				struct mark_news *marks)
{
	uint32_t ace = ace_of(s->flags), segs = bytes_to_segs_ceil(f, news->delivered_bytes);
	enum accecn_news option = TOLD_NOTHING;

	expect_report(f, news->delivered_bytes);
	if (f->accecn & ACCECN_SETTLES) {
		f->accecn &= (uint8_t)~ACCECN_SETTLES;
		return;
	}
	if (segs)
		option = accecn_read_option(f, s, news, a, marks);
	/* Nobody would report marks. */
	if (is_cleared(f, ace, segs, marks))
		f->flags |= FLOW_UNHEARD;
	f->accecn |= ACCECN_HEARD;
	if (!segs || option == TOLD_OLD || (f->flags & FLOW_UNHEARD))
		return;
	accecn_note_ack(f, segs);
	if (!marks->marked_bytes) {
		uint32_t marked_segs = ace_segs(f, ace, option == TOLD_BYTES ? 0 : segs);

		marks->marked_bytes = vcc_min(marked_segs * f->mss_bytes,
					      vcc_max(news->acked_bytes, news->delivered_bytes));
		if (option == TOLD_NOTHING)
			accecn_guess(f, marks->marked_bytes);
	}
	f->ace_heard = (uint8_t)ace;
	marks->reported_bytes = vcc_max(news->delivered_bytes, marks->marked_bytes);
}

/*
 * To-guest: the marks of a segment without a report. Out of line, because the callers have no stack
 * to spare.
 */
VCC_APART int marks_by_header(struct vcc_flow *f, const struct vcc_segment *s,
			      const struct ack_news *news, struct vcc_action *a,
			      struct mark_news *marks)
{
	if (!f || !s || !news || !a || !marks)
		return -1;
	if (f->accecn)
		marks_by_accecn(f, s, news, a, marks);
	else
		marks_by_echo(f, s, news->acked_bytes, marks);
	return 0;
}

/* To-guest: the marks on the guest's data that a segment reports, echoes or counts. */
VCC_INLINE void marks_from_peer(struct vcc_flow *f, const struct vcc_segment *s,
				const struct ack_news *news, struct vcc_action *a,
				struct mark_news *marks)
{
	*marks = (struct mark_news){ .precise = true };
	if (!(s->options & OPT_FACK) && !is_echo(f, s))
		note_unmarked(f);
	if (believes_reports(f) && (s->options & (OPT_PACK | OPT_FACK))) {
		marks_by_report(f, s, a, marks);
		if (!(f->flags & FLOW_FEEDBACK_LOST))
			return;
	}
	marks_by_header(f, s, news, a, marks);
}

/* To-guest: the receiver half counts the marks on the peer's data, or latches them. */
VCC_INLINE void count_marks(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (f->accecn) {
		accecn_count(f, s);
		return;
	}
	if ((f->flags & FLOW_FEEDBACK) || echoes_dctcp(f))
		feedback_count(f, s);
	if (plays_receiver(f))
		ecn_latch(f, s);
}

/* From-guest: the receiver half reports to the peer. */
VCC_INLINE void marks_to_peer(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a)
{
	if (f->accecn) {
		/* The peer's counters count retransmissions, too. */
		if (segment_end(s) != f->snd_nxt)
			expect_report(f, s->payload_bytes);
		accecn_report(f, s, a);
		accecn_write(f, s, a);
		return;
	}
	if (f->flags & FLOW_FEEDBACK) {
		feedback_expect(f, s, a->ip_ecn);
		feedback_report(f, s, a);
	}
	if (echoes_dctcp(f))
		dctcp_echo(f, s, a);
	else if (plays_receiver(f))
		ecn_echo(f, a);
}

#endif
