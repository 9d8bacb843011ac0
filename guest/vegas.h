/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP Vegas' decision of once a round trip (Brakmo, Peterson: TCP Vegas, IEEE JSAC 13(8), 1995),
 * the same in the kernel and in its tests. The parameters are Linux's.
 */
#ifndef VCC_GUEST_VEGAS_H
#define VCC_GUEST_VEGAS_H

#include <stdbool.h>
#include <stdint.h>

/* Segments of our own in the queues: grow below alpha, shrink above beta (section 3.2)... */
#define VEGAS_ALPHA_SEGS 2u
#define VEGAS_BETA_SEGS	 4u
/* ...and end slow start above gamma (section 3.3). */
#define VEGAS_GAMMA_SEGS 1u
/* Samples of a round trip that could all be of delayed ACKs tell too little. */
#define VEGAS_FEW_SAMPLES   2u
#define VEGAS_MIN_CWND_SEGS 2u
#define VEGAS_NO_RTT_US	    0x7fffffffu

struct vegas {
	uint32_t base_rtt_us; /* BaseRTT: the smallest ever */
	uint32_t min_rtt_us;  /* the smallest of this round trip, which delayed ACKs spoil least */
	uint32_t samples;     /* of this round trip */
};

/* What it decides about. */
struct vegas_window {
	uint32_t cwnd_segs;
	uint32_t ssthresh_segs;
};

static inline void vegas_start_round(struct vegas *v)
{
	v->min_rtt_us = VEGAS_NO_RTT_US;
	v->samples = 0;
}

static inline void vegas_sample(struct vegas *v, uint32_t rtt_us)
{
	/* Never 0, by which is divided. */
	rtt_us++;
	if (rtt_us < v->base_rtt_us)
		v->base_rtt_us = rtt_us;
	if (rtt_us < v->min_rtt_us)
		v->min_rtt_us = rtt_us;
	v->samples++;
}

/*
 * Diff (section 3.2) in segments: (Expected - Actual) * RTT, as Linux has it. The paper multiplies
 * by BaseRTT instead, which gives the segments queued; Linux' Diff is larger by the share that the
 * queue has of the path, so it queues less on a short one.
 */
static inline uint32_t vegas_diff_segs(const struct vegas *v, uint32_t cwnd_segs)
{
	return (uint64_t)cwnd_segs * (v->min_rtt_us - v->base_rtt_us) / v->base_rtt_us;
}

/* Leaves slow start, and stays out of it: ssthresh below the window. */
static inline void vegas_end_slow_start(struct vegas_window *w)
{
	if (w->ssthresh_segs >= w->cwnd_segs)
		w->ssthresh_segs = w->cwnd_segs - 1;
}

/*
 * The decision in congestion avoidance (section 3.2), or whether slow start ends (3.3). Returns
 * whether it goes on.
 */
static inline bool vegas_decide(const struct vegas *v, struct vegas_window *w)
{
	uint32_t diff_segs = vegas_diff_segs(v, w->cwnd_segs);

	if (w->cwnd_segs < w->ssthresh_segs) {
		if (diff_segs <= VEGAS_GAMMA_SEGS)
			return true;
		/* To what the path carries without a queue, and one more for what rounding took. */
		uint32_t carried_segs = (uint64_t)w->cwnd_segs * v->base_rtt_us / v->min_rtt_us + 1;

		if (carried_segs < w->cwnd_segs)
			w->cwnd_segs = carried_segs;
		vegas_end_slow_start(w);
	} else if (diff_segs > VEGAS_BETA_SEGS) {
		w->cwnd_segs--;
		vegas_end_slow_start(w);
	} else if (diff_segs < VEGAS_ALPHA_SEGS) {
		w->cwnd_segs++;
	}
	if (w->cwnd_segs < VEGAS_MIN_CWND_SEGS)
		w->cwnd_segs = VEGAS_MIN_CWND_SEGS;
	return false;
}

#endif
