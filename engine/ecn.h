/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ECN on data and ACKs (RFC 3168, 6.1.2 and 6.1.3), for a guest that does none itself. */
#ifndef VCC_ECN_H
#define VCC_ECN_H

#include "track.h"
#include "treat.h"

/* Is the ECN that the fabric sees ours alone, the guest knowing nothing of it? */
VCC_INLINE bool ecn_is_ours(const struct vcc_flow *f)
{
	return (f->flags & FLOW_ECN_FABRIC) && !(f->flags & FLOW_ECN_GUEST);
}

/* Does this segment of the guest go out ECN-capable? */
VCC_INLINE bool ecn_capable(const struct vcc_flow *f, enum vcc_sent sent,
			    const struct vcc_segment *s)
{
	/*
	 * RFC 3168, 6.1.1: who has sent a SYN without ECN must not send ECT. Nor shall who is not
	 * told of marks, or whose window nobody reduces for them.
	 */
	if (f->flags & (FLOW_ECN_FELL_BACK | FLOW_UNHEARD | FLOW_RELEASED))
		return false;
	/* A switch that marks by threshold drops what is not ECT, so DCTCP marks all (RFC 8311). */
	if (cc_traits(f->underlay) & CC_ECT_ALL)
		return true;
	/* Else new data only (RFC 3168, 6.1.2, 6.1.4 and 6.1.5). */
	return sent == SENT_NEW && s->payload_bytes;
}

/* Sender half, from-guest: ECT(0), and CWR on new data (RFC 3168, 6.1.2). */
VCC_INLINE void ecn_mark(struct vcc_flow *f, enum vcc_sent sent, const struct vcc_segment *s,
			 struct vcc_action *a)
{
	if (!(f->flags & FLOW_ECN_FABRIC))
		return;
	/* What a guest without ECN says in these bits was agreed with nobody. */
	if (ecn_is_ours(f) || (f->flags & FLOW_FEEDBACK)) {
		a->ip_ecn = IP_ECN_NOT_ECT;
		a->flags &= (uint16_t)~TCP_ECN_BITS;
	}
	if (ecn_capable(f, sent, s))
		a->ip_ecn = IP_ECN_ECT_0;
	/* Also by who sends no ECT any more: else the peer repeats its ECE for ever (6.1.1). */
	if ((f->flags & (FLOW_CWR_DUE | FLOW_ECN_FELL_BACK)) == FLOW_CWR_DUE && sent == SENT_NEW &&
	    s->payload_bytes) {
		f->flags &= ~(uint32_t)FLOW_CWR_DUE;
		a->flags |= TCP_CWR;
	}
}

/* Receiver half, to-guest: CE latches, CWR releases (in that segment's order: RFC 3168, 6.1.3). */
VCC_INLINE void ecn_latch(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->flags & TCP_CWR)
		f->flags &= ~(uint32_t)FLOW_ECE_LATCHED;
	if (s->ip_ecn == IP_ECN_CE && s->payload_bytes)
		f->flags |= FLOW_ECE_LATCHED;
}

/* Receiver half, from-guest: ECE on every ACK until CWR came. */
VCC_INLINE void ecn_echo(const struct vcc_flow *f, struct vcc_action *a)
{
	if ((f->flags & FLOW_ECE_LATCHED) && (a->flags & TCP_ACK) && !(a->flags & TCP_RST))
		a->flags |= TCP_ECE;
}

/* To-guest: nothing that the guest did not negotiate may reach it, and no mark of our making. */
VCC_INLINE void ecn_hide(const struct vcc_flow *f, struct vcc_action *a)
{
	if (!(f->flags & FLOW_ECN_FABRIC))
		return;
	/* The sender half answers ECE in the guest's stead, also for one whose ECN is overridden.
	 */
	a->flags &= (uint16_t)~TCP_ECE;
	if (ecn_is_ours(f)) {
		a->flags &= (uint16_t) ~(TCP_CWR | TCP_AE);
		a->ip_ecn = IP_ECN_NOT_ECT;
	} else if (f->flags & FLOW_FEEDBACK) {
		/* Its marks are reported by us. It may see that the path is ECN's. */
		a->flags &= (uint16_t)~TCP_CWR;
		if (a->ip_ecn == IP_ECN_CE)
			a->ip_ecn = IP_ECN_ECT_0;
	}
}

#endif
