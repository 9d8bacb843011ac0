/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A segment to the guest, through the engine's concerns in order. */
#ifndef VCC_TO_GUEST_H
#define VCC_TO_GUEST_H

#include "acceptability.h"
#include "arrival.h"
#include "fragments.h"
#include "handshake.h"
#include "pacing.h"
#include "path.h"
#include "pool.h"
#include "rcv_rtt.h"
#include "sender.h"
#include "window.h"

/* The sender half's outcome of a segment to the guest, for a shell that holds segments (hold.h). */
struct ack_outcome {
	struct ack_news news;
	/* With `current`: bytes beyond snd_una by the underlay's window, and by a pool too. */
	uint32_t underlay_bytes;
	uint32_t granted_bytes;
	bool accepted; /* an ACK of an open connection that the guest accepts */
	bool current;  /* an ACK at the highest acknowledgement seen */
};

/* Shows the guest its window. Drops a window update that would look like a duplicate ACK. */
VCC_INLINE void enforce(struct vcc_flow *f, const struct vcc_params *p, const struct vcc_segment *s,
			const struct ack_news *news, uint32_t granted_bytes, struct vcc_action *a)
{
	uint16_t before = f->window_shown;

	runt_unsent(f);
	a->window = window_field(f, p, s, news, granted_bytes);
	/* Law 1: never advertise more than the receiver did. */
	VCC_LAW(a->window <= window_translate(f, s->window));
	/* Law 3: a non-zero window never becomes zero. */
	VCC_LAW(a->window || !s->window);
	/* An unchanged window turns an update into a duplicate ACK for a guest without SACK. */
	if (news->same_ack && a->window == before && !(s->flags & TCP_RST)) {
		a->verdict = VCC_DROP;
		count_drop(f);
	}
	window_note(f, s, a->window);
	if (a->verdict == VCC_PASS)
		a->delay_us = ack_delay_us(f, p, s, news->acked_bytes);
}

/* An ACK at the highest acknowledgement seen: its window and marks are current. */
VCC_INLINE void to_guest_current(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct ack_outcome *outcome,
				 struct vcc_action *a)
{
	const struct ack_news *news = &outcome->news;
	struct mark_news marks;

	marks_from_peer(f, s, news, a, &marks);
	outcome->current = true;
	outcome->underlay_bytes = sender_on_ack(f, p, s, news, &marks);
	outcome->granted_bytes = pool_limit(f, s, news->delivered_bytes, outcome->underlay_bytes);
	if (acts_by_window(f, p))
		enforce(f, p, s, news, outcome->granted_bytes, a);
	else if (!acts_by_hold(f, p))
		window_note(f, s, a->window);
	f->segs_since_ack = 0;
}

/*
 * A FACK carries only the report, and acknowledges nothing. It may arrive before the segment beside
 * it.
 */
VCC_INLINE void fack_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, const struct ack_news *nothing,
			      struct vcc_action *a)
{
	struct mark_news marks;

	a->verdict = VCC_CONSUME;
	if (!fack_plausible(f, s))
		return;
	note_seen(f, s);
	marks_from_peer(f, s, nothing, a, &marks);
	if (!marks.marked_bytes && !marks.reported_bytes)
		return;
	uint32_t snd_nxt = snd_nxt_due(f, p, 0);

	reduction_end(f, s);
	struct vcc_cc_ack ack = cc_ack(f, p, s, nothing, &marks, snd_nxt);

	sender_on_marks(f, p, &ack, &marks);
}

/*
 * A segment that the guest should discard (RFC 9293, 3.10.7.4) teaches the engine nothing (law 17).
 * Some TCPs accept it nevertheless, so it must show neither a larger window nor foreign ECN. An ACK
 * beyond snd_nxt may acknowledge a segment that passed untracked while another CPU held the flow.
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
		/* Under `hold` the edge that the guest was shown may lie beyond the peer's. */
		if (acts_by_window(f, p))
			held = vcc_min(held, a->window);
		a->window = (uint16_t)vcc_min(held, UINT16_MAX);
	}
	if (translates(f, p))
		ecn_hide(f, a);
}

/* An acceptable segment of a flow that the engine controls; a->window is the peer's, translated. */
VCC_INLINE void managed_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct ack_outcome *outcome,
				 struct vcc_action *a)
{
	const uint16_t offered = a->window;

	if (p->police)
		undo_prove(f, s);
	/* A DSACK block is sent once, perhaps on a reordered ACK. */
	if (!seq_after(s->ack, f->snd_una)) {
		undo_by_dsack(f, p, s);
		probe_by_dsack(f, s);
	}
	if (s->ack == f->snd_una)
		to_guest_current(f, p, s, outcome, a);
	else
		a->window =
		    (uint16_t)vcc_min(window_old(f, s), acts_by_hold(f, p) ? UINT16_MAX : offered);
	if (!imposes(f, p))
		a->window = offered;
	if (!translates(f, p))
		return;
	count_marks(f, s);
	ecn_hide(f, a);
}

/*
 * Does the guest accept a segment of an open connection? Then its numbers are tracked. Apart, or
 * the caller would need more stack than BPF has.
 */
VCC_APART int hear_peer(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!f || !s)
		return 0;
	fragments_acked(f, s);
	if (!guest_accepts(f, s))
		return 0;
	note_seen(f, s);
	catch_up_peer(f, s);
	note_peer_classic(f, s);
	/*
	 * Behind a FIN the guest takes nothing (RFC 9293, 3.10.7.4). If the FIN came before data
	 * that are missing, the guest's acknowledgement shows when it has them.
	 */
	if (!(f->flags & FLOW_FIN_PEER))
		track_peer(f, s);
	note_fin(f, s->flags, FLOW_FIN_PEER);
	return 1;
}

VCC_INLINE void segment_to_guest_outcome(struct vcc_flow *f, const struct vcc_params *p,
					 const struct vcc_segment *s, struct vcc_action *a,
					 struct ack_outcome *outcome)
{
	*a = action_pass(s);
	*outcome = (struct ack_outcome){};
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
	if (f->stage < STAGE_ESTABLISHED) {
		unanswered_to_guest(f, s, a);
		return;
	}
	if (is_fack(f, p, s)) {
		fack_to_guest(f, p, s, &outcome->news, a);
		return;
	}
	outcome->accepted = hear_peer(f, s);
	strip_ours(f, p, agreed_ours(f, s), s, a);
	/* The guest always reads the window field at the scale it was shown. */
	a->window = window_translate(f, s->window);
	if (!outcome->accepted) {
		refused_to_guest(f, p, s, a);
		return;
	}
	application_limited(f, p);
	outcome->news = track_acked(f, s);
	path_measure(f, p, s, &outcome->news);

	if (is_managed(f)) {
		managed_to_guest(f, p, s, outcome, a);
	} else {
		/* What is held of it leaves by the peer's window (hold.h). */
		outcome->current = s->ack == f->snd_una;
		/* The flow may get an underlay later; law 2 holds for it from now on. */
		window_note(f, s, a->window);
	}
	delay_to_guest(f, p, s, &outcome->news, s->ack + ((uint32_t)a->window << f->wscale_shown),
		       a);
	rcv_rtt_to_guest(f, p, s, a);
}

VCC_INLINE void segment_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	struct ack_outcome outcome;

	segment_to_guest_outcome(f, p, s, a, &outcome);
}

#endif
