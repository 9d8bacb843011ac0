/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Offers and requests of SYNs (RFC 9293, 3.5 and 3.7.1; RFC 7323; RFC 2018; RFC 3168, 6.1.1). The
 * content of the last SYN is kept apart from the flow's own flags: the answer settles it, and a
 * live connection continues until one arrives.
 */
#ifndef VCC_SYN_H
#define VCC_SYN_H

#include "accecn.h"
#include "feedback.h"
#include "window.h"

/* The default MSS (RFC 9293, 3.7.1). */
#define MSS_DEFAULT_BYTES 536u
/* No retransmission timer is this short (RFC 6298, 2.1): an earlier SYN is a network duplicate. */
#define SYN_COPY_US 100000u

/* Options in effect only if both SYN and SYN-ACK carry them. */
#define FLOW_OFFERS (FLOW_SACK | FLOW_TIMESTAMPS | FLOW_WSCALE)
/* The content of a SYN: in syn_flags, and in the flow's own flags until the SYN is answered. */
#define FLOW_SYN_SAYS                                                                              \
	(FLOW_OFFERS | FLOW_ECN_ASKED | FLOW_ECN_GUEST | FLOW_ACCECN_GUEST | FLOW_ECN_FELL_BACK |  \
	 FLOW_HELLO_OFFERED)
_Static_assert((FLOW_SYN_SAYS | FLOW_GUEST_OPENED | FLOW_SYN_SEEN_PEER) < SYN_ACCECN_ASKED,
	       "what a SYN says fits syn_flags");
/* The flags that the answer to a SYN sets. */
#define FLOW_ANSWER_SAYS (FLOW_ECN_FABRIC | FLOW_FEEDBACK | FLOW_LEFT_ALONE | FLOW_PEER_DCTCP)

/* ECN-setup SYN (RFC 3168, 6.1.1): ECE and CWR. With AE it requests AccECN (RFC 9768, 3.1.1). */
VCC_INLINE bool asks_ecn(uint16_t flags)
{
	return (flags & (TCP_ECE | TCP_CWR)) == (TCP_ECE | TCP_CWR);
}

/* Every SYN but one without ECN or with classic ECN requests AccECN (RFC 9768, 3.1.2). */
VCC_INLINE bool asks_accecn(uint16_t flags)
{
	uint16_t bits = flags & TCP_ECN_BITS;

	return bits && bits != (TCP_ECE | TCP_CWR);
}

/* ECN-setup SYN-ACK (RFC 3168, 6.1.1): ECE without CWR. Both come from a reflecting middlebox. */
VCC_INLINE bool accepts_ecn(uint16_t flags)
{
	return (flags & (TCP_ECE | TCP_CWR)) == TCP_ECE;
}

/* A SYN-ACK that accepts AccECN, if that was asked for (RFC 9768, table 2 and 3.1.3). */
VCC_INLINE bool accepts_accecn(uint16_t flags)
{
	uint16_t bits = flags & TCP_ECN_BITS;

	return bits && bits != TCP_ECE && bits != TCP_ECN_BITS;
}

/* Initialises a flow. The recorded SYN is kept: it may be the one that starts this connection. */
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
		.syn_ip_ecn = f->syn_ip_ecn,
	};
	cc_init(f->underlay, &f->cc, vcc_max(p->initial_window_segs, 1));
}

/* Applies the recorded SYN to the flow, until its answer settles it. */
VCC_INLINE void go_by_syn(struct vcc_flow *f)
{
	f->flags &= ~(uint32_t)(FLOW_SYN_SAYS | FLOW_ANSWER_SAYS);
	f->flags |= f->syn_flags & FLOW_SYN_SAYS;
	f->accecn = 0;
}

/* A new connection replaces a live one and keeps its treatment. */
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

/* Starts the guest's sequence numbers. Its SYN or SYN-ACK with payload occupies `iss` to `end`. */
VCC_INLINE void start_sequence(struct vcc_flow *f, uint32_t iss, uint32_t end, uint64_t now_us)
{
	f->iss = iss;
	f->snd_una = iss + 1;
	f->snd_nxt = end;
	f->right_edge = f->snd_una;
	f->overdraft_until = f->snd_una;
	f->round_end = f->snd_una;
	f->recover = f->snd_una;
	f->ece_reported = f->snd_una;
	f->progress_us = (uint32_t)now_us;
	f->validated_us = (uint32_t)now_us;
	f->sent_us = (uint32_t)now_us;
	f->flags |= FLOW_SYN_SEEN_GUEST;
}

/*
 * Starts the peer's sequence numbers. Data on a SYN (RFC 7413) is not counted: the guest may refuse
 * it. The guest's SYN offers an unscaled window, so UINT16_MAX is its upper bound.
 */
VCC_INLINE void start_peer_sequence(struct vcc_flow *f, uint32_t irs)
{
	f->rcv_nxt = irs + 1;
	f->flags |= FLOW_SYN_SEEN_PEER;
	receive_from(f, irs + 1, UINT16_MAX);
}

/* DCTCP sends its SYNs as ECT (RFC 8257, 3.5). Others may send ECT SYN-ACKs too (RFC 5562). */
VCC_INLINE void note_peer_dctcp(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->ip_ecn != IP_ECN_NOT_ECT)
		f->flags |= FLOW_PEER_DCTCP;
}

/* DCTCP sends pure ACKs as ECT (Linux: tcp_ecn_send); classic ECN does not (RFC 3168, 6.1.4). */
VCC_INLINE void note_peer_classic(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->ip_ecn == IP_ECN_NOT_ECT && !s->payload_bytes && !(s->flags & TCP_FIN))
		f->flags &= ~(uint32_t)FLOW_PEER_DCTCP;
}

/* The peer has opened the connection, and the guest's SYN-ACK has not passed. */
VCC_INLINE bool lacks_own_synack(const struct vcc_flow *f)
{
	return f->stage == STAGE_SYN_RECEIVED &&
	       !(f->flags & (FLOW_GUEST_OPENED | FLOW_SYN_SEEN_GUEST));
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

/* Records a SYN. `says` holds its sender and its requests; options are read from the segment. */
VCC_INLINE void note_syn(struct vcc_flow *f, const struct vcc_segment *s, uint32_t says)
{
	f->syn_seq = s->seq;
	f->syn_flags = (uint16_t)(says | option_flags(s->options));
	f->syn_mss_bytes = syn_mss(s);
	f->syn_wscale = syn_scale(s);
	f->syn_ip_ecn = s->ip_ecn;
}

/* Does vcc choose the scale and MSS that the guest is shown? */
VCC_INLINE bool shows_windows(const struct vcc_flow *f, const struct vcc_params *p)
{
	return translates(f, p) && is_controlled(f);
}

VCC_INLINE uint32_t timestamps_bytes(const struct vcc_flow *f)
{
	return (f->flags & FLOW_TIMESTAMPS) ? TIMESTAMPS_BYTES : 0;
}

/*
 * A side's MSS option limits the other side's segments, not its own (RFC 9293, 3.7.1). The guest's
 * option still hints at its link's MTU: it is the first estimate, on the low side, until the first
 * full segment corrects it.
 */
VCC_INLINE void expect_mss(struct vcc_flow *f, uint16_t guest_mss_bytes)
{
	f->mss_bytes = (uint16_t)vcc_min(f->mss_max_bytes, guest_mss_bytes);
}

/*
 * A SYN or SYN-ACK to the guest: chooses the scale at which windows are exact, and an MSS that is a
 * multiple of its unit (law 12).
 */
VCC_INLINE void show_exact_scale(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	/* Before the guest's answer, only the peer's offer of timestamps is known. */
	bool opened = f->flags & FLOW_GUEST_OPENED;
	uint32_t offered_bytes = (s->options & OPT_TIMESTAMPS) ? TIMESTAMPS_BYTES : 0;
	uint32_t overhead_bytes = opened ? timestamps_bytes(f) : offered_bytes;

	f->mss_max_bytes = syn_mss(s);
	f->wscale_peer = (f->flags & FLOW_WSCALE) ? syn_scale(s) : 0;
	f->wscale_shown = f->wscale_peer;
	if (!shows_windows(f, p))
		return;
	/* A guest that continues without vcc reads its peer's windows itself. */
	if (!p->migratable)
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
	f->rcv_mss_bytes = f->mss_bytes;
	if (!(f->flags & FLOW_WSCALE))
		f->wscale_peer = f->wscale_shown = 0;
	/* Data on a SYN is not timed, and the handshake's duration is no timeout. */
	f->progress_us = (uint32_t)now_us;
	f->stage = STAGE_ESTABLISHED;
}

/* Does the underlay take over the ECN of a guest that has some, so that it gets no AccECN? */
VCC_INLINE bool overrides_ecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return shows_windows(f, p) && !leaves_own_ecn(p);
}

/*
 * The guest's SYNs leave as Not-ECT (RFC 3168, 6.1.1), because they may carry data. A DCTCP guest
 * sends them as ECT (RFC 8257, 3.5), and a classic listener declines ECN in response; that is left
 * where the guest's ECN is.
 */
VCC_INLINE void syn_without_ect(const struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s, struct vcc_action *a)
{
	if (shows_windows(f, p) && (!leaves_own_ecn(p) || !(s->flags & TCP_ECN_BITS)))
		a->ip_ecn = IP_ECN_NOT_ECT;
}

/* Hides ECN from a guest that did not request it, also in the IP header of a DCTCP peer. */
VCC_INLINE void without_ecn(struct vcc_action *a)
{
	a->flags &= (uint16_t)~TCP_ECN_BITS;
	a->ip_ecn = IP_ECN_NOT_ECT;
}

/*
 * Is the peer's ECN request hidden from the guest? An underlay without ECN answers no marks, and a
 * guest that accepted (Linux does by default) would escape its control.
 */
VCC_INLINE bool hides_request(const struct vcc_flow *f, const struct vcc_params *p)
{
	return shows_windows(f, p) && (!(cc_traits(f->underlay) & CC_ECN) || p->migratable);
}

#endif
