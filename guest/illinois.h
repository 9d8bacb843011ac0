/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP-Illinois' alpha and beta as functions of delay (Liu, Basar, Srikant: TCP-Illinois,
 * Performance Evaluation 65, 2008), shared by the kernel and the tests. The parameters are Linux's.
 */
#ifndef VCC_GUEST_ILLINOIS_H
#define VCC_GUEST_ILLINOIS_H

#include <stdbool.h>
#include <stdint.h>

/* alpha, the growth in segments per round trip, is a fixed-point number. */
#define ILLINOIS_ALPHA_SHIFT 7
#define ILLINOIS_ALPHA_ONE   (1u << ILLINOIS_ALPHA_SHIFT)
#define ILLINOIS_ALPHA_MIN   (3 * ILLINOIS_ALPHA_ONE / 10)
#define ILLINOIS_ALPHA_MAX   (10 * ILLINOIS_ALPHA_ONE)
/* beta, the fraction of the window that a loss removes, is a fixed-point number. */
#define ILLINOIS_BETA_SHIFT 6
#define ILLINOIS_BETA_ONE   (1u << ILLINOIS_BETA_SHIFT)
#define ILLINOIS_BETA_MIN   (ILLINOIS_BETA_ONE / 8)
#define ILLINOIS_BETA_MAX   (ILLINOIS_BETA_ONE / 2)

/* W_thresh: smaller windows behave like Reno's. */
#define ILLINOIS_WINDOW_THRESHOLD_SEGS 15u
/* theta: round trips with a small delay until alpha returns to its maximum. */
#define ILLINOIS_THETA 5u
/* Minimum of ssthresh (RFC 5681, 3.1). */
#define ILLINOIS_MIN_CWND_SEGS 2u
#define ILLINOIS_NO_RTT_US     0x7fffffffu

struct illinois {
	uint32_t alpha;
	uint32_t beta;
	uint32_t base_rtt_us; /* minimum of all samples */
	uint32_t max_rtt_us;  /* maximum of all samples */
	uint64_t sum_rtt_us;  /* sum of this round trip's samples */
	uint32_t samples;     /* number of this round trip's samples */
	uint32_t rounds_low;  /* consecutive round trips with a small delay after a large one */
	bool was_large;	      /* the delay was large since alpha was last at its maximum */
};

static inline void illinois_start_round(struct illinois *ca)
{
	ca->sum_rtt_us = 0;
	ca->samples = 0;
}

/* Reno's parameters: for small windows, and after a timeout. */
static inline void illinois_be_reno(struct illinois *ca)
{
	ca->alpha = ILLINOIS_ALPHA_ONE;
	ca->beta = ILLINOIS_BETA_MAX;
}

static inline void illinois_init(struct illinois *ca)
{
	ca->alpha = ILLINOIS_ALPHA_MAX;
	ca->beta = ILLINOIS_BETA_MAX;
	ca->base_rtt_us = ILLINOIS_NO_RTT_US;
	ca->max_rtt_us = 0;
	ca->rounds_low = 0;
	ca->was_large = false;
	illinois_start_round(ca);
}

static inline void illinois_sample(struct illinois *ca, uint32_t rtt_us)
{
	if (rtt_us < ca->base_rtt_us)
		ca->base_rtt_us = rtt_us;
	if (rtt_us > ca->max_rtt_us)
		ca->max_rtt_us = rtt_us;
	ca->sum_rtt_us += rtt_us;
	ca->samples++;
}

/*
 * f1 of the paper: alpha_max up to a delay d1, then k1 / (k2 + delay), which reaches alpha_min at
 * the largest delay. alpha returns to alpha_max after theta round trips, so that a single small
 * sample does not suffice.
 */
static inline uint32_t illinois_alpha(struct illinois *ca, uint32_t delay_us, uint32_t max_delay_us)
{
	uint32_t d1_us = max_delay_us / 100;

	if (delay_us <= d1_us) {
		if (!ca->was_large)
			return ILLINOIS_ALPHA_MAX;
		if (++ca->rounds_low < ILLINOIS_THETA)
			return ca->alpha;
		ca->rounds_low = 0;
		ca->was_large = false;
		return ILLINOIS_ALPHA_MAX;
	}
	ca->was_large = true;

	uint64_t above_us = delay_us - d1_us;
	uint64_t range_us = max_delay_us - d1_us;
	uint64_t slope = ILLINOIS_ALPHA_MAX - ILLINOIS_ALPHA_MIN;

	return range_us * ILLINOIS_ALPHA_MAX / (range_us + above_us * slope / ILLINOIS_ALPHA_MIN);
}

/* f2 of the paper: beta_min up to a delay d2, beta_max from d3 on, linear in between. */
static inline uint32_t illinois_beta(uint32_t delay_us, uint32_t max_delay_us)
{
	uint64_t d2_us = max_delay_us / 10;
	uint64_t d3_us = 8ull * max_delay_us / 10;

	if (delay_us <= d2_us)
		return ILLINOIS_BETA_MIN;
	if (delay_us >= d3_us)
		return ILLINOIS_BETA_MAX;
	return (ILLINOIS_BETA_MIN * (d3_us - delay_us) + ILLINOIS_BETA_MAX * (delay_us - d2_us)) /
	       (d3_us - d2_us);
}

/* Called once per round trip. */
static inline void illinois_end_round(struct illinois *ca, uint32_t cwnd_segs)
{
	if (cwnd_segs < ILLINOIS_WINDOW_THRESHOLD_SEGS) {
		illinois_be_reno(ca);
	} else if (ca->samples) {
		uint32_t max_delay_us = ca->max_rtt_us - ca->base_rtt_us;
		uint32_t delay_us = ca->sum_rtt_us / ca->samples - ca->base_rtt_us;

		ca->alpha = illinois_alpha(ca, delay_us, max_delay_us);
		ca->beta = illinois_beta(delay_us, max_delay_us);
	}
	illinois_start_round(ca);
}

/* The window's growth for the segments acknowledged since it last grew. */
static inline uint32_t illinois_growth_segs(const struct illinois *ca, uint32_t cwnd_segs,
					    uint32_t acked_segs)
{
	uint64_t grow_segs = (uint64_t)acked_segs * ca->alpha >> ILLINOIS_ALPHA_SHIFT;

	return cwnd_segs ? grow_segs / cwnd_segs : 0;
}

static inline uint32_t illinois_reduced_segs(const struct illinois *ca, uint32_t cwnd_segs)
{
	uint32_t left_segs = cwnd_segs - ((uint64_t)cwnd_segs * ca->beta >> ILLINOIS_BETA_SHIFT);

	return left_segs > ILLINOIS_MIN_CWND_SEGS ? left_segs : ILLINOIS_MIN_CWND_SEGS;
}

#endif
