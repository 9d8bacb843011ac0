/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Active open (RFC 9293, 3.5): the guest sends the SYN, the peer answers with a SYN-ACK. */
#ifndef VCC_ACTIVE_OPEN_H
#define VCC_ACTIVE_OPEN_H

#include "path.h"
#include "pool.h"
#include "syn.h"

VCC_INLINE uint16_t ask_accecn(uint32_t flags, uint32_t accecn)
{
	return (uint16_t)(accecn ? flags | TCP_AE : flags & ~(uint32_t)TCP_AE);
}

/*
 * Requests ECN in the guest's SYN, AccECN if vcc negotiates that. Returns the request as flags of a
 * SYN.
 */
VCC_INLINE uint32_t ask_ecn(const struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, bool again, struct vcc_action *a)
{
	const uint32_t asks =
	    FLOW_ECN_ASKED | FLOW_ECN_GUEST | FLOW_ECN_FELL_BACK | SYN_ACCECN_ASKED;
	uint32_t before = again ? f->syn_flags & asks : 0;
	uint32_t accecn = before & SYN_ACCECN_ASKED;
	bool copy = again && f->stage == STAGE_SYN_SENT &&
		    elapsed_us(f->progress_us, (uint32_t)s->now_us) < SYN_COPY_US;

	if (!again && brings_accecn(f, p))
		accecn = SYN_ACCECN_ASKED;
	if (asks_ecn(s->flags)) {
		uint32_t asked = FLOW_ECN_ASKED | FLOW_ECN_GUEST;

		if (!overrides_ecn(f, p))
			return asked | ((s->flags & TCP_AE) ? FLOW_ACCECN_GUEST : 0);
		a->flags = ask_accecn(a->flags, accecn);
		return asked | accecn;
	}
	if (copy ? before == (FLOW_ECN_ASKED | accecn) : !again && brings_ecn(f, p)) {
		a->flags = ask_accecn(a->flags | TCP_ECE | TCP_CWR, accecn);
		return FLOW_ECN_ASKED | accecn;
	}
	/* A retransmission: the ECN-setup SYN timed out, so ECN stays off (RFC 3168, 6.1.1.1). */
	return before ? FLOW_ECN_FELL_BACK | accecn : 0;
}

/*
 * Does the guest's SYN cross the peer's, which passed first (RFC 9293, 3.5)? It follows at once:
 * the guest had not seen that one. Behind an older SYN, which may be forged, it opens a connection
 * of its own.
 */
VCC_INLINE bool crosses_peers_syn(const struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s)
{
	int32_t since_ms = (int32_t)((uint32_t)(s->now_us / 1000) - f->last_seen_ms);

	return lacks_own_synack(f) && !(f->flags & FLOW_WINDOW_SHOWN) &&
	       !(f->sends & SENDS_UNANSWERED) && p->mode != MODE_DRAIN &&
	       since_ms < (int32_t)(SYN_COPY_US / 1000);
}

/*
 * The guest's SYN crosses the peer's. The guest reads that one as syn_to_guest() rewrote it, so the
 * scale and the MSS in it stay.
 */
VCC_INLINE void syn_crosses(struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, struct vcc_action *a)
{
	uint32_t peers = f->flags | ~(uint32_t)FLOW_OFFERS;

	start_sequence(f, s->seq, segment_end(s), s->now_us);
	f->flags |= FLOW_GUEST_OPENED;
	f->window_shown = 0; /* syn_to_guest() noted it for unanswered_to_guest() */
	note_syn(f, s, FLOW_GUEST_OPENED);
	go_by_syn(f);
	f->flags &= peers;
	strip_ours(f, p, false, s, a);
	expect_mss(f, f->syn_mss_bytes);
}

VCC_INLINE void syn_from_guest(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	bool live = f->stage == STAGE_ESTABLISHED;
	bool simultaneous = f->stage == STAGE_SYN_RECEIVED && (f->flags & FLOW_GUEST_OPENED);
	bool again = (f->stage == STAGE_SYN_SENT || live || simultaneous) &&
		     (f->syn_flags & FLOW_GUEST_OPENED) && s->seq == f->syn_seq;
	bool draining = p->mode == MODE_DRAIN && !again;

	if (crosses_peers_syn(f, p, s)) {
		syn_crosses(f, p, s, a);
		return;
	}
	if (!live && again)
		rtt_cancel(f);
	/*
	 * A retransmission that crossed the peer's answer. The guest has that answer, so the
	 * connection is settled; only ECT must stop (RFC 3168, 6.1.1).
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
		rtt_start(f, s->seq + 1, (uint32_t)s->now_us);
		f->flags |= FLOW_GUEST_OPENED;
	}
	/* A draining port takes no new flow, so it leaves the SYN as it is. */
	uint32_t asked = draining ? 0 : ask_ecn(f, p, s, again, a);
	uint32_t offered = again ? f->syn_flags & FLOW_HELLO_OFFERED : 0;

	note_syn(f, s, FLOW_GUEST_OPENED | asked | offered);
	if (draining)
		return;
	strip_ours(f, p, false, s, a);
	if (!again)
		hello_offer(f, p, s, a);
	if (!live)
		go_by_syn(f);
	else if (s->seq == f->iss)
		f->flags |= asked & FLOW_ECN_FELL_BACK;
}

/* What the guest is shown of the ECN that its peer's SYN-ACK accepts. */
VCC_INLINE void show_ecn_answer(const struct vcc_flow *f, bool guest_asked, struct vcc_action *a)
{
	if (!guest_asked || f->accecn)
		without_ecn(a);
	/* The answer to its request was for vcc: the guest has classic ECN. */
	if (guest_asked && f->accecn)
		a->flags |= TCP_ECE;
}

/* The peer's SYN-ACK answers the ECN request, the guest's or vcc's. */
VCC_INLINE void note_ecn_answer(struct vcc_flow *f, const struct vcc_segment *s)
{
	bool accecn = (f->flags & FLOW_ACCECN_GUEST) && accepts_accecn(s->flags);

	if ((f->syn_flags & SYN_ACCECN_ASKED) && accepts_accecn(s->flags)) {
		accecn_agree(f, s->ip_ecn);
		f->accecn |= ACCECN_ANSWERS;
		return;
	}
	if (!accecn)
		f->flags &= ~(uint32_t)FLOW_ACCECN_GUEST;
	/*
	 * After a fallback, the SYN-ACK may answer the first SYN, which requested ECN. The peer
	 * then sends ECT data, so the receiver half must answer CE. The sender half sends no ECT.
	 */
	if (!(f->flags & (FLOW_ECN_ASKED | FLOW_ECN_FELL_BACK)))
		return;
	if (accepts_ecn(s->flags))
		f->flags |= FLOW_ECN_FABRIC;
	else if (!accecn)
		f->flags &= ~(uint32_t)FLOW_ECN_GUEST;
}

/*
 * Does the peer's SYN-ACK acknowledge the guest's last SYN, or some of its data (RFC 7413)? The
 * payload size of a SYN into a live connection is not recorded.
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

/* May the guest accept this SYN-ACK? Until it has acknowledged one, it accepts any that answers. */
VCC_INLINE bool takes_synack(const struct vcc_flow *f, const struct vcc_segment *s)
{
	bool has_one = f->stage == STAGE_ESTABLISHED && f->settled && f->syn_seq == f->iss;

	return answers_guests_syn(f, s) && !has_one;
}

/* May the peer's SYN-ACK carry those options of ours that are in it? */
VCC_INLINE bool expects_ours(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t accecn = (s->options & OPT_HELLO) ? 0 : SYN_ACCECN_ASKED;

	return f->syn_flags & (FLOW_HELLO_OFFERED | accecn);
}

/* Applies a SYN-ACK that the guest may accept. The last one before the guest's ACK holds. */
VCC_INLINE void settle_by_synack(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	bool guest_asked = f->syn_flags & FLOW_ECN_GUEST;
	/* A retransmitted SYN-ACK must not reset counters that have moved since the first. */
	bool counting = ((f->flags & FLOW_FEEDBACK) || f->accecn) && s->seq + 1 == f->rcv_wup;

	go_by_syn(f);
	strip_ours(f, p, expects_ours(f, s), s, a);
	/* Data on the SYN that is not acknowledged was not accepted: the guest sends it as new. */
	f->snd_una = s->ack;
	f->snd_nxt = s->ack;
	f->overdraft_until = s->ack + s->window;
	f->sends &= (uint8_t)~SENDS_UNANSWERED;
	start_peer_sequence(f, s->seq);
	note_peer_dctcp(f, s);
	f->flags &= ~(uint32_t)FLOW_OFFERS | option_flags(s->options);
	f->wscale_guest = (f->flags & FLOW_WSCALE) ? f->syn_wscale : 0;
	note_ecn_answer(f, s);
	if (brings_ecn(f, p))
		show_ecn_answer(f, guest_asked, a);
	settle_ecn(f, p);
	hello_accepted(f, s);
	show_exact_scale(f, p, s, a);
	expect_mss(f, f->syn_mss_bytes);
	establish(f, s->now_us);
	path_handshake(f, p, s);
	if (f->accecn && !counting)
		accecn_start_accepted(f, s);
	if ((f->flags & FLOW_FEEDBACK) && !counting)
		feedback_start(f);
	show_first_window(f, p, s, a);
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
	/* It answers another SYN, and the guest will send a RST; or the guest has accepted one. */
	strip_ours(f, p, expects_ours(f, s), s, a);
	/* A copy of the accepted SYN-ACK gets the same rewrite. */
	if (!live || s->ack - (f->iss + 1) > UINT16_MAX || !shows_windows(f, p))
		return;
	if (f->flags & FLOW_WSCALE)
		a->wscale = f->wscale_shown;
	a->mss = (uint16_t)vcc_min(s->mss, f->mss_max_bytes + timestamps_bytes(f));
	show_ecn_answer(f, f->flags & FLOW_ECN_GUEST, a);
	/* The guest acknowledges it again. */
	if (f->accecn && !f->peer_sends) {
		f->syn_ip_ecn = s->ip_ecn;
		f->accecn |= ACCECN_ANSWERS;
	}
}

#endif
