/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP Vegas' decision per round trip (Brakmo, Peterson: TCP Vegas, IEEE JSAC 13(8), 1995), shared
 * by the kernel and the tests. The parameters are Linux's.
 */
#ifndef VCC_GUEST_VEGAS_H
#define VCC_GUEST_VEGAS_H

#include <stdbool.h>
#include <stdint.h>

/* The flow's queued segments: grow below alpha, shrink above beta (section 3.2). */
#define VEGAS_ALPHA_SEGS 2u
#define VEGAS_BETA_SEGS	 4u
/* End slow start above gamma queued segments (section 3.3). */
#define VEGAS_GAMMA_SEGS 1u
/* So few samples per round trip may all be of delayed ACKs, and are ignored. */
#define VEGAS_FEW_SAMPLES   2u
#define VEGAS_MIN_CWND_SEGS 2u
#define VEGAS_NO_RTT_US	    0x7fffffffu

struct vegas {
	uint32_t base_rtt_us; /* BaseRTT: minimum of all samples */
	uint32_t min_rtt_us;  /* minimum of this round trip, least affected by delayed ACKs */
	uint32_t samples;     /* number of this round trip's samples */
};

/* The state that Vegas changes. */
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
	/* Never 0, because it is a divisor. */
	rtt_us++;
	if (rtt_us < v->base_rtt_us)
		v->base_rtt_us = rtt_us;
	if (rtt_us < v->min_rtt_us)
		v->min_rtt_us = rtt_us;
	v->samples++;
}

/*
 * Diff (section 3.2) in segments: (Expected - Actual) * RTT, as in Linux. The paper multiplies by
 * BaseRTT, which gives the queued segments. Linux's Diff is larger by the factor RTT / BaseRTT, so
 * Linux queues less on a short path.
 */
static inline uint32_t vegas_diff_segs(const struct vegas *v, uint32_t cwnd_segs)
{
	return (uint64_t)cwnd_segs * (v->min_rtt_us - v->base_rtt_us) / v->base_rtt_us;
}

/* Ends slow start for good: sets ssthresh below the window. */
static inline void vegas_end_slow_start(struct vegas_window *w)
{
	if (w->ssthresh_segs >= w->cwnd_segs)
		w->ssthresh_segs = w->cwnd_segs - 1;
}

/*
 * Decides in congestion avoidance (section 3.2) or whether to end slow start (3.3). Returns true if
 * slow start continues.
 */
static inline bool vegas_decide(const struct vegas *v, struct vegas_window *w)
{
	uint32_t diff_segs = vegas_diff_segs(v, w->cwnd_segs);

	if (w->cwnd_segs < w->ssthresh_segs) {
		if (diff_segs <= VEGAS_GAMMA_SEGS)
			return true;
		/* The window that needs no queue, plus 1 for rounding. */
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
