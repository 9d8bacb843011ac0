/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SYNs: what one side offers and asks for, and what becomes of it (RFC 9293, 3.5 and 3.7.1;
 * RFC 7323; RFC 2018; RFC 3168, 6.1.1). What the last SYN said is kept apart from what holds, so
 * that it can be settled by whichever answer comes, and a live connection goes on until one does.
 */
#ifndef VCC_SYN_H
#define VCC_SYN_H

#include "accept.h"
#include "feedback.h"
#include "window.h"

/* RFC 9293, 3.7.1: the MSS of a peer that names none. */
#define MSS_DEFAULT_BYTES 536u
/* No timer sends a SYN again so soon (RFC 6298, 2.1): it is a copy. */
#define SYN_COPY_US 100000u

/* What is agreed on by SYN and SYN-ACK. */
#define FLOW_OFFERS (FLOW_SACK | FLOW_TIMESTAMPS | FLOW_WSCALE)
/* All that a SYN says, as it stands in syn_flags, and in the flow's own flags until it is answered.
 */
#define FLOW_SYN_SAYS                                                                              \
	(FLOW_OFFERS | FLOW_ECN_ASKED | FLOW_ECN_GUEST | FLOW_ACCECN_GUEST | FLOW_ECN_FELL_BACK |  \
	 FLOW_HELLO_OFFERED)
_Static_assert((FLOW_SYN_SAYS | FLOW_GUEST_OPENED | FLOW_SYN_SEEN_PEER) <= UINT16_MAX,
	       "what a SYN says fits syn_flags");
/* And what its answer settles. */
#define FLOW_ANSWER_SAYS (FLOW_ECN_FABRIC | FLOW_FEEDBACK | FLOW_LEFT_ALONE | FLOW_PEER_DCTCP)

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

/* What the last SYN said stays: it may be what begins this. */
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
		.syn_seq = f->syn_seq,
		.syn_flags = f->syn_flags,
		.syn_mss_bytes = f->syn_mss_bytes,
		.syn_wscale = f->syn_wscale,
	};
	cc_init(f->underlay, &f->cc, vcc_max(p->initial_window_segs, 1));
}

/* The guest's sequence numbers begin at `iss`; what its SYN or SYN-ACK occupies ends at `end`. */
VCC_INLINE void start_sequence(struct vcc_flow *f, uint32_t iss, uint32_t end, uint64_t now_us)
{
	f->iss = iss;
	f->snd_una = iss + 1;
	f->snd_nxt = end;
	f->right_edge = f->snd_una;
	f->overdraft_until = f->snd_una;
	f->round_end = f->snd_una;
	f->recover = f->snd_una;
	f->ece_told = f->snd_una;
	f->progress_us = (uint32_t)now_us;
	f->validated_us = (uint32_t)now_us;
	f->sent_us = (uint32_t)now_us;
	f->flags |= FLOW_SYN_SEEN_GUEST;
}

/*
 * The peer's. Data on a SYN (RFC 7413) is not counted: the guest may refuse it. What the guest's
 * own SYN has offered to take, unscaled, is not more than this.
 */
VCC_INLINE void start_peer_sequence(struct vcc_flow *f, uint32_t irs)
{
	f->rcv_nxt = irs + 1;
	f->flags |= FLOW_SYN_SEEN_PEER;
	receive_from(f, irs + 1, UINT16_MAX);
}

/* RFC 8257, 3.5: DCTCP sends its SYNs as ECT, but so may others their SYN-ACKs (RFC 5562). */
VCC_INLINE void note_peer_dctcp(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->ip_ecn != IP_ECN_NOT_ECT)
		f->flags |= FLOW_PEER_DCTCP;
}

/* DCTCP sends all as ECT (Linux: tcp_ecn_send); others no pure ACK (RFC 3168, 6.1.4). */
VCC_INLINE void note_peer_classic(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->ip_ecn == IP_ECN_NOT_ECT && !s->payload_bytes && !(s->flags & TCP_FIN))
		f->flags &= ~(uint32_t)FLOW_PEER_DCTCP;
}

VCC_INLINE uint32_t option_flags(uint16_t options)
{
	return ((options & OPT_SACK_PERMITTED) ? FLOW_SACK : 0) |
	       ((options & OPT_TIMESTAMPS) ? FLOW_TIMESTAMPS : 0) |
	       ((options & OPT_WSCALE) ? FLOW_WSCALE : 0);
}

VCC_INLINE uint16_t syn_mss(const struct vcc_segment *s)
{
	uint16_t mss_bytes = (s->options & OPT_MSS) ? s->mss : MSS_DEFAULT_BYTES;

	return (uint16_t)vcc_max(mss_bytes, TIMESTAMPS_BYTES + 1);
}

VCC_INLINE uint8_t syn_scale(const struct vcc_segment *s)
{
	return (s->options & OPT_WSCALE) ? (uint8_t)vcc_min(s->wscale, WSCALE_MAX) : 0;
}

/* Remember a SYN; `says` is who sent it, and what of it is more than options. */
VCC_INLINE void note_syn(struct vcc_flow *f, const struct vcc_segment *s, uint32_t says)
{
	f->syn_seq = s->seq;
	f->syn_flags = (uint16_t)(says | option_flags(s->options));
	f->syn_mss_bytes = syn_mss(s);
	f->syn_wscale = syn_scale(s);
}

/* Is this window ours to decide? */
VCC_INLINE bool shows_windows(const struct vcc_flow *f, const struct vcc_params *p)
{
	return translates(f, p) && is_controlled(f);
}

VCC_INLINE uint32_t timestamps_bytes(const struct vcc_flow *f)
{
	return (f->flags & FLOW_TIMESTAMPS) ? TIMESTAMPS_BYTES : 0;
}

/*
 * Each side's MSS limits what the other sends, and not what it sends itself (RFC 9293, 3.7.1). Of
 * that it only tells how large the guest's link seems to be: a first guess, and rather too small,
 * for the first full segment puts it right.
 */
VCC_INLINE void expect_mss(struct vcc_flow *f, uint16_t guest_mss_bytes)
{
	f->mss_bytes = (uint16_t)vcc_min(f->mss_max_bytes, guest_mss_bytes);
}

/*
 * A SYN or SYN-ACK on its way to the guest: choose the scale at which windows are exact, and an
 * MSS of whole units.
 */
VCC_INLINE void show_exact_scale(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	/* Of a guest that has not answered yet, the peer's offer is all there is to go by. */
	bool opened = f->flags & FLOW_GUEST_OPENED;
	uint32_t offered_bytes = (s->options & OPT_TIMESTAMPS) ? TIMESTAMPS_BYTES : 0;
	uint32_t overhead_bytes = opened ? timestamps_bytes(f) : offered_bytes;

	f->mss_max_bytes = syn_mss(s);
	f->wscale_peer = (f->flags & FLOW_WSCALE) ? syn_scale(s) : 0;
	f->wscale_shown = f->wscale_peer;
	if (!shows_windows(f, p))
		return;
	f->wscale_shown = (uint8_t)vcc_min(f->wscale_peer, wscale_for(p->window_max_bytes));
	if (f->flags & FLOW_WSCALE)
		a->wscale = f->wscale_shown;
	if (!(s->options & OPT_MSS) || s->mss <= overhead_bytes)
		return;
	a->mss = (uint16_t)(mss_exact(s->mss - overhead_bytes, f->wscale_shown) + overhead_bytes);
	f->mss_max_bytes = (uint16_t)vcc_max(a->mss, TIMESTAMPS_BYTES + 1);
}

VCC_INLINE void establish(struct vcc_flow *f, uint64_t now_us)
{
	f->mss_max_bytes -= (uint16_t)timestamps_bytes(f);
	f->mss_bytes -= (uint16_t)timestamps_bytes(f);
	if (!(f->flags & FLOW_WSCALE))
		f->wscale_peer = f->wscale_shown = 0;
	/* What was sent on a SYN was not timed, and how long that took says nothing of a timeout.
	 */
	f->progress_us = (uint32_t)now_us;
	f->stage = STAGE_ESTABLISHED;
}

/* Must an AccECN guest or its peer be kept to classic ECN, so that ours can take it over? */
VCC_INLINE bool strips_accecn(const struct vcc_flow *f, const struct vcc_params *p, uint16_t flags)
{
	return shows_windows(f, p) && p->guest_ecn == GUEST_ECN_OVERRIDE && asks_ecn(flags) &&
	       (flags & TCP_AE);
}

/* Who asks for ECN with this SYN, and for which? Returns that as flags. */
VCC_INLINE uint32_t note_ecn_asked(const struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s, struct vcc_action *a)
{
	if (!asks_ecn(s->flags))
		return 0;
	if (strips_accecn(f, p, s->flags))
		a->flags &= (uint16_t)~TCP_AE;
	else if (s->flags & TCP_AE)
		return FLOW_ECN_ASKED | FLOW_ACCECN_GUEST;
	return FLOW_ECN_ASKED;
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

/* A guest that did not ask for ECN sees none, not even in the IP header of a DCTCP peer's answer.
 */
VCC_INLINE void without_ecn(struct vcc_action *a)
{
	a->flags &= (uint16_t)~TCP_ECN_BITS;
	a->ip_ecn = IP_ECN_NOT_ECT;
}

/*
 * Is a peer's request for ECN kept from the guest? An underlay that is led by loss answers no
 * mark, and a guest that accepted (Linux does, by default) would take the connection out of its
 * control.
 */
VCC_INLINE bool hides_request(const struct vcc_flow *f, const struct vcc_params *p)
{
	return shows_windows(f, p) && !(cc_traits(f->underlay) & CC_ECN);
}

#endif
