/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ECN on data and ACKs (RFC 3168, 6.1.2 and 6.1.3), on behalf of the guest. */
#ifndef VCC_ECN_H
#define VCC_ECN_H

#include "sequence_tracking.h"
#include "treatment.h"

/* Did vcc negotiate the flow's ECN, without the guest's knowledge? */
VCC_INLINE bool ecn_is_ours(const struct vcc_flow *f)
{
	return (f->flags & FLOW_ECN_FABRIC) && !(f->flags & FLOW_ECN_GUEST);
}

/* Does vcc answer marks as receiver, for a guest without ECN or one that must not see them? */
VCC_INLINE bool plays_receiver(const struct vcc_flow *f)
{
	return ecn_is_ours(f) || f->accecn || (f->flags & FLOW_FEEDBACK);
}

/* Does this segment from the guest leave as ECT? */
VCC_INLINE bool ecn_capable(const struct vcc_flow *f, enum vcc_sent sent,
			    const struct vcc_segment *s)
{
	/*
	 * A host that sent a SYN without ECN must not send ECT (RFC 3168, 6.1.1). Nor may a flow
	 * whose marks are not reported, or whose window is not reduced for them.
	 */
	if (!(f->flags & FLOW_ECN_FABRIC) ||
	    (f->flags & (FLOW_ECN_FELL_BACK | FLOW_UNHEARD | FLOW_RELEASED)))
		return false;
	/*
	 * Threshold-marking switches drop Not-ECT packets, so DCTCP sends all as ECT (RFC 8311). An
	 * AccECN peer counts marks on all.
	 */
	if (f->accecn || (cc_traits(f->underlay) & CC_ECT_ALL))
		return true;
	/* Classic ECN: new data only (RFC 3168, 6.1.2, 6.1.4 and 6.1.5). */
	return sent == SENT_NEW && s->payload_bytes;
}

/*
 * Sender half, from-guest: ECT(0), and CWR on new data (RFC 3168, 6.1.2). What the guest wrote into
 * the ECN field does not leave: it could mark its segments as ECT where nobody answers marks, and a
 * queue would spare them; and a mark is the network's to make.
 */
VCC_INLINE void ecn_mark(struct vcc_flow *f, enum vcc_sent sent, const struct vcc_segment *s,
			 struct vcc_action *a)
{
	bool ecn = f->flags & FLOW_ECN_FABRIC;

	a->ip_ecn = ecn_capable(f, sent, s) ? IP_ECN_ECT_0 : IP_ECN_NOT_ECT;
	/* A guest without ECN has negotiated none of these bits with the peer. */
	if (!ecn || plays_receiver(f))
		a->flags &= (uint16_t)~TCP_ECN_BITS;
	if (!ecn)
		return;
	/* With AccECN the bit is part of a counter (accecn.h). */
	if (f->accecn)
		return;
	/* Send CWR even if ECT has stopped, or the peer repeats its ECE forever (6.1.1). */
	if ((f->flags & (FLOW_CWR_DUE | FLOW_ECN_FELL_BACK)) == FLOW_CWR_DUE && sent == SENT_NEW &&
	    s->payload_bytes) {
		f->flags &= ~(uint32_t)FLOW_CWR_DUE;
		a->flags |= TCP_CWR;
	}
}

/*
 * From-guest: what is sent before the end of the handshake, a RST, or what the peer will discard is
 * not ECT (RFC 3168, 6.1.1 and 6.1.4), unless the guest's ECN is its own.
 */
VCC_INLINE void ecn_unmark(const struct vcc_flow *f, const struct vcc_params *p,
			   struct vcc_action *a)
{
	if (translates(f, p) && (is_managed(f) || (is_controlled(f) && !leaves_alone(f, p))))
		a->ip_ecn = IP_ECN_NOT_ECT;
}

/*
 * Receiver half, to-guest: CWR releases ECE, CE latches it. A segment with both latches it (RFC
 * 3168, 6.1.3).
 */
VCC_INLINE void ecn_latch(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->flags & TCP_CWR)
		f->flags &= ~(uint32_t)FLOW_ECE_LATCHED;
	if (s->ip_ecn == IP_ECN_CE && s->payload_bytes)
		f->flags |= FLOW_ECE_LATCHED;
}

/* Receiver half, from-guest: ECE on every ACK until CWR arrives. */
VCC_INLINE void ecn_echo(const struct vcc_flow *f, struct vcc_action *a)
{
	if ((f->flags & FLOW_ECE_LATCHED) && (a->flags & TCP_ACK) && !(a->flags & TCP_RST))
		a->flags |= TCP_ECE;
}

/* To-guest: hides ECN that the guest did not negotiate, and marks on ECT that vcc set (law 5). */
VCC_INLINE void ecn_hide(const struct vcc_flow *f, struct vcc_action *a)
{
	if (!(f->flags & FLOW_ECN_FABRIC))
		return;
	/* The sender half answers ECE, also for a guest whose own ECN is overridden. */
	a->flags &= (uint16_t)~TCP_ECE;
	if (!plays_receiver(f))
		return;
	/* vcc reports the marks to the sender. The guest may see ECT if it negotiated that. */
	a->flags &= (uint16_t) ~(TCP_CWR | TCP_AE);
	if (ecn_is_ours(f))
		a->ip_ecn = IP_ECN_NOT_ECT;
	else if (a->ip_ecn == IP_ECN_CE)
		a->ip_ecn = IP_ECN_ECT_0;
}

#endif
