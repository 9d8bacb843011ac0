/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The handshake in both roles (RFC 9293, 3.5), with ECN negotiated on behalf of a guest that has
 * none (RFC 3168, 6.1.1). The windows of SYNs are unscaled, and lowered only to a limited first
 * flight (law 3).
 *
 * A SYN into a live connection may be forged, stray, or the start of a new connection. Its receiver
 * decides (RFC 9293, 3.10.7.4; RFC 5961, 4): vcc applies the SYN when the receiver answers it.
 */
#ifndef VCC_HANDSHAKE_H
#define VCC_HANDSHAKE_H

#include "active_open.h"
#include "mptcp.h"
#include "one_direction.h"
#include "passive_open.h"
#include "signed_connection.h"

/* Out of line: segments after the handshake do not need this stack. */
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
	if (!a->forget)
		syn_without_ect(f, p, s, a);
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
