/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signed connections (RFC 2385, RFC 5925), which a change would end: they are left alone.
 *
 * Whether a connection is signed, its guest cannot say alone. A receiver without a key for it may
 * ignore the option (RFC 5925, 7.3; Linux without CONFIG_TCP_AO does), on the SYN and on all that
 * follows, and so a guest that puts it everywhere would be rid of its window. The peer's answer
 * tells: one that signs its own SYN, or the answer to the guest's, has a key. On any other segment
 * the option means nothing.
 */
#ifndef VCC_SIGNED_H
#define VCC_SIGNED_H

#include "handshake.h"
#include "mptcp.h"

/* The guest's signed SYN has made its flow and passes as it is: it asks for no more than it says.
 */
VCC_INLINE void signed_syn_from_guest(struct vcc_flow *f, const struct vcc_segment *s,
				      struct vcc_action *a)
{
	f->syn_flags &= (uint16_t) ~(FLOW_ECN_ASKED | FLOW_ACCECN_GUEST | FLOW_HELLO_OFFERED);
	if (asks_ecn(s->flags))
		f->syn_flags |=
		    (s->flags & TCP_AE) ? FLOW_ECN_ASKED | FLOW_ACCECN_GUEST : FLOW_ECN_ASKED;
	if (f->stage == STAGE_SYN_SENT)
		go_by_syn(f);
	a->flags = s->flags;
	a->ip_ecn = s->ip_ecn;
	a->strip = false;
	a->emit = EMIT_NOTHING;
}

/* The peer's signed SYN or SYN-ACK passes as it is. In answer to the guest's SYN it settles it. */
VCC_INLINE void signed_syn_to_guest(const struct vcc_flow *f, const struct vcc_segment *s,
				    struct vcc_action *a)
{
	a->forget = (s->flags & TCP_ACK) && takes_synack(f, s);
}

/* Apart, for no segment behind the handshake needs the stack that this takes. */
VCC_APART int syns_from_guest(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *a)
{
	if (!f || !p || !s || !a)
		return -1;
	if (s->flags & TCP_ACK)
		synack_from_guest(f, p, s, a);
	else
		syn_from_guest(f, p, s, a);
	mptcp_refuse(f, p, s, a);
	if ((s->options & OPT_SIGNED) && !(s->flags & TCP_ACK))
		signed_syn_from_guest(f, s, a);
	note_seen(f, s);
	return 0;
}

VCC_APART int syns_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, struct vcc_action *a)
{
	if (!f || !p || !s || !a)
		return -1;
	if (s->options & OPT_SIGNED) {
		signed_syn_to_guest(f, s, a);
		return 0;
	}
	if (s->flags & TCP_ACK)
		synack_to_guest(f, p, s, a);
	else
		syn_to_guest(f, p, s, a);
	mptcp_refuse(f, p, s, a);
	return 0;
}

#endif
