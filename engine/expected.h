/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Header prediction (Van Jacobson; Linux: tcp_rcv_established). Most segments of an established
 * connection are new data in order or ACKs of new data without options but timestamps, and nothing
 * was lost or marked. What from_guest.h and to_guest.h do with these is little, and here it is
 * alone. A shell tries this first; the result is the same (crates/vcc-engine/tests/expected.rs).
 */
#ifndef VCC_EXPECTED_H
#define VCC_EXPECTED_H

#include "from_guest.h"
#include "to_guest.h"

/* An established flow whose window is enforced, at its usual: no reduction, no end, no extras. */
VCC_INLINE bool is_at_ease(const struct vcc_flow *f, const struct vcc_params *p)
{
	const uint32_t unusual = FLOW_LEFT_ALONE | FLOW_RELEASED | FLOW_FEEDBACK |
				 FLOW_ACCECN_GUEST | FLOW_PEER_DCTCP | FLOW_FIN_GUEST |
				 FLOW_FIN_PEER;
	const uint32_t special =
	    p->act | p->police | p->pool_weight | p->window_cap_bytes | p->rate_cap_bytes_per_ms;

	return f->stage == STAGE_ESTABLISHED && !(f->flags & unusual) &&
	       !(f->ca_state | f->resent | f->dupacks) && is_controlled(f) && mode_changes(p) &&
	       p->delays && !special;
}

/* ACK, perhaps with PSH, and no options but timestamps. */
VCC_INLINE bool is_plain(const struct vcc_segment *s)
{
	return (s->flags | TCP_PSH) == (TCP_ACK | TCP_PSH) && !(s->options & ~OPT_TIMESTAMPS);
}

/* From-guest: new segments in order while others are in flight, and the guest owes no ACK. */
VCC_INLINE bool is_expected_data(const struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s)
{
	return is_plain(s) && s->payload_bytes && s->seq == f->snd_nxt && is_at_ease(f, p) &&
	       flight_bytes(f) && seq_plausible(f->snd_una, segment_end(s)) && f->settled &&
	       (f->asked == ASKED_NOTHING || f->asked == ASKED_DATA) &&
	       (f->rcv_rtt == RCV_RTT_NONE || f->rcv_rtt == RCV_RTT_TIMED) && !tells_mss(f, s);
}

/* segment_from_guest() for is_expected_data(). */
VCC_INLINE void data_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s, struct vcc_action *a)
{
	uint32_t now_us = (uint32_t)s->now_us;

	*a = action_pass(s);
	note_seen(f, s);
	track_receiver(f, s);
	f->snd_nxt = segment_end(s);
	rtt_start(f, f->snd_nxt, now_us);
	cwnd_validate(f, p, now_us, s->seg_bytes);
	delay_sent(f, p, s, SENT_NEW, a);
	if (p->pace_push)
		a->flags = push_flags(f, p, s);
	ecn_mark(f, SENT_NEW, s, a);
	if (ecn_is_ours(f))
		ecn_echo(f, a);
}

/* To-guest: an acceptable ACK of new data, without payload, of a window in use (RFC 7661). */
VCC_INLINE bool is_expected_ack(const struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s)
{
	/* At most the RTO (rtt.h). */
	uint32_t valid_us = vcc_min(p->rto_min_us, RTO_INITIAL_US);

	return is_plain(s) && !s->payload_bytes && is_at_ease(f, p) &&
	       (f->flags & FLOW_WINDOW_SHOWN) && seq_after(s->ack, f->snd_una) &&
	       !seq_after(s->ack, f->snd_nxt) && in_guests_window(f, s) &&
	       (window_limited(f) || elapsed_us(f->validated_us, f->sent_us) < valid_us);
}

/* segment_to_guest() for is_expected_ack(). */
VCC_INLINE void ack_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, struct vcc_action *a)
{
	struct ack_news news = {
		.acked_bytes = s->ack - f->snd_una,
		.delivered_bytes = s->ack - f->snd_una,
	};
	struct mark_news marks = { .reported_bytes = news.acked_bytes };

	*a = action_pass(s);
	note_seen(f, s);
	news.rtt_us = track_advance(f, s);
	note_unmarked(f);
	undo_expire(f);
	struct vcc_cc_ack ack = cc_ack(f, p, s, &news, &marks);

	cc_feedback(f->underlay, &f->cc, &ack);
	cc_grow(f->underlay, &f->cc, &ack);
	if (window_full(f, false))
		cwnd_validate(f, p, (uint32_t)s->now_us, false);
	a->window = window_field(f, p, s, &news, f->cc.cwnd_segs * f->mss_bytes);
	window_note(f, s, a->window);
	f->segs_since_ack = 0;
	ecn_hide(f, a);
	delay_to_guest(f, p, s, &news, s->ack + ((uint32_t)a->window << f->wscale_shown), a);
}

#endif
