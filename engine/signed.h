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

/* The guest's signed SYN has made its flow and passes as it is: it asks for no more than it says.
 */
VCC_INLINE void signed_syn_from_guest(struct vcc_flow *f, const struct vcc_segment *s,
				      struct vcc_action *a)
{
	f->flags &= ~(uint32_t)(FLOW_ECN_ASKED | FLOW_ACCECN_GUEST | FLOW_HELLO_OFFERED);
	if (asks_ecn(s->flags))
		f->flags |=
		    (s->flags & TCP_AE) ? FLOW_ECN_ASKED | FLOW_ACCECN_GUEST : FLOW_ECN_ASKED;
	a->flags = s->flags;
	a->ip_ecn = s->ip_ecn;
	a->strip = false;
	a->emit = EMIT_NOTHING;
}

/* The peer's signed SYN or SYN-ACK passes as it is. In answer to the guest's SYN it settles it. */
VCC_INLINE void signed_syn_to_guest(const struct vcc_flow *f, const struct vcc_segment *s,
				    struct vcc_action *a)
{
	a->forget = (s->flags & TCP_ACK) && f->stage == STAGE_SYN_SENT &&
		    !seq_before(s->ack, f->snd_una) && !seq_after(s->ack, f->snd_nxt);
}

#endif
