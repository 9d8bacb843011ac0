/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DCTCP (RFC 8257), with Linux's choices where the RFC leaves some: alpha starts at 1, one update
 * per window, a loss halves the window. Fractions are in 1/1024.
 */
#ifndef VCC_CC_DCTCP_H
#define VCC_CC_DCTCP_H

#include "../seq.h"
#include "reno.h"

#define DCTCP_ALPHA_ONE CC_ALPHA_ONE
/* g = 1/16 (RFC 8257, 4.2). */
#define DCTCP_G_SHIFT 4

/* DCTCP's state, as indices of cc->own (RFC 8257, 3.3). */
enum dctcp_own {
	DCTCP_ALPHA = CC_OWN_ALPHA, /* alpha, in 1/DCTCP_ALPHA_ONE */
	DCTCP_REPORTED,		    /* bytes reported in this observation window */
	DCTCP_MARKED,		    /* marked bytes among them */
	DCTCP_WINDOW_END,	    /* the observation window ends when this is acknowledged */
};

VCC_INLINE void dctcp_init(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_init(cc, initial_window_segs);
	/* alpha starts at 1, so the first mark halves the window as in RFC 3168 (RFC 8257, 3.3). */
	cc->own[DCTCP_ALPHA] = DCTCP_ALPHA_ONE;
	cc->own[DCTCP_REPORTED] = 0;
	cc->own[DCTCP_MARKED] = 0;
	cc->own[DCTCP_WINDOW_END] = 0;
}

/* alpha = (1 - g) * alpha + g * M (RFC 8257, 3.3, step 6). `reported_bytes` must not be 0. */
VCC_INLINE uint32_t dctcp_alpha(uint32_t alpha, uint32_t marked_bytes, uint32_t reported_bytes)
{
	uint32_t decay = alpha >> DCTCP_G_SHIFT;

	/* As Linux: an alpha below 1/g would never decay by the shift, so it drops to 0. */
	alpha -= decay ? decay : alpha;
	uint64_t gain = ((uint64_t)marked_bytes << (10 - DCTCP_G_SHIFT)) / reported_bytes;

	return gain < DCTCP_ALPHA_ONE ? vcc_min(alpha + (uint32_t)gain, DCTCP_ALPHA_ONE)
				      : DCTCP_ALPHA_ONE;
}

VCC_INLINE void dctcp_on_feedback(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	cc->own[DCTCP_REPORTED] += ack->reported_bytes;
	/* ECE on an ACK of no new data signals congestion, but marks no bytes. */
	cc->own[DCTCP_MARKED] += vcc_min(ack->marked_bytes, ack->reported_bytes);
	/*
	 * A window without delivered bytes does not count (RFC 8257, 3.3, step 2). Linux sometimes
	 * counts one while it only receives: its alpha decays although it sends nothing.
	 */
	if (!cc->own[DCTCP_REPORTED] ||
	    (seq_before(ack->snd_una, cc->own[DCTCP_WINDOW_END]) && cc->own[DCTCP_WINDOW_END]))
		return;
	cc->own[DCTCP_ALPHA] =
	    dctcp_alpha(cc->own[DCTCP_ALPHA], cc->own[DCTCP_MARKED], cc->own[DCTCP_REPORTED]);
	cc->own[DCTCP_REPORTED] = 0;
	cc->own[DCTCP_MARKED] = 0;
	cc->own[DCTCP_WINDOW_END] = ack->snd_nxt;
}

/*
 * The reduction of a window by `share` / 2^21. Rounded down as in Linux, whose minimum is 2
 * segments; from 2 on rounded to nearest, or only a fully marked window would ever reach 1.
 */
VCC_INLINE uint32_t dctcp_cut_segs(uint32_t cwnd_segs, uint64_t share)
{
	uint32_t round = cwnd_segs <= 2 ? 1u << 20 : 0;

	return (uint32_t)((cwnd_segs * share + round) >> 21);
}

/* Reduces by `share` / 2^21 for marks, and to half otherwise. */
VCC_INLINE void dctcp_reduce(struct vcc_cc_state *cc, enum vcc_congestion cause,
			     const struct vcc_params *p, uint64_t share)
{
	uint32_t left_segs = cc->cwnd_segs / 2;

	if (has_fractions(p)) {
		fractional_reduce(cc, cause == CONGESTION_ECN ? share : 1ull << 20);
		return;
	}
	if (cause == CONGESTION_ECN)
		left_segs = cc->cwnd_segs - dctcp_cut_segs(cc->cwnd_segs, share);
	cc->ssthresh_segs = vcc_max(left_segs, vcc_max(p->window_floor_segs, 1));
	cc->credit_bytes = 0;
}

/*
 * Reduces by alpha / 2 for marks (RFC 8257, 3.3, step 9), and to half for a loss or an ECE that
 * does not say how much was marked (3.4; RFC 3168). The floor is the operator's and may be below
 * Linux's 2 segments (AC/DC, 5.2, incast).
 */
VCC_INLINE void dctcp_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
				    const struct vcc_params *p)
{
	uint64_t share = (uint64_t)cc->own[DCTCP_ALPHA] << 10;

	dctcp_reduce(cc, cause, p, share);
}

#define dctcp_on_ack	 window_on_ack
#define dctcp_on_timeout reno_on_timeout
#define dctcp_on_idle	 reno_on_idle
#define dctcp_on_mss	 reno_on_mss

#endif
VCC_CC(dctcp, "dctcp", "DCTCP (RFC 8257)",
       CC_CONTROLS | CC_ECN | CC_ECT_ALL | CC_ALPHA | CC_FRACTIONS, dctcp)
