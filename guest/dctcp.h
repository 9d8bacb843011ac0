/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DCTCP's arithmetic (RFC 8257), the same in the kernel and in its tests. */
#ifndef VCC_GUEST_DCTCP_H
#define VCC_GUEST_DCTCP_H

#include <stdint.h>

/* DCTCP.Alpha is a fixed-point number; this is 1. */
#define DCTCP_ALPHA_ONE 1024u
/* RFC 8257, 4.2: g = 1/16. */
#define DCTCP_G_SHIFT 4
/* RFC 5681, 3.1: a reduction leaves two segments. */
#define DCTCP_MIN_CWND_SEGS 2u

static inline uint32_t dctcp_at_least_min(uint32_t cwnd_segs)
{
	return cwnd_segs > DCTCP_MIN_CWND_SEGS ? cwnd_segs : DCTCP_MIN_CWND_SEGS;
}

/*
 * RFC 8257, 3.3, step 5: alpha = alpha * (1 - g) + g * M, M being the marked share of what was
 * delivered in this window. Linux counts segments where the RFC counts bytes.
 */
static inline uint32_t dctcp_next_alpha(uint32_t alpha, uint32_t delivered_segs,
					uint32_t delivered_ce_segs)
{
	uint32_t decay = alpha >> DCTCP_G_SHIFT;

	/* Where the fraction g of alpha is no number any more, alpha goes to 0 at once. */
	alpha -= decay ? decay : alpha;
	if (delivered_ce_segs) {
		uint64_t marked = (uint64_t)delivered_ce_segs * (DCTCP_ALPHA_ONE >> DCTCP_G_SHIFT);

		alpha += marked / (delivered_segs ? delivered_segs : 1);
	}
	return alpha < DCTCP_ALPHA_ONE ? alpha : DCTCP_ALPHA_ONE;
}

/* RFC 8257, 3.3, step 9: cwnd = cwnd * (1 - alpha / 2). */
static inline uint32_t dctcp_reduced_segs(uint32_t cwnd_segs, uint32_t alpha)
{
	return dctcp_at_least_min(cwnd_segs - (uint64_t)cwnd_segs * alpha / (2 * DCTCP_ALPHA_ONE));
}

/* RFC 8257, 3.5: to a loss it reacts as any TCP does. */
static inline uint32_t dctcp_halved_segs(uint32_t cwnd_segs)
{
	return dctcp_at_least_min(cwnd_segs / 2);
}

#endif
