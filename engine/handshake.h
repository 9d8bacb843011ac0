/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The handshake in both roles (RFC 9293, 3.5), and ECN switched on for a guest that has none
 * (RFC 3168, 6.1.1). The windows of SYNs are unscaled and stay untouched.
 *
 * A SYN into a live connection may be forged, stray, or one side's new start. Whoever gets it
 * decides (RFC 9293, 3.10.7.4; RFC 5961, 4), and we follow when he answers it.
 */
#ifndef VCC_HANDSHAKE_H
#define VCC_HANDSHAKE_H

#include "police.h"
#include "pool.h"
#include "syn.h"

/* What the last SYN has said becomes what the flow goes by, until its answer says more. */
VCC_INLINE void go_by_syn(struct vcc_flow *f)
{
	f->flags &= ~(uint32_t)(FLOW_SYN_SAYS | FLOW_ANSWER_SAYS);
	f->flags |= f->syn_flags & FLOW_SYN_SAYS;
}

/* Another connection takes the place of a live one. It is treated as that was. */
VCC_INLINE void begin_anew(struct vcc_flow *f, const struct vcc_params *p, enum vcc_stage stage)
{
	uint32_t released = f->flags & FLOW_RELEASED;
	uint8_t underlay = f->underlay;

	flow_init(f, p, stage);
	if (released) {
		f->flags |= FLOW_RELEASED;
		f->underlay = underlay;
		cc_init(underlay, &f->cc, vcc_max(p->initial_window_segs, 1));
	}
}

/* The guest's request for ECN in this SYN, or ours in its stead. Returns what it says of
 * that. */
VCC_INLINE uint32_t ask_ecn(const struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, bool again, struct vcc_action *a)
{
	const uint32_t asks = FLOW_ECN_ASKED | FLOW_ECN_GUEST | FLOW_ECN_FELL_BACK;
	uint32_t before = again ? f->syn_flags & asks : 0;
	bool copy = again && f->stage == STAGE_SYN_SENT &&
		    elapsed_us(f->progress_us, (uint32_t)s->now_us) < SYN_COPY_US;

	if (asks_ecn(s->flags))
		return note_ecn_asked(f, p, s, a) | FLOW_ECN_GUEST;
	if (copy ? before == FLOW_ECN_ASKED : !again && brings_ecn(f, p)) {
		a->flags |= TCP_ECE | TCP_CWR;
		return FLOW_ECN_ASKED;
	}
	/* Unanswered: without ECN this time, and for good (RFC 3168, 6.1.1.1). */
	return before ? FLOW_ECN_FELL_BACK : 0;
}

VCC_INLINE void syn_from_guest(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	bool live = f->stage == STAGE_ESTABLISHED;
	bool simultaneous = f->stage == STAGE_SYN_RECEIVED && (f->flags & FLOW_GUEST_OPENED);
	bool again = (f->stage == STAGE_SYN_SENT || live || simultaneous) &&
		     (f->syn_flags & FLOW_GUEST_OPENED) && s->seq == f->syn_seq;
	bool draining = p->mode == MODE_DRAIN && !again;

	/* It crossed the peer's answer, which has reached the guest: all is settled, but
	 * for ECT.
	 */
	if (again && (simultaneous || (f->settled && s->seq == f->iss))) {
		strip_ours(f, p, false, s, a);
		if (!asks_ecn(s->flags) && (f->flags & FLOW_ECN_ASKED))
			f->flags |= FLOW_ECN_FELL_BACK;
		return;
	}
	if (!live && draining) {
		a->forget = true;
		return;
	}
	if (!live && !again) {
		flow_init(f, p, STAGE_SYN_SENT);
		start_sequence(f, s->seq, segment_end(s), s->now_us);
		f->flags |= FLOW_GUEST_OPENED;
	}
	/* Of a connection that will not be ours, its SYN stays as it is. */
	uint32_t asked = draining ? 0 : ask_ecn(f, p, s, again, a);
	uint32_t offered = again ? f->syn_flags & FLOW_HELLO_OFFERED : 0;

	note_syn(f, s, FLOW_GUEST_OPENED | asked | offered);
	if (draining)
		return;
	syn_without_ect(f, p, a);
	strip_ours(f, p, false, s, a);
	if (!again)
		hello_offer(f, p, s, a);
	if (!live)
		go_by_syn(f);
	else if (s->seq == f->iss)
		f->flags |= asked & FLOW_ECN_FELL_BACK;
}

/* The peer's answer to whoever asked for ECN on the guest's side. */
VCC_INLINE void note_ecn_answer(struct vcc_flow *f, const struct vcc_segment *s)
{
	bool accecn = (f->flags & FLOW_ACCECN_GUEST) && accepts_accecn(s->flags);

	if (!accecn)
		f->flags &= ~(uint32_t)FLOW_ACCECN_GUEST;
	/*
	 * The first SYN asked and was answered late, the second did not ask: the peer may
	 * believe in ECN and mark its data, which the receiver half then answers. Ours goes
	 * unmarked.
	 */
	if (!(f->flags & (FLOW_ECN_ASKED | FLOW_ECN_FELL_BACK)))
		return;
	if (accepts_ecn(s->flags))
		f->flags |= FLOW_ECN_FABRIC;
	else if (!accecn)
		f->flags &= ~(uint32_t)FLOW_ECN_GUEST;
}

/*
 * Does the peer's SYN-ACK acknowledge the guest's last SYN, or some of the data on it (RFC
 * 7413)? How much there was on a SYN into a live connection is not known any more.
 */
VCC_INLINE bool answers_guests_syn(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t data_bytes = UINT16_MAX;

	if (!(f->syn_flags & FLOW_GUEST_OPENED) || f->stage == STAGE_CLOSED)
		return false;
	if (f->syn_seq == f->iss)
		data_bytes = f->snd_nxt - f->iss - 1;
	return s->ack - (f->syn_seq + 1) <= data_bytes;
}

/* May the guest take this SYN-ACK of the peer? Until it has acknowledged one, any that
 * answers. */
VCC_INLINE bool takes_synack(const struct vcc_flow *f, const struct vcc_segment *s)
{
	bool has_one = f->stage == STAGE_ESTABLISHED && f->settled && f->syn_seq == f->iss;

	return answers_guests_syn(f, s) && !has_one;
}

/* A SYN-ACK that the guest may take: until it has said which one it took, the last one
 * holds. */
VCC_INLINE void settle_by_synack(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	bool guest_asked = f->syn_flags & FLOW_ECN_GUEST;
	/* A copy does not take back what was counted behind the first. */
	bool counting = (f->flags & FLOW_FEEDBACK) && s->seq + 1 == f->rcv_wup;

	go_by_syn(f);
	strip_ours(f, p, f->flags & FLOW_HELLO_OFFERED, s, a);
	/* Data on the SYN that it does not acknowledge was not taken, and will be new. */
	f->snd_una = s->ack;
	f->snd_nxt = s->ack;
	f->overdraft_until = s->ack + s->window;
	start_peer_sequence(f, s->seq);
	note_peer_dctcp(f, s);
	f->flags &= ~(uint32_t)FLOW_OFFERS | option_flags(s->options);
	f->wscale_guest = (f->flags & FLOW_WSCALE) ? f->syn_wscale : 0;
	note_ecn_answer(f, s);
	if (brings_ecn(f, p) && !guest_asked)
		without_ecn(a);
	settle_ecn(f, p);
	hello_accepted(f, s);
	show_exact_scale(f, p, s, a);
	expect_mss(f, f->syn_mss_bytes);
	establish(f, s->now_us);
	if ((f->flags & FLOW_FEEDBACK) && !counting)
		feedback_start(f);
	pool_first_window(f, p, s, a);
}

VCC_INLINE void synack_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s, struct vcc_action *a)
{
	bool live = f->stage == STAGE_ESTABLISHED;

	if (takes_synack(f, s) && live && f->syn_seq != f->iss) {
		if (p->mode == MODE_DRAIN) {
			a->forget = true;
			return;
		}
		begin_anew(f, p, STAGE_SYN_SENT);
		start_sequence(f, f->syn_seq, f->syn_seq + 1, s->now_us);
		f->flags |= FLOW_GUEST_OPENED;
	}
	if (takes_synack(f, s)) {
		settle_by_synack(f, p, s, a);
		note_seen(f, s);
		return;
	}
	if (!(f->flags & FLOW_GUEST_OPENED))
		return;
	/* It answers another SYN, and the guest will reset it; or the guest has another
	 * already. */
	strip_ours(f, p, f->flags & FLOW_HELLO_OFFERED, s, a);
	/* A copy of what the guest has taken looks as that did. */
	if (!live || s->ack - (f->iss + 1) > UINT16_MAX || !shows_windows(f, p))
		return;
	if (f->flags & FLOW_WSCALE)
		a->wscale = f->wscale_shown;
	a->mss = (uint16_t)vcc_min(s->mss, f->mss_max_bytes + timestamps_bytes(f));
	if (!(f->flags & FLOW_ECN_GUEST))
		without_ecn(a);
}

/* The peer's SYN into a live connection. As it is, for what is shown now holds for the live
 * one. */
VCC_INLINE void syn_into_live(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *a)
{
	/* Of its own SYN, the guest may still get another answer. */
	bool notes = !(f->flags & FLOW_GUEST_OPENED) || f->settled;

	strip_ours(f, p, s->options & OPT_HELLO, s, a);
	if (hides_request(f, p))
		without_ecn(a);
	if (notes)
		note_syn(f, s, FLOW_SYN_SEEN_PEER | (asks_ecn(a->flags) ? FLOW_ECN_ASKED : 0));
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
		/* Simultaneous open (RFC 9293, 3.5): the guest's options are known already.
		 */
		f->stage = STAGE_SYN_RECEIVED;
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
		/* What it asks for, though the guest may not see it. */
		uint32_t asked = hides_request(f, p) ? 0 : note_ecn_asked(f, p, s, a);

		note_syn(f, s, FLOW_SYN_SEEN_PEER | asked | (offered ? FLOW_HELLO_OFFERED : 0));
		go_by_syn(f);
		note_peer_dctcp(f, s);
	} else if (strips_accecn(f, p, s->flags)) {
		a->flags &= (uint16_t)~TCP_AE;
	}
	strip_ours(f, p, s->options & OPT_HELLO, s, a);
	show_exact_scale(f, p, s, a);
	if (opened)
		expect_mss(f, f->syn_mss_bytes);
}

/* Does the guest's SYN-ACK answer the SYN that we know of? It may acknowledge data on it
 * too. */
VCC_INLINE bool answers_known_syn(const struct vcc_flow *f, const struct vcc_segment *s, bool again)
{
	/* A repeated one does not know of what the peer sent since. */
	uint32_t since_bytes = again ? SEQ_WINDOW_MAX : 0;

	if (f->stage < STAGE_SYN_RECEIVED || (f->stage != STAGE_SYN_RECEIVED && !again))
		return false;
	return (f->flags & FLOW_SYN_SEEN_PEER) &&
	       s->ack - (f->rcv_nxt - since_bytes) <= since_bytes + UINT16_MAX;
}

/* The guest takes a SYN of the peer into a connection that we hold for live. */
VCC_INLINE bool answers_syn_into_live(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return f->stage == STAGE_ESTABLISHED && (f->syn_flags & FLOW_SYN_SEEN_PEER) &&
	       s->seq != f->iss && s->ack - (f->syn_seq + 1) <= UINT16_MAX;
}

/* The guest's answer to who asked for ECN on the peer's side; ours, where it has none to
 * give. */
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

/* The guest answers the peer's SYN for the first time, or anew: its sequence begins here.
 */
VCC_INLINE void start_answer(struct vcc_flow *f, const struct vcc_segment *s)
{
	start_sequence(f, s->seq, segment_end(s), s->now_us);
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
		/* It answers a SYN whose options we do not know: nothing about it is ours.
		 */
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
	/* Once established too: the ACK that ended the handshake may not have reached the
	 * guest. */
	if (f->stage != STAGE_SYN_RECEIVED) {
		if (brings_ecn(f, p) && (f->flags & FLOW_ECN_FABRIC) &&
		    !(f->flags & FLOW_ECN_GUEST))
			a->flags = (uint16_t)((a->flags & ~TCP_ECN_BITS) | TCP_ECE);
		strip_ours(f, p, false, s, a);
		hello_accept(f, s, a);
		return;
	}
	if (!again)
		start_answer(f, s);
	f->wscale_guest = (f->flags & FLOW_WSCALE) ? syn_scale(s) : 0;
	receive_from(f, s->ack, s->window);
	note_ecn_given(f, p, s, a);
	syn_without_ect(f, p, a);
	strip_ours(f, p, false, s, a);
	if (!again)
		hello_answer(f, p, s);
	hello_accept(f, s, a);
}

/* The ACK that ends a handshake which the peer began. */
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
	if (f->flags & FLOW_FEEDBACK)
		feedback_start(f);
	f->settled = true;
	/* Answered: another answer to it begins nothing. */
	f->syn_flags &= (uint16_t)~FLOW_SYN_SEEN_PEER;
}

#endif
