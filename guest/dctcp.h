/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DCTCP's arithmetic (RFC 8257), shared by the kernel and the tests. */
#ifndef VCC_GUEST_DCTCP_H
#define VCC_GUEST_DCTCP_H

#include <stdint.h>

/* 1 as the fixed-point number of DCTCP.Alpha. */
#define DCTCP_ALPHA_ONE 1024u
/* g = 1/16 (RFC 8257, 4.2). */
#define DCTCP_G_SHIFT 4
/* Minimum of ssthresh (RFC 5681, 3.1). */
#define DCTCP_MIN_CWND_SEGS 2u

static inline uint32_t dctcp_at_least_min(uint32_t cwnd_segs)
{
	return cwnd_segs > DCTCP_MIN_CWND_SEGS ? cwnd_segs : DCTCP_MIN_CWND_SEGS;
}

/*
 * alpha = alpha * (1 - g) + g * M, with M the marked fraction delivered in this window (RFC 8257,
 * 3.3, step 5). Linux counts segments, the RFC bytes.
 */
static inline uint32_t dctcp_next_alpha(uint32_t alpha, uint32_t delivered_segs,
					uint32_t delivered_ce_segs)
{
	uint32_t decay = alpha >> DCTCP_G_SHIFT;

	/* If g * alpha rounds to 0, alpha drops to 0. */
	alpha -= decay ? decay : alpha;
	if (delivered_ce_segs) {
		uint64_t marked = (uint64_t)delivered_ce_segs * (DCTCP_ALPHA_ONE >> DCTCP_G_SHIFT);

		alpha += marked / (delivered_segs ? delivered_segs : 1);
	}
	return alpha < DCTCP_ALPHA_ONE ? alpha : DCTCP_ALPHA_ONE;
}

/* cwnd = cwnd * (1 - alpha / 2) (RFC 8257, 3.3, step 9). */
static inline uint32_t dctcp_reduced_segs(uint32_t cwnd_segs, uint32_t alpha)
{
	return dctcp_at_least_min(cwnd_segs - (uint64_t)cwnd_segs * alpha / (2 * DCTCP_ALPHA_ONE));
}

/* A loss halves the window (RFC 8257, 3.5). */
static inline uint32_t dctcp_halved_segs(uint32_t cwnd_segs)
{
	return dctcp_at_least_min(cwnd_segs / 2);
}

#endif
