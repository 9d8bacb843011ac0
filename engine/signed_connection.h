/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signed connections (TCP MD5, RFC 2385; TCP-AO, RFC 5925) are left alone, because any change would
 * invalidate the signature.
 *
 * The guest's word is not enough: a receiver without a key may ignore the option (RFC 5925, 7.3;
 * Linux without CONFIG_TCP_AO), so a guest that sent it on every segment would escape its window.
 * The peer decides: a peer that signs its SYN or its SYN-ACK has a key. On other segments the
 * option is ignored.
 */
#ifndef VCC_SIGNED_CONNECTION_H
#define VCC_SIGNED_CONNECTION_H

#include "active_open.h"

/*
 * The guest's signed SYN creates a flow but its TCP header passes unchanged, so undo what vcc would
 * have added to its requests.
 */
VCC_INLINE void signed_syn_from_guest(struct vcc_flow *f, const struct vcc_segment *s,
				      struct vcc_action *a)
{
	f->syn_flags &= (uint16_t) ~(FLOW_ECN_ASKED | FLOW_ACCECN_GUEST | FLOW_HELLO_OFFERED |
				     SYN_ACCECN_ASKED);
	if (asks_ecn(s->flags))
		f->syn_flags |=
		    (s->flags & TCP_AE) ? FLOW_ECN_ASKED | FLOW_ACCECN_GUEST : FLOW_ECN_ASKED;
	if (f->stage == STAGE_SYN_SENT)
		go_by_syn(f);
	a->flags = s->flags;
	a->strip = false;
	a->emit = EMIT_NOTHING;
}

/*
 * The peer's signed SYN or SYN-ACK passes unchanged. A SYN-ACK that answers the guest's SYN proves
 * the connection signed: the flow is forgotten.
 */
VCC_INLINE void signed_syn_to_guest(const struct vcc_flow *f, const struct vcc_segment *s,
				    struct vcc_action *a)
{
	a->forget = (s->flags & TCP_ACK) && takes_synack(f, s);
}

#endif
