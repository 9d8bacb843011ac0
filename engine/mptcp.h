/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MPTCP (RFC 8684). A subflow's window field is the window of the whole connection (3.3.1), so an
 * underlay's window cannot be shown on a subflow: limiting one stalls all of them, and data that
 * one does not admit moves to another. Left alone, the option would bypass every window. vcc
 * therefore removes it from the SYNs of a controlled flow, and both ends fall back to TCP (3.7). A
 * subflow that wanted to join an existing connection is closed by its initiator (3.2).
 */
#ifndef VCC_MPTCP_H
#define VCC_MPTCP_H

#include "treatment.h"

VCC_INLINE void mptcp_refuse(const struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, struct vcc_action *a)
{
	if ((s->options & OPT_MPTCP) && !a->forget && translates(f, p) && is_controlled(f))
		a->strip = true;
}

#endif
