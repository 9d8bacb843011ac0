/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CUBIC (RFC 9438), loss-based, for paths without ECN marking. Slow start is RFC 5681's, without
 * HyStart. Windows are in 1/4096 of a segment, times in ms.
 */
#ifndef VCC_CC_CUBIC_H
#define VCC_CC_CUBIC_H

#include "../rtt.h"
#include "reno.h"

#define CUBIC_UNIT 4096u /* units per segment */
/* W_est grows by small amounts per ACK, so it is kept in 1/16 of CUBIC_UNIT. */
#define CUBIC_EST_UNIT	65536ull
#define CUBIC_EST_SHIFT 4
/* In 1/1024: beta is 0.7 (RFC 9438, 4.6); fast convergence scales by (1 + beta) / 2 (4.7). */
#define CUBIC_BETA_1024	       717u
#define CUBIC_CONVERGENCE_1024 870u
/* RFC 9438, 4.3: alpha is 3 (1 - beta) / (1 + beta) = 0.53 until W_est reaches cwnd_prior. */
#define CUBIC_ALPHA_1024 542u
/* C is 0.4 segments / s^3 (RFC 9438, 4.2); here in CUBIC_UNIT / ms^3, times 10^10. */
#define CUBIC_C_E10 16384ull
#define CUBIC_E10   10000000000ull
/* 1 / C, in ms^3 / CUBIC_UNIT. */
#define CUBIC_INVERSE_C 610352ull
/* Beyond this age the cube would overflow 64 bits, and the window is meaningless anyway. */
#define CUBIC_AGE_MAX_MS 100000u

/* CUBIC's state, as indices of cc->own (RFC 9438, 4.1). */
enum cubic_own {
	CUBIC_W_MAX,	/* W_max: the window before the last reduction */
	CUBIC_EPOCH_US, /* start of this congestion avoidance; 0: not started */
	CUBIC_K_MS,	/* K: time from there until the window reaches W_max */
	CUBIC_W_EST,	/* W_est: Reno's window (RFC 9438, 4.3); in CUBIC_EST_UNIT */
};

/* The cube root of `value` (below 2^63), rounded down; the root is below 2^17. */
VCC_APART int cubic_root(uint64_t value)
{
	uint64_t root = 0;

	for (int bit = 16; bit >= 0; bit--) {
		uint64_t more = root | 1ull << bit;
		uint64_t too_much = vcc_opaque((value - more * more * more) >> 63);

		/* Branch-free: the BPF verifier would explore 2^17 paths. */
		root |= (too_much - 1) & (1ull << bit);
	}
	return (int)root;
}

VCC_INLINE void cubic_init(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_init(cc, initial_window_segs);
	cc->own[CUBIC_W_MAX] = 0;
	cc->own[CUBIC_EPOCH_US] = 0;
	cc->own[CUBIC_K_MS] = 0;
	cc->own[CUBIC_W_EST] = 0;
}

#define cubic_on_feedback reno_on_feedback

VCC_INLINE void cubic_epoch_begin(struct vcc_cc_state *cc, uint32_t now_us)
{
	uint32_t cwnd = cc->cwnd_segs * CUBIC_UNIT;

	cc->own[CUBIC_EPOCH_US] = now_us | 1;
	cc->own[CUBIC_W_EST] = cwnd << CUBIC_EST_SHIFT;
	cc->own[CUBIC_K_MS] = 0;
	if (cc->own[CUBIC_W_MAX] > cwnd)
		cc->own[CUBIC_K_MS] =
		    (uint32_t)cubic_root((cc->own[CUBIC_W_MAX] - cwnd) * CUBIC_INVERSE_C);
	else
		cc->own[CUBIC_W_MAX] = cwnd;
	cc->credit_bytes = 0;
}

/* W_cubic(t) of RFC 9438, 4.2, figure 1; in CUBIC_UNIT. */
VCC_INLINE uint32_t cubic_window(const struct vcc_cc_state *cc, uint32_t age_ms)
{
	uint32_t k_ms = cc->own[CUBIC_K_MS], w_max = cc->own[CUBIC_W_MAX];

	age_ms = vcc_min(age_ms, CUBIC_AGE_MAX_MS);
	uint64_t from_k_ms = age_ms > k_ms ? age_ms - k_ms : k_ms - age_ms;
	uint64_t off = from_k_ms * from_k_ms * from_k_ms * CUBIC_C_E10 / CUBIC_E10;

	off = off > CWND_MAX_SEGS * CUBIC_UNIT ? CWND_MAX_SEGS * CUBIC_UNIT : off;
	return age_ms > k_ms ? w_max + (uint32_t)off : vcc_sub_floor0(w_max, (uint32_t)off);
}

/* W_est after this ACK, in CUBIC_UNIT (RFC 9438, 4.3). */
VCC_INLINE uint32_t cubic_estimate(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	/* alpha < 1 until W_est reaches cwnd_prior, which is ssthresh / beta. */
	uint64_t prior = cc->ssthresh_segs * CUBIC_EST_UNIT * 1024 / CUBIC_BETA_1024;
	uint64_t alpha_1024 = cc->own[CUBIC_W_EST] < prior ? CUBIC_ALPHA_1024 : 1024;
	uint64_t window_bytes = (uint64_t)cc->cwnd_segs * ack->mss_bytes;
	uint64_t est = cc->own[CUBIC_W_EST];

	est += ack->acked_bytes * alpha_1024 * (CUBIC_EST_UNIT / 1024) / window_bytes;
	cc->own[CUBIC_W_EST] = est < UINT32_MAX ? (uint32_t)est : UINT32_MAX;
	return cc->own[CUBIC_W_EST] >> CUBIC_EST_SHIFT;
}

VCC_INLINE void cubic_on_ack(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	if (!ack->window_limited) {
		/* RFC 9438, 5.8: application-limited time must not let the window grow. */
		cc->own[CUBIC_EPOCH_US] = 0;
		return;
	}
	if (cc->cwnd_segs < cc->ssthresh_segs) {
		reno_on_ack(cc, ack);
		return;
	}
	if (!cc->own[CUBIC_EPOCH_US])
		cubic_epoch_begin(cc, ack->now_us);

	uint32_t cwnd = cc->cwnd_segs * CUBIC_UNIT;
	uint32_t age_ms = elapsed_us(cc->own[CUBIC_EPOCH_US], ack->now_us) / 1000;
	/* The target one RTT from now, between cwnd and 1.5 * cwnd (RFC 9438, 4.2). */
	uint32_t target = cubic_window(cc, age_ms + ack->srtt_us / 1000);
	uint32_t reno = cubic_estimate(cc, ack);

	target = vcc_min(vcc_max(target, cwnd), cwnd + cwnd / 2);
	/* The Reno-friendly region (RFC 9438, 4.3). */
	if (cubic_window(cc, age_ms) < reno)
		target = vcc_max(target, reno);

	/* Grow by (target - cwnd) / cwnd per acknowledged segment (RFC 9438, 4.4). */
	cc->credit_bytes += (uint32_t)((uint64_t)ack->acked_bytes * (target - cwnd) / cwnd);
	/* Whatever credit slow start has left: the sum must not wrap. */
	uint32_t grow_segs = vcc_min(cc->credit_bytes / ack->mss_bytes, CWND_MAX_SEGS);

	cc->credit_bytes -= grow_segs * ack->mss_bytes;
	cc->cwnd_segs += grow_segs;
}

/* Multiplicative decrease and fast convergence (RFC 9438, 4.6 and 4.7). */
VCC_INLINE void cubic_reduce(struct vcc_cc_state *cc)
{
	uint32_t cwnd = cc->cwnd_segs * CUBIC_UNIT;
	bool falling = cwnd < cc->own[CUBIC_W_MAX];

	cc->own[CUBIC_W_MAX] = cwnd;
	if (falling)
		cc->own[CUBIC_W_MAX] = (uint32_t)((uint64_t)cwnd * CUBIC_CONVERGENCE_1024 / 1024);
	cc->own[CUBIC_EPOCH_US] = 0;
	cc->ssthresh_segs = vcc_max(cc->cwnd_segs * CUBIC_BETA_1024 / 1024, RENO_MIN_SSTHRESH_SEGS);
	cc->credit_bytes = 0;
}

VCC_INLINE void cubic_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
				    const struct vcc_params *p)
{
	(void)cause;
	(void)p;
	cubic_reduce(cc);
}

VCC_INLINE void cubic_on_timeout(struct vcc_cc_state *cc)
{
	cubic_reduce(cc);
	/* After slow start, K is 0 and W_max is cwnd (RFC 9438, 4.8). */
	cc->own[CUBIC_W_MAX] = 0;
	cc->cwnd_segs = 1;
}

VCC_INLINE void cubic_on_idle(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_on_idle(cc, initial_window_segs);
	cc->own[CUBIC_EPOCH_US] = 0;
}

/* Converts W_max and restarts the epoch: the curve in segments changes with their size. */
VCC_INLINE void cubic_on_mss(struct vcc_cc_state *cc, uint32_t from_bytes, uint32_t to_bytes)
{
	uint64_t w_max = (uint64_t)cc->own[CUBIC_W_MAX] * from_bytes / to_bytes;
	uint32_t most = CWND_MAX_SEGS * CUBIC_UNIT;

	cc->own[CUBIC_W_MAX] = w_max < most ? (uint32_t)w_max : most;
	cc->own[CUBIC_EPOCH_US] = 0;
}

#endif
VCC_CC(cubic, "cubic", "CUBIC, led by loss (RFC 9438)", CC_CONTROLS, cubic)
