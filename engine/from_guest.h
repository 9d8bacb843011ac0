/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A segment from the guest, through the engine's concerns in order. */
#ifndef VCC_FROM_GUEST_H
#define VCC_FROM_GUEST_H

#include "acceptability.h"
#include "arrival.h"
#include "feedback.h"
#include "handshake.h"
#include "loss.h"
#include "marks.h"
#include "mss.h"
#include "policing.h"
#include "push.h"
#include "rcv_rtt.h"

/* If an RTO has passed, restarts from the restart window. Out of line, because it is rare. */
VCC_APART int window_restart(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s)
{
	if (!f || !p || !s || elapsed_us(f->progress_us, (uint32_t)s->now_us) < idle_rto_us(f, p))
		return 0;
	undo_forbid(f);
	cc_on_idle(f->underlay, &f->cc, vcc_max(p->initial_window_segs, 1));
	reduction_restart(f);
	cwnd_validated(f, (uint32_t)s->now_us);
	return 0;
}

/* The guest sends after it had nothing in flight (RFC 5681, 4.1). */
VCC_INLINE void restart_after_idle(struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s)
{
	if (s->payload_bytes && !flight_bytes(f) &&
	    elapsed_us(f->progress_us, (uint32_t)s->now_us) >= rto_least_us(p))
		window_restart(f, p, s);
}

/* Tracks a segment of the guest and validates its window. */
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
		ecn_unmark(f, p, a);
		return;
	}
	note_seen(f, s);
	if (f->stage < STAGE_ESTABLISHED) {
		if (!unanswered_from_guest(f, p, s, a) && is_policed(f, p) &&
		    police_handshake(f, p, s))
			drop_policed(a);
		/* A server may send before the handshake completes (RFC 7413). */
		else if (f->flags & FLOW_SYN_SEEN_PEER)
			sent_by_guest(f, p, s);
		ecn_unmark(f, p, a);
		if (f->accecn && is_controlled(f) && translates(f, p))
			a->flags = with_ace(a->flags, f->ace_counted);
		return;
	}
	/* A guest that still sends did not accept the RST. */
	if (f->stage == STAGE_CLOSED)
		f->stage = STAGE_ESTABLISHED;
	catch_up_guest(f, p, s);
	if (is_policed(f, p) && police_ack(f, s)) {
		drop_policed(a);
		return;
	}
	delay_acked(f, p, s, a);
	rcv_rtt_from_guest(f, p, s);
	track_receiver(f, s);
	if (is_policed(f, p) && (police(f, s) || police_fin(f, s))) {
		drop_policed(a);
		return;
	}
	/* The peer discards an unacceptable FIN with its data (RFC 9293, 3.10.7.4). */
	if ((s->flags & TCP_FIN) && !peer_accepts_fin(f, s)) {
		ecn_unmark(f, p, a);
		return;
	}

	restart_after_idle(f, p, s);
	undo_sent_again(f, s);
	runt_from_guest(f, s);
	if (may_be_full(f, s))
		mss_from_run(f, s);
	enum vcc_sent sent = sent_by_guest(f, p, s);

	delay_sent(f, p, s, sent, a);
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
	marks_to_peer(f, s, a);
}

#endif
