/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DCTCP with a priority beta from 0 to 1 (AC/DC, 3.4, equation 1): a mark reduces the window to
 * cwnd * (1 - (alpha - alpha * beta / 2)). A beta of 1 is DCTCP.
 */
#ifndef VCC_CC_DCTCP_PRIORITY_H
#define VCC_CC_DCTCP_PRIORITY_H

#include "dctcp.h"

VCC_INLINE void dctcp_priority_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
					     const struct vcc_params *p)
{
	/* A single product, so that a beta of 1 rounds like DCTCP. */
	uint64_t share = cc->own[DCTCP_ALPHA] * (2 * BETA_ONE - vcc_min(p->beta_1024, BETA_ONE));

	dctcp_reduce(cc, cause, p, share);
}

#define dctcp_priority_init	   dctcp_init
#define dctcp_priority_on_feedback dctcp_on_feedback
#define dctcp_priority_on_ack	   dctcp_on_ack
#define dctcp_priority_on_timeout  dctcp_on_timeout
#define dctcp_priority_on_idle	   dctcp_on_idle
#define dctcp_priority_on_mss	   dctcp_on_mss

#endif
VCC_CC(dctcp_priority, "dctcp-priority", "DCTCP with a priority (AC/DC, 3.4)",
       CC_CONTROLS | CC_ECN | CC_ECT_ALL | CC_ALPHA | CC_PRIORITY | CC_FRACTIONS, dctcp_priority)
