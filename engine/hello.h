/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Negotiation of feedback between two vcc ends in the handshake, and removal of its options. */
#ifndef VCC_HELLO_H
#define VCC_HELLO_H

#include "ecn.h"

VCC_INLINE void count_forged(struct vcc_flow *f, struct vcc_action *a)
{
	a->forged = true;
	f->forged += f->forged < UINT8_MAX;
}

/* Did the handshake agree on options of ours like those of the segment? */
VCC_INLINE bool agreed_ours(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (f->flags & FLOW_FEEDBACK) || (f->accecn && !(s->options & (OPT_HELLO | OPT_FACK)));
}

/* strip_ours() of a segment that has some. Out of line, because few have. */
VCC_APART int strip_options(struct vcc_flow *f, const struct vcc_params *p, bool agreed,
			    const struct vcc_segment *s, struct vcc_action *a)
{
	if (!f || !p || !s || !a)
		return -1;
	/* AccECN's options may be the guest's own, a Hello never. */
	bool own = (f->flags & FLOW_ACCECN_GUEST) && !(s->options & OPT_HELLO);

	if (!translates(f, p) || !is_controlled(f) || own)
		return 0;
	/* A far end that reports by PACK has no other form of AccECN's option. */
	bool other = (s->options & OPT_ACCECN) && (f->flags & FLOW_FEEDBACK);

	a->strip = true;
	if (!agreed || other || (s->options & OPT_OURS_BAD))
		count_forged(f, a);
	return 0;
}

/*
 * Removes our options from every segment of a translated flow: the guest must neither see nor send
 * them. Options that were not negotiated count as forged.
 */
VCC_INLINE void strip_ours(struct vcc_flow *f, const struct vcc_params *p, bool agreed,
			   const struct vcc_segment *s, struct vcc_action *a)
{
	if (s->options & OPT_OURS)
		strip_options(f, p, agreed, s, a);
}

/* May this flow negotiate feedback? */
VCC_INLINE bool speaks_hello(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->feedback && brings_ecn(f, p);
}

/*
 * The guest's SYN offers feedback. A retransmitted SYN does not, in case a middlebox drops segments
 * with unknown options.
 */
VCC_INLINE void hello_offer(struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, struct vcc_action *a)
{
	bool own_ecn = (f->syn_flags & FLOW_ECN_GUEST) && leaves_own_ecn(p);

	if (!speaks_hello(f, p) || own_ecn || (f->syn_flags & FLOW_ACCECN_GUEST) ||
	    s->option_room_bytes < OPT_HELLO_BYTES)
		return;
	f->syn_flags |= FLOW_HELLO_OFFERED;
	a->emit = EMIT_HELLO;
	a->hello = HELLO_OFFER;
}

/*
 * Does the peer's SYN offer feedback? The guest sees neither the offer nor the ECN request, which
 * comes from the far end's vcc: a guest that accepts it (Linux does by default) would count as one
 * that uses ECN itself.
 */
VCC_INLINE bool hello_offered(const struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *a)
{
	if (!speaks_hello(f, p) || !(s->options & OPT_HELLO) || s->hello != HELLO_OFFER)
		return false;
	a->flags &= (uint16_t)~TCP_ECN_BITS;
	a->ip_ecn = IP_ECN_NOT_ECT;
	return true;
}

/* The guest's SYN-ACK accepts the offer. Retransmissions repeat it, whatever the parameters now. */
VCC_INLINE void hello_accept(const struct vcc_flow *f, const struct vcc_segment *s,
			     struct vcc_action *a)
{
	if (!(f->flags & FLOW_FEEDBACK) || s->option_room_bytes < OPT_HELLO_BYTES)
		return;
	a->emit = EMIT_HELLO;
	a->hello = HELLO_ACCEPT;
}

/* The guest's first SYN-ACK: decides to accept an offer if vcc negotiated ECN. */
VCC_INLINE void hello_answer(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s)
{
	if (speaks_hello(f, p) && (f->flags & FLOW_HELLO_OFFERED) && (f->flags & FLOW_ECN_FABRIC) &&
	    !keeps_own_ecn(f, p) && s->option_room_bytes >= OPT_HELLO_BYTES)
		f->flags |= FLOW_FEEDBACK;
}

/* The peer's SYN-ACK: did the far end accept? A middlebox's echo of our offer does not count. */
VCC_INLINE void hello_accepted(struct vcc_flow *f, const struct vcc_segment *s)
{
	if ((f->flags & FLOW_HELLO_OFFERED) && (f->flags & FLOW_ECN_FABRIC) && !f->accecn &&
	    (s->options & OPT_HELLO) && s->hello == HELLO_ACCEPT)
		f->flags |= FLOW_FEEDBACK;
}

#endif
