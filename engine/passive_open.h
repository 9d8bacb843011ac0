/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Passive open (RFC 9293, 3.5): the peer sends the SYN, the guest answers with a SYN-ACK. */
#ifndef VCC_PASSIVE_OPEN_H
#define VCC_PASSIVE_OPEN_H

#include "path.h"
#include "policing.h"
#include "syn.h"

/* A guest whose ECN is overridden is asked for classic ECN, if that was asked for. */
VCC_INLINE void show_classic_request(const struct vcc_segment *s, struct vcc_action *a)
{
	a->flags &= (uint16_t) ~(asks_ecn(s->flags) ? TCP_AE : TCP_ECN_BITS);
}

/* The ECN request of the peer's SYN, as flags of a SYN. */
VCC_INLINE uint32_t note_ecn_asked(const struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s, struct vcc_action *a)
{
	uint32_t asked = asks_ecn(s->flags) ? FLOW_ECN_ASKED : 0;

	if (!asks_accecn(s->flags))
		return asked;
	if (brings_accecn(f, p))
		asked |= FLOW_ECN_ASKED | SYN_ACCECN_ASKED;
	if (!overrides_ecn(f, p))
		return asked | FLOW_ACCECN_GUEST;
	show_classic_request(s, a);
	return asked;
}

/*
 * The peer's SYN into a live connection. Scale and MSS stay, because those of the live one still
 * hold.
 */
VCC_INLINE void syn_into_live(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *a)
{
	/* The guest's own SYN may still receive another answer; it must not be overwritten. */
	bool notes = !(f->flags & FLOW_GUEST_OPENED) || f->settled;

	strip_ours(f, p, s->options & OPT_HELLO, s, a);
	if (hides_request(f, p))
		without_ecn(a);
	uint32_t asked = hides_request(f, p) ? 0 : note_ecn_asked(f, p, s, a);

	if (notes)
		note_syn(f, s, FLOW_SYN_SEEN_PEER | asked);
}

/*
 * The peer's SYN, after its answer: how it arrived is reported again (RFC 9768, 3.2.2.2). If it has
 * given ECN up, nothing is sent as ECT (3.1.5).
 */
VCC_INLINE void syn_again(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!f->accecn)
		return;
	f->syn_ip_ecn = s->ip_ecn;
	if (!(s->flags & TCP_ECN_BITS))
		f->flags |= FLOW_ECN_FELL_BACK;
}

VCC_INLINE void syn_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, struct vcc_action *a)
{
	bool again = f->stage == STAGE_SYN_RECEIVED && s->seq + 1 == f->rcv_nxt;
	bool answered = f->stage == STAGE_SYN_RECEIVED && (f->flags & FLOW_SYN_SEEN_GUEST);
	bool opened = f->stage == STAGE_SYN_SENT || (answered && (f->flags & FLOW_GUEST_OPENED));

	if (f->stage == STAGE_ESTABLISHED || (answered && !again)) {
		syn_into_live(f, p, s, a);
		return;
	}
	if (f->stage == STAGE_SYN_SENT) {
		/* Simultaneous open (RFC 9293, 3.5): the guest's options are known already. */
		f->stage = STAGE_SYN_RECEIVED;
		f->sends &= (uint8_t)~SENDS_UNANSWERED;
		f->syn_flags &= FLOW_GUEST_OPENED | FLOW_OFFERS;
		go_by_syn(f);
		f->flags &= ~(uint32_t)FLOW_OFFERS | option_flags(s->options);
		start_peer_sequence(f, s->seq);
	} else if (!again) {
		if (p->mode == MODE_DRAIN) {
			a->forget = true;
			return;
		}
		flow_init(f, p, STAGE_SYN_RECEIVED);
		start_peer_sequence(f, s->seq);
	}
	note_seen(f, s);
	note_peer_dctcp(f, s);
	if (hides_request(f, p))
		without_ecn(a);
	bool offered = !opened && hello_offered(f, p, s, a);

	if (!opened && !answered) {
		/* Note the peer's request, though the guest may not see it. */
		uint32_t asked = hides_request(f, p) ? 0 : note_ecn_asked(f, p, s, a);

		/* The guest is not shown the far end's request. */
		if (offered)
			asked &= ~(uint32_t)FLOW_ACCECN_GUEST;
		note_syn(f, s, FLOW_SYN_SEEN_PEER | asked | (offered ? FLOW_HELLO_OFFERED : 0));
		go_by_syn(f);
		note_peer_dctcp(f, s);
	} else {
		if (overrides_ecn(f, p))
			show_classic_request(s, a);
		syn_again(f, s);
	}
	strip_ours(f, p, s->options & OPT_HELLO, s, a);
	show_exact_scale(f, p, s, a);
	if (opened)
		expect_mss(f, f->syn_mss_bytes);
	else if (!answered)
		f->window_shown = s->window; /* for unanswered_to_guest() */
	/* What the guest may send with its SYN-ACK (RFC 7413, 4.2). */
	if (!opened && binds_first_flight(f, p))
		a->window =
		    (uint16_t)vcc_min(s->window, first_flight_bytes(f, p, f->mss_max_bytes));
}

/* Does the guest's SYN-ACK answer the recorded SYN, and perhaps some of its data (RFC 7413)? */
VCC_INLINE bool answers_known_syn(const struct vcc_flow *f, const struct vcc_segment *s, bool again)
{
	/* A retransmitted SYN-ACK does not acknowledge what the peer sent since. */
	uint32_t since_bytes = again ? SEQ_WINDOW_MAX : 0;

	if (f->stage < STAGE_SYN_RECEIVED || (f->stage != STAGE_SYN_RECEIVED && !again))
		return false;
	return (f->flags & FLOW_SYN_SEEN_PEER) &&
	       s->ack - (f->rcv_nxt - since_bytes) <= since_bytes + UINT16_MAX;
}

/* Does the guest's SYN-ACK accept the peer's SYN into a live connection? */
VCC_INLINE bool answers_syn_into_live(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return f->stage == STAGE_ESTABLISHED && (f->syn_flags & FLOW_SYN_SEEN_PEER) &&
	       s->seq != f->iss && s->ack - (f->syn_seq + 1) <= UINT16_MAX;
}

/* The SYN-ACK accepts the peer's request, in place of the guest. */
VCC_INLINE void accept_ecn(const struct vcc_flow *f, struct vcc_action *a)
{
	if (f->accecn)
		a->flags = with_ace(a->flags, ace_of_ip_ecn(f->syn_ip_ecn));
	else
		a->flags = (uint16_t)((a->flags & ~TCP_ECN_BITS) | TCP_ECE);
}

/*
 * The guest's SYN-ACK again: what was agreed stays (RFC 9768, 3.1.5). The third one no longer
 * carries it, in case the path drops it, and nothing is sent as ECT (3.2.3.2.2).
 */
VCC_INLINE void accecn_given_again(struct vcc_flow *f, const struct vcc_segment *s,
				   struct vcc_action *a)
{
	if (!f->accecn)
		return;
	accept_ecn(f, a);
	if (elapsed_us(f->progress_us, (uint32_t)s->now_us) < SYNACK_PATIENCE_US)
		return;
	a->flags &= (uint16_t)~TCP_ECN_BITS;
	f->flags |= FLOW_ECN_FELL_BACK;
}

/*
 * The guest's SYN-ACK answers the peer's ECN request. vcc accepts it for a guest without ECN, and
 * accepts AccECN for one without that, unless the peer is a vcc end.
 */
VCC_INLINE void note_ecn_given(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	bool accecn = (f->syn_flags & SYN_ACCECN_ASKED) && !(f->flags & FLOW_HELLO_OFFERED) &&
		      brings_accecn(f, p);

	f->flags &= ~(uint32_t)(FLOW_ECN_GUEST | FLOW_ECN_FABRIC);
	f->accecn = 0;
	if (!accepts_accecn(s->flags))
		f->flags &= ~(uint32_t)FLOW_ACCECN_GUEST;
	if (f->flags & FLOW_ACCECN_GUEST) {
		f->flags |= FLOW_ECN_GUEST;
		return;
	}
	if (!(f->flags & FLOW_ECN_ASKED))
		return;
	if (accepts_ecn(s->flags))
		f->flags |= FLOW_ECN_GUEST | FLOW_ECN_FABRIC;
	else if (brings_ecn(f, p))
		f->flags |= FLOW_ECN_FABRIC;
	if (accecn && !keeps_own_ecn(f, p)) {
		accecn_agree(f, f->syn_ip_ecn);
		f->ace_counted = ACE_INITIAL;
	}
	if (f->accecn || ecn_is_ours(f))
		accept_ecn(f, a);
}

/* The guest's first SYN-ACK of a connection sets its initial sequence number. */
VCC_INLINE void start_answer(struct vcc_flow *f, const struct vcc_segment *s)
{
	start_sequence(f, s->seq, segment_end(s), s->now_us);
	f->flags &= ~(uint32_t)FLOW_WINDOW_SHOWN;
	f->window_shown = 0;
	f->sends &= (uint8_t)~SENDS_UNANSWERED;
	/* Another SYN-ACK than the one before, as of a listener that has restarted. */
	rtt_cancel(f);
	rtt_start(f, s->seq + 1, (uint32_t)s->now_us);
	if ((f->syn_flags & FLOW_SYN_SEEN_PEER) && f->syn_seq + 1 == f->rcv_nxt)
		f->flags |= f->syn_flags & FLOW_OFFERS;
	f->flags &= ~(uint32_t)FLOW_OFFERS | option_flags(s->options);
	expect_mss(f, syn_mss(s));
}

VCC_INLINE void synack_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s, struct vcc_action *a)
{
	bool again = (f->flags & FLOW_SYN_SEEN_GUEST) && s->seq == f->iss;
	bool anew = answers_syn_into_live(f, s);

	if (!anew && !answers_known_syn(f, s, again)) {
		/* It answers a SYN whose options are unknown, so the flow cannot be translated. */
		if (is_policed(f, p)) {
			count_policed(f);
			drop_policed(a);
		} else {
			a->forget = f->stage != STAGE_ESTABLISHED;
		}
		return;
	}
	if (anew) {
		if (p->mode == MODE_DRAIN) {
			a->forget = true;
			return;
		}
		begin_anew(f, p, STAGE_SYN_RECEIVED);
		go_by_syn(f);
		start_peer_sequence(f, f->syn_seq);
		f->mss_max_bytes = f->syn_mss_bytes;
		f->wscale_peer = f->wscale_shown = f->syn_wscale;
	}
	note_seen(f, s);
	/* A retransmission after the handshake: its last ACK may not have reached the guest. */
	if (f->stage != STAGE_SYN_RECEIVED) {
		if (brings_ecn(f, p) && (f->accecn || ecn_is_ours(f)))
			accept_ecn(f, a);
		strip_ours(f, p, false, s, a);
		hello_accept(f, s, a);
		return;
	}
	if (again)
		rtt_cancel(f);
	else
		start_answer(f, s);
	f->wscale_guest = (f->flags & FLOW_WSCALE) ? syn_scale(s) : 0;
	receive_from(f, s->ack, s->window);
	if (again && (f->accecn || (f->flags & FLOW_ACCECN_GUEST)))
		accecn_given_again(f, s, a);
	else
		note_ecn_given(f, p, s, a);
	strip_ours(f, p, false, s, a);
	if (!again)
		hello_answer(f, p, s);
	hello_accept(f, s, a);
	if (!again)
		accecn_offer(f, s, a);
}

/* The peer's ACK that completes the handshake of a passive open. */
VCC_INLINE void handshake_ack_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				       const struct vcc_segment *s)
{
	const uint32_t both = FLOW_SYN_SEEN_GUEST | FLOW_SYN_SEEN_PEER;

	if (f->stage != STAGE_SYN_RECEIVED || (f->flags & both) != both ||
	    !in_guests_window(f, s) || seq_before(s->ack, f->snd_una) ||
	    seq_after(s->ack, f->snd_nxt))
		return;
	note_seen(f, s);
	settle_ecn(f, p);
	establish(f, s->now_us);
	path_handshake(f, p, s);
	if (f->accecn)
		accecn_start_answered(f, s);
	if (f->flags & FLOW_FEEDBACK)
		feedback_start(f);
	f->settled = true;
	/* The SYN has been answered: another SYN-ACK must not start a new connection. */
	f->syn_flags &= (uint16_t)~FLOW_SYN_SEEN_PEER;
}

#endif
