/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `hold` (vFlood, section 3): the shell keeps the guest's segments in a FIFO in front of the engine
 * and releases them when the underlay's window and the peer's admit them. A guest whose vCPU is not
 * running then needs no turn to use an ACK.
 *
 * The engine sees a segment when it leaves, so the flow's snd_nxt is what the fabric has seen. The
 * guest is shown a window that has room for the underlay's window and its share of the buffer. That
 * may exceed the peer's window (law 1's exception), but nothing beyond the peer's right edge or the
 * underlay's window leaves (law 14). All that is held is unacknowledged to the guest, so the end of
 * the shell loses nothing (law 15).
 */
#ifndef VCC_HOLD_H
#define VCC_HOLD_H

#include "hold_release.h"

/*
 * The right edge of what may leave at once. No window is smaller than a segment, as in
 * hold_leaves_bytes(): with a part of one, a guest would wait for its persist timer (RFC 9293,
 * 3.8.6.2.1).
 */
VCC_INLINE uint32_t hold_leaving_edge(const struct vcc_flow *f, const struct vcc_hold *h,
				      const struct vcc_params *p)
{
	uint32_t edge = hold_underlay_edge(f, h, p);

	if (!flight_bytes(f))
		edge = seq_max(edge, f->snd_nxt + f->mss_bytes);
	return seq_min(edge, h->peer_edge);
}

/*
 * Does what the windows admit take room in the buffer, too? It is retained in flight, or may have
 * to wait for the rate of all the guest's connections, or for its time.
 */
VCC_INLINE bool takes_buffer(const struct vcc_flow *f, const struct vcc_hold *h,
			     const struct vcc_params *p)
{
	return h->retains || p->guest_rate_cap_bytes_per_ms || paces(f, p);
}

/*
 * The right edge to show to the guest (equations 2 and 3): beyond what it has sent, what may leave
 * at once and, online, what is left of its share of the buffer, once the `freed_bytes` of data that
 * are acknowledged are no longer retained.
 */
VCC_INLINE uint32_t hold_shown_edge(const struct vcc_flow *f, const struct vcc_hold *h,
				    const struct vcc_buffer *b, const struct vcc_params *p,
				    uint32_t freed_bytes)
{
	uint32_t leaving_bytes = seq_distance(f->snd_nxt, hold_leaving_edge(f, h, p));
	uint32_t waiting_bytes = seq_distance(f->snd_nxt, hold_guest_nxt(f, h));
	uint32_t room_bytes = vcc_sub_floor0(leaving_bytes, waiting_bytes);

	if (h->state == HOLD_ACTIVE || h->state == HOLD_NO_BUFFER) {
		/* What leaves gives its part of the buffer back, and so does what has arrived. */
		uint32_t stays_bytes = vcc_sub_floor0(
		    h->held_bytes, takes_buffer(f, h, p) ? freed_bytes : leaving_bytes);
		uint32_t granted_bytes =
		    hold_data_bytes(f, h, hold_grant_bytes(f, h, b, p, stays_bytes));

		/* Whole segments, as a receiver does (RFC 9293, 3.8.6.2.2). */
		granted_bytes -= granted_bytes % vcc_max(f->mss_bytes, 1);
		if (!takes_buffer(f, h, p))
			room_bytes += granted_bytes;
		else if (granted_bytes || stays_bytes)
			room_bytes = granted_bytes;
		else
			room_bytes = vcc_min(room_bytes, f->mss_bytes);
	}
	/* Beyond the largest window of snd_una nothing is admitted (hold_release.h). */
	uint32_t sent_bytes = seq_distance(f->snd_una, hold_guest_nxt(f, h));

	return hold_guest_nxt(f, h) +
	       vcc_min(room_bytes, vcc_sub_floor0(SEQ_WINDOW_MAX, sent_bytes));
}

/*
 * The bytes of the buffer that the next segment of the guest, up to `end`, may take: the rest of
 * the flow's share, or of what it was granted while its share was larger; and as much more as may
 * leave at once behind what is held. Within its window, the guest sends what it was shown: if that
 * may not leave any more, as the underlay's window has shrunk, it may take what is granted to
 * nobody.
 */
VCC_INLINE uint32_t hold_room_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				    const struct vcc_buffer *b, const struct vcc_params *p,
				    uint32_t end)
{
	uint32_t share_bytes = hold_share_bytes(f, h, b, p);
	uint32_t room_bytes = vcc_max(vcc_sub_floor0(share_bytes, h->held_bytes), h->granted_bytes);

	if (!seq_after(end, f->right_edge)) {
		uint32_t left_bytes = vcc_sub_floor0(b->size_bytes, b->used_bytes);

		left_bytes = vcc_sub_floor0(left_bytes, b->granted_bytes - h->granted_bytes);
		room_bytes = vcc_max(room_bytes, left_bytes);
	}
	if (!takes_buffer(f, h, p))
		room_bytes += seq_distance(hold_guest_nxt(f, h), hold_leaving_edge(f, h, p));
	return room_bytes;
}

/*
 * Called after a segment of either end, and after what was held has left: settles what the flow is
 * granted, which is what its window shows beyond what may leave at once. The window is never taken
 * back (law 2), so neither is the grant when the flow's share shrinks.
 */
VCC_INLINE void hold_settle(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			    const struct vcc_params *p, uint32_t now_ms)
{
	uint32_t from = hold_guest_nxt(f, h);

	if (!is_holding(f, h, p) || hold_idle_ms(f, h, now_ms) >= GRANT_IDLE_MS) {
		hold_gives_back(h, b);
		return;
	}
	h->most_bytes = vcc_max(h->most_bytes, h->held_bytes + (h->retains ? 0 : flight_bytes(f)));
	if (!takes_buffer(f, h, p))
		from = seq_max(from, hold_leaving_edge(f, h, p));
	uint32_t unused_bytes = hold_buffer_bytes(f, h, seq_distance(from, f->right_edge));
	uint32_t grant_bytes = hold_grant_bytes(f, h, b, p, h->held_bytes);

	hold_set_grant(h, b, vcc_min(unused_bytes, vcc_max(h->granted_bytes, grant_bytes)));
}

/* The window field for an ACK. The right edge never moves left (law 2); never 0 (law 3). */
VCC_INLINE uint16_t hold_field(const struct vcc_flow *f, const struct vcc_hold *h,
			       const struct vcc_buffer *b, const struct vcc_params *p, uint32_t ack,
			       uint32_t freed_bytes)
{
	uint32_t edge = hold_shown_edge(f, h, b, p, freed_bytes);

	edge = seq_max(edge, seq_max(f->right_edge, f->snd_nxt));
	uint32_t units = window_units(f, seq_distance(ack, edge));

	return (uint16_t)vcc_min(vcc_max(units, 1), UINT16_MAX);
}

/* The handshake is complete for the guest: the first windows of both ends (RFC 9293, 3.8.6). */
VCC_INLINE void hold_begin(const struct vcc_flow *f, struct vcc_hold *h, const struct vcc_params *p,
			   const struct vcc_segment *synack)
{
	uint32_t first_bytes = cap_segs(f, p, f->cc.cwnd_segs) * f->mss_bytes;

	*h = (struct vcc_hold){
		.held_end = f->snd_nxt,
		.held_bytes = h->held_bytes, /* the shell discards what a connection before left */
		.granted_bytes = h->granted_bytes,
		.grant_edge = f->snd_una + pool_limit(f, synack, 0, first_bytes),
		.peer_edge = f->snd_una + synack->window, /* not scaled */
		.kept_from = f->snd_nxt,
		.sent_ms = (uint32_t)(synack->now_us / 1000),
		.begun = true,
	};
}

/* The SYN-ACK that the guest will accept, after the engine has? Not a stray SYN (law 17). */
VCC_INLINE bool is_first_synack(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return !f->settled && (s->flags & TCP_ACK) && s->ack == f->snd_una &&
	       s->seq + 1 == f->rcv_wup;
}

/*
 * Under `split` most ACKs of the peer bring nothing new to the guest. A window update is worth one
 * if it doubles what the guest may send (Linux as receiver: __tcp_select_window, tcp_cleanup_rbuf).
 */
VCC_INLINE bool split_absorbs(const struct vcc_flow *f, const struct vcc_hold *h,
			      const struct vcc_segment *shown, const struct ack_news *news,
			      uint16_t field)
{
	uint32_t guest_nxt = hold_guest_nxt(f, h);
	uint32_t edge = shown->ack + ((uint32_t)field << f->wscale_shown);
	bool says_ack = news->acked_bytes || news->duplicate || news->same_ack;

	return says_ack && !shown->payload_bytes && !(shown->flags & TCP_FIN) &&
	       seq_distance(guest_nxt, edge) <
		   2 * seq_distance(guest_nxt, f->right_edge) + f->mss_bytes;
}

/*
 * What a reduction grants beyond grant_edge, as that is by a pool. The pool was charged for what is
 * sent again when that was new.
 */
VCC_INLINE uint32_t hold_resend_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				      uint32_t underlay_bytes)
{
	if (!is_reducing(f))
		return 0;
	return vcc_sub_floor0(underlay_bytes,
			      seq_distance(f->snd_una, seq_max(h->grant_edge, f->snd_nxt)));
}

/* An ACK: what its windows grant, and the window to show the guest in their place. */
VCC_INLINE void hold_on_ack(struct vcc_flow *f, struct vcc_hold *h, const struct vcc_buffer *b,
			    const struct vcc_params *p, const struct vcc_segment *s,
			    const struct ack_outcome *outcome, struct vcc_action *a)
{
	const struct ack_news *news = &outcome->news;
	bool was_shown = f->flags & FLOW_WINDOW_SHOWN;
	bool by_blocks = (f->flags & FLOW_SACK) && (s->options & OPT_SACK);
	bool was_promised = h->promises && !seq_after(s->ack, h->promised);
	/* A hole below what was promised is the shell's to fill; blocks may report others. */
	bool repairs = hold_repairs(f, h) || (split_owes(f, h) && !(s->options & OPT_SACK));
	bool guests_loss = news->duplicate && !repairs;
	uint16_t before = f->window_shown;
	/* The shell frees it after this; what was not retained has taken nothing. */
	uint32_t kept_from = seq_max(h->kept_from, f->snd_una - news->acked_bytes);
	uint32_t freed_bytes = h->retains ? seq_distance(kept_from, f->snd_una) : 0;
	struct vcc_segment shown = *s;

	if (!h->begun)
		h->sent_ms = (uint32_t)(s->now_us / 1000);
	h->begun = true;
	h->peer_edge = s->ack + ((uint32_t)s->window << f->wscale_peer);
	shown.ack = split_ack(h, s->ack);
	h->promised = shown.ack;
	/*
	 * PRR grants nothing without a delivery. A pool has no share for a flow that does not send,
	 * which keeps what it was granted before, as under a shown window (law 2).
	 */
	if (outcome->granted_bytes)
		h->grant_edge = f->snd_una + outcome->granted_bytes;
	else if (!s->pool_bytes || (f->shell & SHELL_POOL_ACTIVE))
		h->grant_edge = seq_min(h->grant_edge, f->snd_nxt);
	h->resend_bytes = hold_resend_bytes(f, h, outcome->underlay_bytes);
	hold_transition(f, h, b, p);
	a->window = hold_field(f, h, b, p, shown.ack, freed_bytes);
	/* Law 2, as far as the field reaches. */
	VCC_LAW(a->window == UINT16_MAX ||
		!seq_before(shown.ack + ((uint32_t)a->window << f->wscale_shown), f->right_edge));
	if (was_promised && !guests_loss && split_absorbs(f, h, &shown, news, a->window)) {
		a->verdict = VCC_CONSUME;
		f->window_received = s->window;
		f->flags |= FLOW_WINDOW_SHOWN;
		return;
	}
	/* Law 4 */
	if (news->duplicate && was_shown && !by_blocks && (!was_promised || guests_loss))
		a->window = before;
	/* An unchanged window turns an update into a duplicate ACK for a guest without SACK. */
	if (news->same_ack && was_shown && a->window == before) {
		a->verdict = VCC_DROP;
		count_drop(f);
	}
	/* The loss that it reports is repaired here. */
	if (news->duplicate && was_shown && a->window == before && hold_repairs(f, h)) {
		a->verdict = VCC_DROP;
		count_drop(f);
	}
	window_note(f, &shown, a->window);
}

/*
 * An ACK while the treatment no longer holds. What is held of a released flow leaves by the peer's
 * window alone, and the edge that the guest was shown stays (law 2).
 */
VCC_INLINE void hold_on_ack_released(struct vcc_flow *f, struct vcc_hold *h,
				     const struct vcc_segment *s, struct vcc_action *a)
{
	struct vcc_segment shown = *s;

	h->peer_edge = s->ack + ((uint32_t)s->window << f->wscale_peer);
	shown.ack = split_ack(h, s->ack);
	h->promised = shown.ack;
	if (h->state != HOLD_DRAINING) {
		/* If the treatment holds again, this is what the guest may have in flight. */
		h->grant_edge = f->right_edge;
		return;
	}
	/* The peer's window begins at its own acknowledgement. */
	uint32_t offered = vcc_sub_floor0(a->window, window_units(f, shown.ack - s->ack));

	a->window = (uint16_t)vcc_min(vcc_max(window_held(f, &shown), offered), UINT16_MAX);
	window_note(f, &shown, a->window);
}

/*
 * An ACK of what has not left. The guest has sent it and would accept the ACK, so it is for the
 * shell to discard it (RFC 9293, 3.10.7.4; law 15).
 */
VCC_INLINE bool hold_refuses(const struct vcc_flow *f, const struct vcc_hold *h,
			     const struct vcc_params *p, const struct vcc_segment *s)
{
	return (s->flags & TCP_ACK) && !(s->flags & (TCP_SYN | TCP_RST)) &&
	       seq_after(s->ack, f->snd_nxt) && seq_plausible(f->snd_nxt, s->ack) &&
	       is_holding(f, h, p);
}

/*
 * vcc_to_guest() for a shell that holds segments. It may release some of them afterwards. Returns
 * whether the guest hears the segment: an ACK that it accepts.
 */
VCC_INLINE bool vcc_hold_to_guest(struct vcc_flow *f, struct vcc_hold *h,
				  const struct vcc_buffer *b, const struct vcc_params *p,
				  const struct vcc_segment *s, struct vcc_action *a)
{
	const struct vcc_params *treatment = p;
	struct vcc_params by_hold;
	struct ack_outcome outcome;

	if (hold_refuses(f, h, p, s)) {
		*a = action_pass(s);
		a->verdict = VCC_DROP;
		count_drop(f);
		return false;
	}
	if (h->state == HOLD_DRAINING)
		h->state = HOLD_ACTIVE;
	if (!(is_managed(f) && acts_by_hold(f, p)) && is_holding(f, h, p)) {
		h->state = HOLD_DRAINING;
		by_hold = *p;
		by_hold.act = ACT_HOLD;
		treatment = &by_hold;
	}
	/* A stray SYN does not end a connection whose last data is still to be delivered (law 16).
	 */
	bool live = (s->flags & TCP_SYN) && f->stage == STAGE_CLOSED && split_owes(f, h);

	if (live)
		f->stage = STAGE_ESTABLISHED;
	segment_to_guest_outcome(f, treatment, s, a, &outcome);
	if (live && f->stage == STAGE_ESTABLISHED)
		f->stage = STAGE_CLOSED;
	/* An old ACK: the guest is shown what it has been shown. */
	if (outcome.accepted && !outcome.current && seq_after(split_ack(h, s->ack), s->ack)) {
		struct vcc_segment shown = *s;

		shown.ack = h->promised;
		a->window = (uint16_t)vcc_min(window_old(f, &shown), UINT16_MAX);
	}
	if (!(is_managed(f) && acts_by_hold(f, treatment))) {
		/* By another answer than the one before, which the guest has discarded. */
		if ((s->flags & TCP_SYN) && is_first_synack(f, s))
			h->begun = false;
		if (h->begun && outcome.current)
			hold_on_ack_released(f, h, s, a);
		return outcome.accepted;
	}
	if (s->flags & TCP_SYN) {
		if (is_first_synack(f, s))
			hold_begin(f, h, p, s);
		return outcome.accepted;
	}
	/* A report beside data has begun a reduction: PRR grants at the next ACK. */
	if (!outcome.current && f->ca_state == CA_CWR) {
		h->grant_edge = seq_min(h->grant_edge, f->snd_nxt);
		h->resend_bytes = 0;
	}
	if (outcome.current)
		hold_on_ack(f, h, b, p, s, &outcome, a);
	return outcome.accepted;
}

/*
 * After a SYN-ACK to the guest: must the shell send a window update behind it, with the flow's last
 * acknowledgement and window? The SYN-ACK's window is unscaled and smaller than the guest's share
 * of the buffer, and the next ACK may find the guest not running.
 */
VCC_INLINE bool hold_opens(struct vcc_flow *f, const struct vcc_hold *h, const struct vcc_buffer *b,
			   const struct vcc_params *p)
{
	if (f->settled || (f->flags & FLOW_WINDOW_SHOWN) || !is_holding(f, h, p))
		return false;
	f->window_shown = hold_field(f, h, b, p, f->snd_una, 0);
	f->right_edge =
	    seq_max(f->right_edge, f->snd_una + ((uint32_t)f->window_shown << f->wscale_shown));
	return true;
}

#endif
