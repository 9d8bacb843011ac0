/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The handshake in both roles: what was negotiated (RFC 9293, 3.5; RFC 7323; RFC 2018), and ECN
 * switched on for a guest that has none (RFC 3168, 6.1.1). The windows of SYNs are unscaled and
 * stay untouched.
 */
#ifndef VCC_HANDSHAKE_H
#define VCC_HANDSHAKE_H

#include "feedback.h"
#include "pool.h"
#include "window.h"

/* RFC 9293, 3.7.1: the MSS of a peer that names none. */
#define MSS_DEFAULT_BYTES 536u

/* ECN-setup SYN: ECE and CWR; AE as well is a request for AccECN (RFC 9768, 3.1.1). */
VCC_INLINE bool asks_ecn(uint16_t flags)
{
	return (flags & (TCP_ECE | TCP_CWR)) == (TCP_ECE | TCP_CWR);
}

/* ECN-setup SYN-ACK (RFC 3168, 6.1.1): ECE alone. Both bits come from a reflecting middlebox. */
VCC_INLINE bool accepts_ecn(uint16_t flags)
{
	return (flags & TCP_ECN_BITS) == TCP_ECE;
}

/* A SYN-ACK that accepts AccECN (RFC 9768, 3.1.2, table 2): neither classic ECN nor none. */
VCC_INLINE bool accepts_accecn(uint16_t flags)
{
	uint16_t bits = flags & TCP_ECN_BITS;

	return bits && bits != TCP_ECE && bits != TCP_ECN_BITS;
}

VCC_INLINE void flow_init(struct vcc_flow *f, const struct vcc_params *p, enum vcc_stage stage)
{
	*f = (struct vcc_flow){
		.stage = stage,
		.underlay = p->underlay,
		.mss_bytes = MSS_DEFAULT_BYTES,
		.mss_max_bytes = UINT16_MAX,
		.rule = f->rule,
		.epoch = f->epoch,
		.shell = f->shell & SHELL_POOL,
	};
	cc_init(f->underlay, &f->cc, vcc_max(p->initial_window_segs, 1));
}

/* The guest's SYN or SYN-ACK: its sequence numbers begin here. */
VCC_INLINE void start_sequence(struct vcc_flow *f, const struct vcc_segment *s)
{
	f->snd_una = s->seq + 1;
	f->snd_nxt = segment_end(s);
	f->right_edge = f->snd_una;
	f->overdraft_until = f->snd_una;
	f->round_end = f->snd_una;
	f->recover = f->snd_una;
	f->progress_us = (uint32_t)s->now_us;
	f->validated_us = (uint32_t)s->now_us;
	f->sent_us = (uint32_t)s->now_us;
	f->flags |= FLOW_SYN_SEEN_GUEST;
}

/* The peer's. Data on a SYN (RFC 7413) is not counted: the guest may refuse it. */
VCC_INLINE void start_peer_sequence(struct vcc_flow *f, const struct vcc_segment *s)
{
	f->rcv_nxt = s->seq + 1;
	f->flags |= FLOW_SYN_SEEN_PEER;
	/* RFC 8257, 3.5: only DCTCP sends SYNs as ECT. */
	if (s->ip_ecn != IP_ECN_NOT_ECT)
		f->flags |= FLOW_PEER_DCTCP;
}

VCC_INLINE uint32_t option_flags(uint8_t options)
{
	return ((options & OPT_SACK_PERMITTED) ? FLOW_SACK : 0) |
	       ((options & OPT_TIMESTAMPS) ? FLOW_TIMESTAMPS : 0) |
	       ((options & OPT_WSCALE) ? FLOW_WSCALE : 0);
}

/* Fold one SYN's options in: an option counts only where both SYNs carry it. */
VCC_INLINE void negotiate(struct vcc_flow *f, const struct vcc_segment *s, bool first)
{
	const uint32_t all = FLOW_SACK | FLOW_TIMESTAMPS | FLOW_WSCALE;
	uint32_t offered = option_flags(s->options);
	uint16_t mss_bytes = (s->options & OPT_MSS) ? s->mss : MSS_DEFAULT_BYTES;

	if (first) {
		f->flags = (f->flags & ~all) | offered;
		f->mss_bytes = mss_bytes;
	} else {
		f->flags &= ~all | offered;
		f->mss_bytes = (uint16_t)vcc_min(f->mss_bytes, mss_bytes);
	}
	f->mss_bytes = (uint16_t)vcc_max(f->mss_bytes, TIMESTAMPS_BYTES + 1);
}

/* Is this flow's window ours to decide? */
VCC_INLINE bool shows_windows(const struct vcc_flow *f, const struct vcc_params *p)
{
	return translates(f, p) && is_controlled(f);
}

VCC_INLINE uint32_t timestamps_bytes(const struct vcc_flow *f)
{
	return (f->flags & FLOW_TIMESTAMPS) ? TIMESTAMPS_BYTES : 0;
}

/*
 * A SYN or SYN-ACK on its way to the guest: choose the scale at which windows are exact, and an
 * MSS of whole units. What the guest takes it for is the peer's own choice.
 */
VCC_INLINE void show_exact_scale(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	/* Of a guest that has not answered yet, the peer's offer is all there is to go by. */
	bool opened = f->flags & FLOW_GUEST_OPENED;
	uint32_t mss_bytes = opened ? f->mss_bytes : s->mss;
	uint32_t offered_bytes = (s->options & OPT_TIMESTAMPS) ? TIMESTAMPS_BYTES : 0;
	uint32_t overhead_bytes = opened ? timestamps_bytes(f) : offered_bytes;

	f->wscale_peer = 0;
	if (f->flags & FLOW_WSCALE)
		f->wscale_peer = (uint8_t)vcc_min(s->wscale, WSCALE_MAX);
	f->wscale_shown = f->wscale_peer;
	if (!shows_windows(f, p))
		return;
	f->wscale_shown = (uint8_t)vcc_min(f->wscale_peer, wscale_for(p->window_max_bytes));
	if (f->flags & FLOW_WSCALE)
		a->wscale = f->wscale_shown;
	if (!(s->options & OPT_MSS) || mss_bytes <= overhead_bytes)
		return;
	uint32_t exact = mss_exact(mss_bytes - overhead_bytes, f->wscale_shown) + overhead_bytes;

	f->mss_bytes = (uint16_t)vcc_min(f->mss_bytes, exact);
	a->mss = (uint16_t)vcc_min(s->mss, exact);
}

VCC_INLINE void establish(struct vcc_flow *f)
{
	if (f->mss_bytes > TIMESTAMPS_BYTES)
		f->mss_bytes -= (uint16_t)timestamps_bytes(f);
	f->mss_max_bytes = f->mss_bytes;
	if (f->flags & FLOW_FEEDBACK)
		feedback_start(f);
	f->stage = STAGE_ESTABLISHED;
}

/* Must an AccECN guest or its peer be kept to classic ECN, so that ours can take it over? */
VCC_INLINE bool strips_accecn(const struct vcc_flow *f, const struct vcc_params *p, uint16_t flags)
{
	return shows_windows(f, p) && p->guest_ecn == GUEST_ECN_OVERRIDE && asks_ecn(flags) &&
	       (flags & TCP_AE);
}

/* Who asks for ECN with this SYN, and for which? */
VCC_INLINE void note_ecn_asked(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	f->flags &= ~(uint32_t)(FLOW_ECN_ASKED | FLOW_ACCECN_GUEST);
	if (!asks_ecn(s->flags))
		return;
	f->flags |= FLOW_ECN_ASKED;
	if (strips_accecn(f, p, s->flags))
		a->flags &= (uint16_t)~TCP_AE;
	else if (s->flags & TCP_AE)
		f->flags |= FLOW_ACCECN_GUEST;
}

/*
 * An overridden DCTCP guest sends its SYNs as ECT (RFC 8257, 3.5), which a plain listener takes for
 * broken and declines: the underlay's SYNs are as RFC 3168, 6.1.1 wants them.
 */
VCC_INLINE void syn_without_ect(const struct vcc_flow *f, const struct vcc_params *p,
				struct vcc_action *a)
{
	if (brings_ecn(f, p) && p->guest_ecn == GUEST_ECN_OVERRIDE)
		a->ip_ecn = IP_ECN_NOT_ECT;
}

VCC_INLINE void syn_from_guest(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	bool ours = (f->flags & FLOW_SYN_SEEN_GUEST) && s->seq + 1 == f->snd_una;
	bool again = f->stage == STAGE_SYN_SENT && ours;
	bool asked_before = again && (f->flags & FLOW_ECN_ASKED);

	bool simultaneous = f->stage == STAGE_SYN_RECEIVED && (f->flags & FLOW_GUEST_OPENED);

	/* It crossed the peer's answer, which has passed here: all is settled, but for ECT. */
	if ((f->stage == STAGE_ESTABLISHED || simultaneous) && ours) {
		strip_ours(f, p, false, s, a);
		if (!asks_ecn(s->flags) && (f->flags & FLOW_ECN_ASKED))
			f->flags |= FLOW_ECN_FELL_BACK;
		return;
	}
	if (!again) {
		if (p->mode == MODE_DRAIN) {
			a->forget = true;
			return;
		}
		flow_init(f, p, STAGE_SYN_SENT);
		start_sequence(f, s);
		f->flags |= FLOW_GUEST_OPENED;
	}
	negotiate(f, s, true);
	note_ecn_asked(f, p, s, a);
	f->flags &= ~(uint32_t)FLOW_ECN_GUEST;
	if (f->flags & FLOW_ECN_ASKED) {
		f->flags |= FLOW_ECN_GUEST;
	} else if (again) {
		/* Unanswered: without ECN this time, and for good (RFC 3168, 6.1.1.1). */
		if (asked_before)
			f->flags |= FLOW_ECN_FELL_BACK;
	} else if (brings_ecn(f, p)) {
		f->flags |= FLOW_ECN_ASKED;
		a->flags |= TCP_ECE | TCP_CWR;
	}
	syn_without_ect(f, p, a);
	strip_ours(f, p, false, s, a);
	if (!again)
		hello_offer(f, p, s, a);
}

/* The peer's answer to whoever asked for ECN on the guest's side. */
VCC_INLINE void note_ecn_answer(struct vcc_flow *f, const struct vcc_segment *s)
{
	bool accecn = (f->flags & FLOW_ACCECN_GUEST) && accepts_accecn(s->flags);

	if (!accecn)
		f->flags &= ~(uint32_t)FLOW_ACCECN_GUEST;
	/*
	 * The first SYN asked and was answered late, the second did not ask: the peer may believe
	 * in ECN and mark its data, which the receiver half then answers. Ours goes unmarked.
	 */
	if (!(f->flags & (FLOW_ECN_ASKED | FLOW_ECN_FELL_BACK)))
		return;
	if (accepts_ecn(s->flags))
		f->flags |= FLOW_ECN_FABRIC;
	else if (!accecn)
		f->flags &= ~(uint32_t)FLOW_ECN_GUEST;
}

/* A guest that did not ask for ECN sees none, not even in the IP header of a DCTCP peer's answer.
 */
VCC_INLINE void synack_without_ecn(struct vcc_action *a)
{
	a->flags &= (uint16_t)~TCP_ECN_BITS;
	a->ip_ecn = IP_ECN_NOT_ECT;
}

VCC_INLINE void synack_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s, struct vcc_action *a)
{
	bool guest_asked = f->flags & FLOW_ECN_GUEST;

	strip_ours(f, p, f->flags & FLOW_HELLO_OFFERED, s, a);
	if (f->stage == STAGE_ESTABLISHED) {
		/* A repeated SYN-ACK must look as the first did. */
		if (!shows_windows(f, p))
			return;
		if (f->flags & FLOW_WSCALE)
			a->wscale = f->wscale_shown;
		a->mss = (uint16_t)vcc_min(s->mss, f->mss_bytes + timestamps_bytes(f));
		if (!guest_asked)
			synack_without_ecn(a);
		return;
	}
	if (f->stage == STAGE_CLOSED || seq_before(s->ack, f->snd_una) ||
	    seq_after(s->ack, f->snd_nxt))
		return; /* answers another SYN; the guest will reset it */
	f->snd_una = s->ack;
	f->overdraft_until = s->ack + s->window;
	start_peer_sequence(f, s);
	negotiate(f, s, false);
	note_ecn_answer(f, s);
	if (brings_ecn(f, p) && !guest_asked)
		synack_without_ecn(a);
	settle_ecn(f, p);
	hello_accepted(f, s);
	show_exact_scale(f, p, s, a);
	establish(f);
	pool_first_window(f, p, s, a);
}

VCC_INLINE void syn_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, struct vcc_action *a)
{
	bool again = f->stage == STAGE_SYN_RECEIVED && s->seq + 1 == f->rcv_nxt;

	if (f->stage == STAGE_SYN_SENT) {
		/* Simultaneous open (RFC 9293, 3.5): the guest's options are known already. */
		f->stage = STAGE_SYN_RECEIVED;
		f->flags &= ~(uint32_t)(FLOW_ECN_ASKED | FLOW_ECN_GUEST | FLOW_ACCECN_GUEST |
					FLOW_HELLO_OFFERED);
		negotiate(f, s, false);
	} else if (f->stage == STAGE_ESTABLISHED ||
		   (f->stage == STAGE_SYN_RECEIVED && !again && (f->flags & FLOW_SYN_SEEN_GUEST))) {
		/*
		 * A SYN into a live connection may be forged, or the peer's restart: the guest
		 * decides (RFC 9293, 3.10.7.4), and we follow what it answers.
		 */
		strip_ours(f, p, s->options & OPT_HELLO, s, a);
		return;
	} else if (!again) {
		if (p->mode == MODE_DRAIN) {
			a->forget = true;
			return;
		}
		flow_init(f, p, STAGE_SYN_RECEIVED);
		negotiate(f, s, true);
	}
	start_peer_sequence(f, s);
	if (!(f->flags & (FLOW_GUEST_OPENED | FLOW_SYN_SEEN_GUEST)))
		note_ecn_asked(f, p, s, a);
	else if (strips_accecn(f, p, s->flags))
		a->flags &= (uint16_t)~TCP_AE;
	if (!(f->flags & FLOW_GUEST_OPENED))
		hello_offered(f, p, s, a);
	strip_ours(f, p, s->options & OPT_HELLO, s, a);
	show_exact_scale(f, p, s, a);
}

/* Does the guest's SYN-ACK answer the SYN that we know of? It may acknowledge data on it too. */
VCC_INLINE bool answers_known_syn(const struct vcc_flow *f, const struct vcc_segment *s, bool again)
{
	/* A repeated one does not know of what the peer sent since. */
	bool known = again ? seq_plausible(f->rcv_nxt, s->ack) : s->ack - f->rcv_nxt <= UINT16_MAX;

	return (f->flags & FLOW_SYN_SEEN_PEER) && known;
}

/* The guest's answer to who asked for ECN on the peer's side; ours, where it has none to give. */
VCC_INLINE void note_ecn_given(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	f->flags &= ~(uint32_t)(FLOW_ECN_GUEST | FLOW_ECN_FABRIC);
	if (!accepts_accecn(s->flags))
		f->flags &= ~(uint32_t)FLOW_ACCECN_GUEST;
	if (!(f->flags & FLOW_ECN_ASKED))
		return;
	if (f->flags & FLOW_ACCECN_GUEST) {
		f->flags |= FLOW_ECN_GUEST;
	} else if (accepts_ecn(s->flags)) {
		f->flags |= FLOW_ECN_GUEST | FLOW_ECN_FABRIC;
	} else if (brings_ecn(f, p)) {
		f->flags |= FLOW_ECN_FABRIC;
		a->flags = (uint16_t)((a->flags & ~TCP_ECN_BITS) | TCP_ECE);
	}
}

VCC_INLINE void synack_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s, struct vcc_action *a)
{
	bool again = (f->flags & FLOW_SYN_SEEN_GUEST) && s->seq + 1 == f->snd_una;

	/* Also once established: the ACK that ended the handshake may not have reached the guest.
	 */
	if (f->stage < STAGE_SYN_RECEIVED || !answers_known_syn(f, s, again) ||
	    (f->stage != STAGE_SYN_RECEIVED && !again)) {
		/* It answers a SYN whose options we do not know: nothing about it is ours. */
		a->forget = true;
		return;
	}
	if (f->stage != STAGE_SYN_RECEIVED) {
		if (brings_ecn(f, p) && (f->flags & FLOW_ECN_FABRIC) &&
		    !(f->flags & FLOW_ECN_GUEST))
			a->flags = (uint16_t)((a->flags & ~TCP_ECN_BITS) | TCP_ECE);
		strip_ours(f, p, false, s, a);
		hello_accept(f, s, a);
		return;
	}
	bool first = !(f->flags & FLOW_SYN_SEEN_GUEST);

	if (first) {
		start_sequence(f, s);
		negotiate(f, s, false);
		if (!(f->flags & FLOW_WSCALE))
			f->wscale_peer = f->wscale_shown = 0;
	}
	note_ecn_given(f, p, s, a);
	syn_without_ect(f, p, a);
	strip_ours(f, p, false, s, a);
	if (first)
		hello_answer(f, p, s);
	hello_accept(f, s, a);
}

/* The ACK that ends a handshake which the peer began. */
VCC_INLINE void handshake_ack_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				       const struct vcc_segment *s)
{
	const uint32_t both = FLOW_SYN_SEEN_GUEST | FLOW_SYN_SEEN_PEER;

	if (f->stage != STAGE_SYN_RECEIVED || (f->flags & both) != both ||
	    seq_before(s->ack, f->snd_una) || seq_after(s->ack, f->snd_nxt))
		return;
	settle_ecn(f, p);
	establish(f);
}

#endif
