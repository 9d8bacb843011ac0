/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Header prediction (Van Jacobson; Linux: tcp_rcv_established). Most segments of an established
 * connection are new data or ACKs of new data, with no options but timestamps or a report, and
 * nothing was lost or marked. from_guest.h and to_guest.h do little with these, and only that is
 * here. A shell tries this first; the result is the same (crates/vcc-engine/native.c).
 */
#ifndef VCC_HEADER_PREDICTION_H
#define VCC_HEADER_PREDICTION_H

#include "clock.h"
#include "from_guest.h"
#include "to_guest.h"

/*
 * An established flow whose window is enforced, in its usual state: no reduction, no end, no
 * extras.
 */
VCC_INLINE bool is_fast_path_eligible(const struct vcc_flow *f, const struct vcc_params *p)
{
	const uint32_t unusual = FLOW_LEFT_ALONE | FLOW_RELEASED | FLOW_ACCECN_GUEST |
				 FLOW_PEER_DCTCP | FLOW_FIN_GUEST | FLOW_FIN_PEER |
				 FLOW_FEEDBACK_LOST | FLOW_FEEDBACK_FALSE | FLOW_UNHEARD;
	const uint32_t special =
	    p->act | p->police | p->pool_weight | p->window_cap_bytes | p->rate_cap_bytes_per_ms;

	/* Where delays are not measured, earlier measurements must be forgotten. */
	return f->stage == STAGE_ESTABLISHED && !(f->flags & unusual) &&
	       !(f->ca_state | f->resent | f->dupacks | f->lags) && is_controlled(f) &&
	       mode_changes(p) && p->delays && !special;
}

/* ACK with these ECN bits, perhaps with PSH, and no options but `options`. */
VCC_INLINE bool is_plain(const struct vcc_segment *s, uint32_t ecn_bits, uint32_t options)
{
	return (s->flags | TCP_PSH) == (TCP_ACK | TCP_PSH | ecn_bits) && !(s->options & ~options);
}

/* From-guest: new data in order, or an ACK alone. */
VCC_INLINE bool is_predicted_from_guest(const struct vcc_flow *f, const struct vcc_params *p,
					const struct vcc_segment *s)
{
	if (!is_plain(s, 0, OPT_TIMESTAMPS) || !is_fast_path_eligible(f, p) || !f->settled)
		return false;
	if (!s->payload_bytes)
		return true;
	return s->seq == f->snd_nxt && seq_plausible(f->snd_una, segment_end(s)) &&
	       !reveals_mss(f, s) && !may_be_full(f, s) && !ends_in_runt(f, s);
}

/* segment_from_guest() for is_predicted_from_guest(). */
VCC_INLINE void predicted_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				     const struct vcc_segment *s, struct vcc_action *a)
{
	uint32_t now_us = (uint32_t)s->now_us;
	enum vcc_sent sent = SENT_NOTHING;

	VCC_LAW(!s->at_tick || !needs_time_from_guest(f, p, s));
	*a = action_pass(s);
	note_seen(f, s);
	delay_acked(f, p, s, a);
	rcv_rtt_from_guest(f, p, s);
	track_receiver(f, s);
	if (s->payload_bytes) {
		sent = SENT_NEW;
		restart_after_idle(f, p, s);
		if (!flight_bytes(f))
			f->progress_us = now_us; /* RFC 6298, 5.1 */
		f->snd_nxt = segment_end(s);
		rtt_start(f, f->snd_nxt, now_us);
		cwnd_validate(f, p, now_us, s->seg_bytes);
		delay_sent(f, p, s, sent, a);
		if (p->pace_push)
			a->flags = push_flags(f, p, s);
	}
	ecn_mark(f, sent, s, a);
	marks_to_peer(f, s, a);
}

/*
 * Does the segment bring a report that is newer than the last, free of marks and no more than was
 * sent, or does it bring none while none is overdue?
 */
VCC_INLINE bool is_predicted_report(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t ect0_bytes = (s->feedback.ect0_bytes - f->heard.ect0_bytes) & COUNTER_MASK;

	if (!(f->flags & FLOW_FEEDBACK))
		return !(s->options & OPT_PACK);
	if (!(s->options & OPT_PACK))
		return seq_distance(f->feedback_ack, f->snd_una) < patience_bytes(f);
	return !(f->flags & FLOW_ECE_HEARD) && s->feedback.ce_bytes == f->heard.ce_bytes &&
	       ect0_bytes <= COUNTER_MASK / 2 && ect0_bytes <= f->unreported_bytes &&
	       seq_after(s->ack, f->feedback_ack);
}

/*
 * AccECN: does the option, if there is one, report no mark, and do the counters need no more? The
 * ACE field is as it was.
 */
VCC_INLINE bool is_predicted_count(const struct vcc_flow *f, const struct vcc_segment *s,
				   uint32_t acked_bytes)
{
	bool counts = s->options & (OPT_PACK | OPT_ACCECN_CE);

	if ((f->accecn & (ACCECN_HEARD | ACCECN_SETTLES)) != ACCECN_HEARD)
		return false;
	if (!counts || (f->accecn & ACCECN_OPTION_FALSE))
		return acked_bytes <= ACE_MASK * f->mss_bytes ||
		       f->ack_segs64 > ACK_SEGS_USUAL << ACK_SEGS_SHIFT;
	return !f->guessed_bytes && s->feedback.ce_bytes == f->heard.ce_bytes &&
	       f->unreported_bytes + acked_bytes <= COUNTER_MASK / 2;
}

/* To-guest: an ACK of new data, or data with an acknowledgement that is not older than the last. */
VCC_INLINE bool is_predicted_to_guest(const struct vcc_flow *f, const struct vcc_params *p,
				      const struct vcc_segment *s)
{
	uint32_t acked_bytes = s->ack - f->snd_una;
	uint32_t ace = f->accecn ? with_ace(0, f->ace_heard) : 0;
	uint32_t options = OPT_TIMESTAMPS | OPT_PACK | (f->accecn ? OPT_ACCECN | OPT_ACCECN_CE : 0);

	return is_plain(s, ace, options) && is_fast_path_eligible(f, p) &&
	       (f->flags & FLOW_WINDOW_SHOWN) && (acked_bytes || s->payload_bytes) &&
	       acked_bytes <= flight_bytes(f) && in_guests_window(f, s) && !paces(f, p) &&
	       (f->accecn ? is_predicted_count(f, s, acked_bytes) : is_predicted_report(f, s));
}

/* AccECN: accounts for the ACK as marks_by_accecn() does. */
VCC_INLINE uint32_t counted_bytes(struct vcc_flow *f, const struct vcc_segment *s,
				  uint32_t acked_bytes)
{
	expect_report(f, acked_bytes);
	if (!acked_bytes)
		return 0;
	if ((s->options & (OPT_PACK | OPT_ACCECN_CE)) && !(f->accecn & ACCECN_OPTION_FALSE))
		f->unreported_bytes = 0;
	accecn_note_ack(f, bytes_to_segs_ceil(f, acked_bytes));
	return acked_bytes;
}

/* The bytes that the segment reports as received. */
VCC_INLINE uint32_t reported_bytes(struct vcc_flow *f, const struct vcc_segment *s,
				   uint32_t acked_bytes)
{
	if (f->accecn)
		return counted_bytes(f, s, acked_bytes);
	if (!(s->options & OPT_PACK)) {
		bool by_reports = (f->flags & (FLOW_FEEDBACK | FLOW_FEEDBACK_HEARD)) ==
				  (FLOW_FEEDBACK | FLOW_FEEDBACK_HEARD);

		return by_reports ? 0 : acked_bytes;
	}
	uint32_t bytes = (s->feedback.ect0_bytes - f->heard.ect0_bytes) & COUNTER_MASK;

	feedback_believe(f, s, bytes);
	f->feedback_ack = s->ack;
	return bytes;
}

/* segment_to_guest() for is_predicted_to_guest(). */
VCC_INLINE void predicted_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s, struct vcc_action *a)
{
	uint32_t acked_bytes = s->ack - f->snd_una;
	struct ack_news news = { .acked_bytes = acked_bytes, .delivered_bytes = acked_bytes };

	VCC_LAW(!s->at_tick || !needs_time_to_guest(f, p, s));
	*a = action_pass(s);
	a->strip = !!(s->options & OPT_OURS);
	note_seen(f, s);
	track_peer(f, s);
	application_limited(f, p);
	if (acked_bytes)
		news.rtt_us = track_advance(f, s);
	path_measure(f, p, s, &news);
	note_unmarked(f);
	struct mark_news marks = { .reported_bytes = reported_bytes(f, s, acked_bytes) };

	undo_expire(f);
	struct vcc_cc_ack ack = cc_ack(f, p, s, &news, &marks, snd_nxt_due(f, p, news.acked_bytes));

	uint32_t before_segs = f->cc.cwnd_segs;

	cc_advance(f->underlay, &f->cc, &ack, acked_bytes);
	undo_unless_grown(f, before_segs);
	if (window_full(f, false))
		cwnd_validate(f, p, (uint32_t)s->now_us, false);
	runt_unsent(f);
	a->window = window_field(f, p, s, &news, f->cc.cwnd_segs * f->mss_bytes);
	window_note(f, s, a->window);
	f->segs_since_ack = 0;
	count_marks(f, s);
	ecn_hide(f, a);
	delay_to_guest(f, p, s, &news, s->ack + ((uint32_t)a->window << f->wscale_shown), a);
	rcv_rtt_to_guest(f, p, s, a);
}

#endif
