/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MPTCP (RFC 8684). The window field of a subflow is that of the whole connection (3.3.1), so the
 * window of an underlay cannot be shown on one: data that it does not admit here goes over another
 * subflow, and what limits one stalls them all. Left alone, the option would be a way around every
 * window. So the SYNs of a controlled flow go without it, and both ends fall back to TCP (3.7); one
 * that wanted to join a connection which began elsewhere closes its subflow (3.2).
 */
#ifndef VCC_MPTCP_H
#define VCC_MPTCP_H

#include "treat.h"

VCC_INLINE void mptcp_refuse(const struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, struct vcc_action *a)
{
	if ((s->options & OPT_MPTCP) && !a->forget && translates(f, p) && is_controlled(f))
		a->strip = true;
}

#endif
