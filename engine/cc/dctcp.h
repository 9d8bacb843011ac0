/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DCTCP (RFC 8257), with the choices of Linux where the RFC leaves some: alpha starts at 1, one
 * update a window, a loss halves. Fractions count in 1/1024.
 */
#ifndef VCC_CC_DCTCP_H
#define VCC_CC_DCTCP_H

#include "../seq.h"
#include "reno.h"

#define DCTCP_ALPHA_ONE 1024u
/* RFC 8257, 4.2: g = 1/16. */
#define DCTCP_G_SHIFT 4

/* What is private to DCTCP, by its place in cc->own (RFC 8257, 3.3). */
enum dctcp_own {
	DCTCP_ALPHA,	  /* of DCTCP_ALPHA_ONE */
	DCTCP_REPORTED,	  /* bytes reported in this window */
	DCTCP_MARKED,	  /* of these, marked */
	DCTCP_WINDOW_END, /* the window is over when this is acknowledged */
};

VCC_INLINE void dctcp_init(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_init(cc, initial_window_segs);
	/* RFC 8257, 3.3: a first mark meets the caution of RFC 3168. */
	cc->own[DCTCP_ALPHA] = DCTCP_ALPHA_ONE;
	cc->own[DCTCP_REPORTED] = 0;
	cc->own[DCTCP_MARKED] = 0;
	cc->own[DCTCP_WINDOW_END] = 0;
}

/* RFC 8257, 3.3, step 6: alpha moves towards the window's fraction by g. Something was reported. */
VCC_INLINE uint32_t dctcp_alpha(uint32_t alpha, uint32_t marked_bytes, uint32_t reported_bytes)
{
	uint32_t decay = alpha >> DCTCP_G_SHIFT;

	/* Linux: what the shift would keep for ever goes at once. */
	alpha -= decay ? decay : alpha;
	uint64_t gain = ((uint64_t)marked_bytes << (10 - DCTCP_G_SHIFT)) / reported_bytes;

	return gain < DCTCP_ALPHA_ONE ? vcc_min(alpha + (uint32_t)gain, DCTCP_ALPHA_ONE)
				      : DCTCP_ALPHA_ONE;
}

VCC_INLINE void dctcp_on_feedback(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	cc->own[DCTCP_REPORTED] += ack->reported_bytes;
	/* An ECE that acknowledges nothing is congestion all the same, but of no bytes. */
	cc->own[DCTCP_MARKED] += vcc_min(ack->marked_bytes, ack->reported_bytes);
	/*
	 * A window in which nothing was delivered is none (RFC 8257, 3.3, step 2). Linux takes the
	 * segments of a response for such, now and then: its alpha decays while it sends nothing.
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
 * Segments to take from a window of which `share`, of 2^21, is to go. Rounded down as in Linux,
 * whose window ends at 2, but to the nearest from there: else only a window of which everything was
 * marked would ever come to 1.
 */
VCC_INLINE uint32_t dctcp_cut_segs(uint32_t cwnd_segs, uint64_t share)
{
	uint32_t round = cwnd_segs <= 2 ? 1u << 20 : 0;

	return (uint32_t)((cwnd_segs * share + round) >> 21);
}

/*
 * RFC 8257, 3.3, step 9: by alpha / 2 for marks; 3.4 and RFC 3168: to half where there is no
 * telling how much was marked. The floor is the operator's, and may lie below the 2 segments of
 * Linux (AC/DC, 5.2, incast).
 */
VCC_INLINE void dctcp_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
				    const struct vcc_params *p)
{
	uint32_t cwnd_segs = cc->cwnd_segs;
	uint32_t left_segs = cwnd_segs / 2;

	if (cause == CONGESTION_ECN)
		left_segs =
		    cwnd_segs - dctcp_cut_segs(cwnd_segs, (uint64_t)cc->own[DCTCP_ALPHA] << 10);
	cc->ssthresh_segs = vcc_max(left_segs, vcc_max(p->window_floor_segs, 1));
	cc->credit_bytes = 0;
}

#define dctcp_on_ack	 reno_on_ack
#define dctcp_on_timeout reno_on_timeout
#define dctcp_on_idle	 reno_on_idle
#define dctcp_on_mss	 reno_on_mss

#endif
VCC_CC(dctcp, "dctcp", CC_CONTROLS | CC_ECN | CC_ECT_ALL, dctcp)
