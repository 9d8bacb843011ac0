/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sender half on ACKs and reports: runs the underlay and yields the window to show. */
#ifndef VCC_SENDER_H
#define VCC_SENDER_H

#include "window_cap.h"
#include "marks.h"
#include "loss.h"

VCC_INLINE struct vcc_cc_ack cc_ack(const struct vcc_flow *f, const struct vcc_params *p,
				    const struct vcc_segment *s, const struct ack_news *news,
				    const struct mark_news *marks, uint32_t snd_nxt)
{
	bool capped = f->cc.cwnd_segs >= cap_segs(f, p, CWND_MAX_SEGS);

	return (struct vcc_cc_ack){
		.acked_bytes = news->acked_bytes,
		.reported_bytes = marks->reported_bytes,
		.marked_bytes = marks->marked_bytes,
		.srtt_us = f->srtt_us8 >> 3,
		.mss_bytes = f->mss_bytes,
		.now_us = (uint32_t)s->now_us,
		.snd_una = f->snd_una,
		.snd_nxt = snd_nxt,
		.window_limited = !capped && window_limited(f),
		.timed = news->timed,
		.fractional = is_fractional(f, p),
	};
}

/* Passes marks to the underlay. */
VCC_INLINE void sender_on_marks(struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_cc_ack *ack, const struct mark_news *marks)
{
	cc_on_feedback(f->underlay, &f->cc, ack);
	f->marks += !!marks->marked_bytes;
	if (!marks->marked_bytes)
		return;
	/* An ongoing reduction also answers the mark, so it must not be undone. */
	undo_forbid(f);
	if (f->ca_state != CA_OPEN)
		return;
	reduction_begin(f, p, marks->precise ? CONGESTION_ECN : CONGESTION_ECHO);
	/* What the guest is about to send belongs to the window that was marked (law 6). */
	f->recover = ack->snd_nxt;
}

/*
 * Runs the underlay on an ACK. Returns the bytes beyond snd_una that the guest may have in flight
 * by its window and the cap.
 */
VCC_INLINE uint32_t sender_on_ack(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s, const struct ack_news *news,
				  const struct mark_news *marks)
{
	enum vcc_ca_state before = f->ca_state;
	/* By the window that was shown: the end of a reduction may raise it. */
	uint32_t snd_nxt = snd_nxt_due(f, p, news->acked_bytes);

	reduction_end(f, s);
	undo_expire(f);
	loss_from_resent(f, p, s, news);
	struct vcc_cc_ack ack = cc_ack(f, p, s, news, marks, snd_nxt);

	sender_on_marks(f, p, &ack, marks);
	loss_from_dupacks(f, p, s);

	uint64_t granted_bytes;

	if (p->prr && is_reducing(f)) {
		granted_bytes = prr_granted_bytes(f, news, ack.snd_nxt);
	} else {
		if (news->acked_bytes && (f->ca_state == CA_OPEN || f->ca_state == CA_LOSS)) {
			uint32_t before_segs = f->cc.cwnd_segs;

			ack.acked_bytes = growth_bytes(f, news, before);
			cc_on_ack(f->underlay, &f->cc, &ack);
			undo_unless_grown(f, before_segs);
		}
		/* Limited transmit (RFC 3042): segments that left the network make room. */
		uint64_t granted_segs = window_segs(f, p);

		if (f->dupacks)
			granted_segs += bytes_to_segs_ceil(f, sacked_bytes(f));
		granted_bytes = granted_segs * f->mss_bytes;
	}
	/* A window reduced to the flight size is full too, though the guest cannot send. */
	if (window_full(f, false))
		cwnd_validate(f, p, (uint32_t)s->now_us, false);
	uint32_t capped_bytes = cap_segs(f, p, CWND_MAX_SEGS) * f->mss_bytes;

	return granted_bytes < capped_bytes ? (uint32_t)granted_bytes : capped_bytes;
}

#endif
