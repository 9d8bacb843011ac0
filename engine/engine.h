/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The three calls of vcc.h, put together from the concerns. Include this in a shell. */
#ifndef VCC_ENGINE_H
#define VCC_ENGINE_H

#include "accept.h"
#include "cap.h"
#include "ecn.h"
#include "emit.h"
#include "expiry.h"
#include "feedback.h"
#include "handshake.h"
#include "judge.h"
#include "loss.h"
#include "mss.h"
#include "police.h"
#include "pool.h"
#include "push.h"
#include "signed.h"
#include "window.h"

VCC_INLINE struct vcc_action action_pass(const struct vcc_segment *s)
{
	return (struct vcc_action){
		.verdict = VCC_PASS,
		.ip_ecn = s->ip_ecn,
		.flags = s->flags,
		.window = s->window,
		.mss = s->mss,
		.wscale = s->wscale,
	};
}

/* RFC 5681, 4.1: a guest that was silent for an RTO starts again from the restart window. */
VCC_INLINE void restart_after_idle(struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s)
{
	if (!s->payload_bytes || flight_bytes(f) || f->ca_state != CA_OPEN ||
	    elapsed_us(f->progress_us, (uint32_t)s->now_us) < rto_us(f, p->rto_min_us))
		return;
	undo_forbid(f);
	cc_on_idle(f->underlay, &f->cc, vcc_max(p->initial_window_segs, 1));
	cwnd_validated(f, (uint32_t)s->now_us);
}

/* A segment of the guest takes its place among what was sent. */
VCC_INLINE enum vcc_sent sent_by_guest(struct vcc_flow *f, const struct vcc_params *p,
				       const struct vcc_segment *s)
{
	enum vcc_sent sent = track_sent(f, s);

	if (sent == SENT_NEW || sent == SENT_PARTLY_NEW)
		cwnd_validate(f, p, (uint32_t)s->now_us, s->seg_bytes);
	return sent;
}

VCC_INLINE void segment_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s, struct vcc_action *a)
{
	*a = action_pass(s);
	if (s->flags & TCP_SYN) {
		syns_from_guest(f, p, s, a);
		return;
	}
	if (f->stage == STAGE_NONE)
		return;
	if (s->flags & TCP_RST) {
		rst_from_guest(f, s);
		return;
	}
	note_seen(f, s);
	if (f->stage < STAGE_ESTABLISHED) {
		if (is_policed(f, p) && police_handshake(f, s))
			drop_policed(a);
		/* RFC 7413: a server may send before the handshake has ended. */
		else if (f->flags & FLOW_SYN_SEEN_PEER)
			sent_by_guest(f, p, s);
		return;
	}
	/* Who still sends has not accepted the RST that passed. */
	if (f->stage == STAGE_CLOSED)
		f->stage = STAGE_ESTABLISHED;
	track_receiver(f, s);
	/* A FIN that the peer throws away is no end, and what it follows was not sent. */
	if ((s->flags & TCP_FIN) && !peer_accepts(f, s))
		return;
	if (is_policed(f, p) && (police(f, s) || police_fin(f, s))) {
		drop_policed(a);
		return;
	}

	restart_after_idle(f, p, s);
	undo_sent_again(f, s);
	enum vcc_sent sent = sent_by_guest(f, p, s);

	f->guest_cwrs += (s->flags & TCP_CWR) && f->guest_cwrs < UINT16_MAX;
	note_fin(f, s->flags, FLOW_FIN_GUEST);
	if (is_managed(f))
		loss_from_guest(f, p, sent, s);
	if (sent != SENT_NOTHING)
		mss_from_guest(f, s);
	if (!is_managed(f))
		return;
	if (!translates(f, p))
		return;
	if (s->payload_bytes && p->pace_push && imposes(f, p))
		a->flags = push_flags(f, p, s);
	ecn_mark(f, sent, s, a);
	strip_ours(f, p, false, s, a);
	if (f->flags & FLOW_FEEDBACK) {
		feedback_expect(f, s, a->ip_ecn);
		feedback_report(f, s, a);
	}
	if (echoes_dctcp(f))
		dctcp_echo(f, s, a);
	else if (receives_for_guest(f))
		ecn_echo(f, a);
}

VCC_INLINE struct vcc_action vcc_from_guest(struct vcc_flow *f, const struct vcc_params *p,
					    const struct vcc_segment *s)
{
	struct vcc_action a;

	segment_from_guest(f, p, s, &a);
	return a;
}

VCC_INLINE struct vcc_cc_ack cc_ack(const struct vcc_flow *f, const struct vcc_params *p,
				    const struct vcc_segment *s, const struct ack_news *news,
				    const struct mark_news *marks)
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
		.snd_nxt = f->snd_nxt,
		.window_limited = !capped && window_limited(f),
	};
}

/* The sender half on an ACK or a report: tell the underlay how much was marked. */
VCC_INLINE void sender_on_marks(struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_cc_ack *ack, const struct mark_news *marks)
{
	cc_on_feedback(f->underlay, &f->cc, ack);
	f->marks += !!marks->marked_bytes;
	if (!marks->marked_bytes)
		return;
	/* A reduction that is under way answers the mark as well, and so it stands. */
	undo_forbid(f);
	if (f->ca_state == CA_OPEN)
		reduction_begin(f, p, marks->precise ? CONGESTION_ECN : CONGESTION_ECHO);
}

/*
 * The sender half on an ACK: what the underlay makes of it. Returns the bytes beyond snd_una that
 * the guest may have in flight.
 */
VCC_INLINE uint32_t sender_on_ack(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s, const struct ack_news *news,
				  const struct mark_news *marks)
{
	enum vcc_ca_state before = f->ca_state;

	reduction_end(f, s);
	undo_expire(f);
	loss_from_resent(f, p, s, news);
	struct vcc_cc_ack ack = cc_ack(f, p, s, news, marks);

	sender_on_marks(f, p, &ack, marks);
	loss_from_dupacks(f, p, s);

	uint64_t granted_bytes;

	if (p->prr && (f->ca_state == CA_CWR || f->ca_state == CA_RECOVERY)) {
		/* Nothing delivered, nothing more to send: the window stays as it was shown. */
		granted_bytes = 0;
		if (news->delivered_bytes)
			granted_bytes =
			    flight_filled_bytes(f) + (uint64_t)prr_segs(f, news) * f->mss_bytes;
	} else {
		if (news->acked_bytes && (f->ca_state == CA_OPEN || f->ca_state == CA_LOSS)) {
			ack.acked_bytes = growth_bytes(f, news, before);
			cc_on_ack(f->underlay, &f->cc, &ack);
		}
		/* Limited transmit (RFC 3042): what left the network makes room. */
		uint64_t granted_segs = f->cc.cwnd_segs;

		if (f->dupacks)
			granted_segs += bytes_to_segs_ceil(f, sacked_bytes(f));
		granted_bytes = granted_segs * f->mss_bytes;
	}
	/* A window that shrank onto the flight is full as well, though nothing can be sent. */
	if (window_full(f, false))
		cwnd_validate(f, p, (uint32_t)s->now_us, false);
	uint32_t capped_bytes = cap_segs(f, p, CWND_MAX_SEGS) * f->mss_bytes;

	if (granted_bytes < capped_bytes)
		capped_bytes = (uint32_t)granted_bytes;
	return pool_limit(f, s, news->delivered_bytes, capped_bytes);
}

/* Show the guest its window. Drops an update that the clamp made look like a duplicate ACK. */
VCC_INLINE void enforce(struct vcc_flow *f, const struct vcc_params *p, const struct vcc_segment *s,
			const struct ack_news *news, uint32_t granted_bytes, struct vcc_action *a)
{
	uint16_t before = f->window_shown;

	a->window = window_field(f, p, s, news, granted_bytes);
	VCC_LAW(a->window <= window_translate(f, s->window));
	VCC_LAW(a->window || !s->window);
	/* A guest with SACK does not count by the window; one without would count this. */
	if (news->same_ack && a->window == before && !(s->flags & TCP_RST)) {
		a->verdict = VCC_DROP;
		count_drop(f);
	}
	window_note(f, s, a->window);
}

/* An ACK that acknowledges all that any ACK has: it speaks for the path as it is now. */
VCC_INLINE void to_guest_current(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, const struct ack_news *news,
				 struct vcc_action *a)
{
	struct mark_news marks;

	feedback_from_peer(f, s, news->acked_bytes, a, &marks);
	uint32_t granted_bytes = sender_on_ack(f, p, s, news, &marks);

	if (imposes(f, p))
		enforce(f, p, s, news, granted_bytes, a);
	else
		window_note(f, s, a->window);
	f->segs_since_ack = 0;
}

/* A FACK: all that it has to say is the report. It may come before what it went beside. */
VCC_INLINE void fack_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *a)
{
	struct ack_news nothing = {};
	struct mark_news marks;

	a->verdict = VCC_CONSUME;
	if (!fack_plausible(f, s))
		return;
	note_seen(f, s);
	feedback_from_peer(f, s, 0, a, &marks);
	if (!marks.marked_bytes && !marks.reported_bytes)
		return;
	reduction_end(f, s);
	struct vcc_cc_ack ack = cc_ack(f, p, s, &nothing, &marks);

	sender_on_marks(f, p, &ack, &marks);
}

/*
 * The guest will throw this away, and we learn nothing from it. But not every TCP does all that it
 * should: none of it shows the guest more than it has, or another's ECN. An ACK beyond what was
 * sent may be of a segment that passed while the flow was held elsewhere.
 */
VCC_INLINE void refused_to_guest(const struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	if (!is_managed(f))
		return;
	if (imposes(f, p)) {
		uint32_t held = window_old(f, s);

		if (seq_after(s->ack, f->snd_nxt))
			held = vcc_max(f->window_shown, held);
		a->window = (uint16_t)vcc_min(held, a->window);
	}
	if (translates(f, p))
		ecn_hide(f, a);
}

VCC_INLINE void segment_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	*a = action_pass(s);
	if (s->flags & TCP_SYN) {
		syns_to_guest(f, p, s, a);
		return;
	}
	if (f->stage == STAGE_NONE)
		return;
	if (s->flags & TCP_RST) {
		rst_to_guest(f, s);
		return;
	}
	if (s->flags & TCP_ACK)
		handshake_ack_to_guest(f, p, s);
	if (f->stage < STAGE_ESTABLISHED)
		return;
	if (is_fack(f, p, s)) {
		fack_to_guest(f, p, s, a);
		return;
	}
	strip_ours(f, p, f->flags & FLOW_FEEDBACK, s, a);
	/* Whatever else is done: the guest reads the field at the scale that it was told. */
	const uint16_t offered = window_translate(f, s->window);

	a->window = offered;
	if (!guest_accepts(f, s)) {
		refused_to_guest(f, p, s, a);
		return;
	}
	note_seen(f, s);
	note_peer_classic(f, s);
	track_peer(f, s);
	note_fin(f, s->flags, FLOW_FIN_PEER);
	application_limited(f, p);
	struct ack_news news = track_acked(f, s);

	if (!is_managed(f)) {
		/* It may come under an underlay yet, and the edge that it has seen stays. */
		window_note(f, s, offered);
		return;
	}
	/* Told once, and perhaps on an ACK that another has overtaken. */
	if (!seq_after(s->ack, f->snd_una)) {
		undo_by_dsack(f, p, s);
		probe_by_dsack(f, s);
	}
	if (s->ack == f->snd_una)
		to_guest_current(f, p, s, &news, a);
	else
		a->window = (uint16_t)vcc_min(window_old(f, s), offered);
	if (!imposes(f, p))
		a->window = offered;
	if (!translates(f, p))
		return;
	if ((f->flags & FLOW_FEEDBACK) || echoes_dctcp(f))
		feedback_count(f, s);
	if (receives_for_guest(f))
		ecn_latch(f, s);
	ecn_hide(f, a);
}

VCC_INLINE struct vcc_action vcc_to_guest(struct vcc_flow *f, const struct vcc_params *p,
					  const struct vcc_segment *s)
{
	struct vcc_action a;

	segment_to_guest(f, p, s, &a);
	return a;
}

/*
 * Time has passed. Infers a timeout of the sender half, and the flow's end when nothing has come
 * for long. The action says when to call again (deadline_ms from now), or to forget the flow.
 */
VCC_INLINE struct vcc_action vcc_deadline(struct vcc_flow *f, const struct vcc_params *p,
					  uint64_t now_us)
{
	struct vcc_action a = {};
	uint32_t idle_ms = (uint32_t)(now_us / 1000) - f->last_seen_ms;
	uint32_t limit_ms = idle_limit_ms(f, p);

	/* The clock of another CPU may be a little behind the last segment's. */
	if ((int32_t)idle_ms < 0)
		idle_ms = 0;
	if (idle_ms >= limit_ms) {
		a.forget = true;
		return a;
	}
	a.deadline_ms = limit_ms - idle_ms;
	if (is_managed(f) && f->stage == STAGE_ESTABLISHED && flight_bytes(f)) {
		if (rto_passed(f, p, (uint32_t)now_us))
			timeout_begin(f, (uint32_t)now_us);
		/* Taken after that: a timeout restarts the timer. */
		uint32_t since_us = elapsed_us(f->progress_us, (uint32_t)now_us);
		uint32_t left_us = vcc_sub_floor0(rto_us(f, p->rto_min_us), since_us);

		a.deadline_ms = vcc_min(a.deadline_ms, left_us / 1000 + 1);
		if (imposes(f, p)) {
			prod(f, p, since_us, &a);
			update_window(f, p, &a);
		}
	}
	return a;
}

#endif
