/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
 * Datacenter", SIGCOMM 2020), its fabric half: additive increase while the fabric's delay is below
 * a target, a decrease in proportion to the excess above it, at most once in a round trip. The
 * guest's own delay is separated beforehand (delay.h), so there is no window for the end host.
 *
 * The target is the operator's, one number for the fabric (3.1), and larger for small windows (3.5,
 * flow scaling). If each connection derived its own from the least RTT that it has seen, those that
 * began while there was a queue would take all from the others.
 *
 * It departs from the paper where a guest's window is all that there is: the smallest is the floor
 * of reductions, one segment or more, where Swift paces fractions of one (3.6), which takes a port
 * that holds segments; a connection begins by slow start, and after a timeout by one from a window
 * of one segment (RFC 5681, 3.1); and a decrease forgets what part of a segment the increase had
 * reached.
 */
#ifndef VCC_CC_SWIFT_H
#define VCC_CC_SWIFT_H

#include "reno.h"

/* Fractions are in 1/1024: beta (Swift, 3.3), and the most by which a decrease shortens. */
#define SWIFT_BETA_1024	   819u
#define SWIFT_MAX_CUT_1024 512u
/* A path that is so many times as long as the target is not of the operator's fabric. */
#define SWIFT_FAR 4u
/* More ACKs than a decrease leaves in flight to a window of one segment. */
#define SWIFT_UNTIMED_MOST 4u
/* Flow scaling ends at this window; 1024 / sqrt() of it. */
#define SWIFT_SCALING_MAX_SEGS 100u
#define SWIFT_SCALING_END_1024 102u

/* Swift's state, as indices of cc->own. */
enum swift_own {
	/* The first word had what is now part_1024; ports of that version are taken over. */
	SWIFT_TARGET_US = 1, /* at the latest sample; 0: none since a timeout or an idle period */
	SWIFT_LEAST_US,	     /* the least RTT of the connection */
	SWIFT_UNTIMED,	     /* ACKs since the latest sample, of windows of one segment */
};

/* 1024 / sqrt(segs), rounded down; `segs` must not be 0. */
VCC_APART int swift_inverse_root(uint32_t segs)
{
	uint64_t square = segs ? (1u << 20) / segs : 0;
	uint64_t root = 0;

	for (int bit = 10; bit >= 0; bit--) {
		uint64_t more = root | 1ull << bit;
		uint64_t too_much = vcc_opaque((square - more * more) >> 63);

		/* Branch-free, for the BPF verifier. */
		root |= (too_much - 1) & (1ull << bit);
	}
	return (int)root;
}

/*
 * Swift, 3.1 and 3.5. The base is the operator's target, or of a connection that leaves the fabric
 * a quarter more than its least RTT. That never forgets, or a queue that stands would become the
 * target. Flow scaling adds up to the base again, in proportion to 1 / sqrt(cwnd): N flows together
 * cause a queue that grows with sqrt(N).
 */
VCC_INLINE uint32_t swift_target_us(const struct vcc_cc_state *cc)
{
	uint64_t least_us = cc->own[SWIFT_LEAST_US], base_us = cc->path.target_us;

	if (least_us > base_us * SWIFT_FAR)
		base_us = least_us + least_us / 4;
	uint32_t segs = vcc_min(vcc_max(cc->cwnd_segs, 1), SWIFT_SCALING_MAX_SEGS);
	uint32_t scale = (uint32_t)swift_inverse_root(segs) - SWIFT_SCALING_END_1024;
	uint64_t target_us = base_us + base_us * scale / (1024 - SWIFT_SCALING_END_1024);

	return target_us < UINT32_MAX ? (uint32_t)target_us : UINT32_MAX;
}

VCC_INLINE void swift_init(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_init(cc, initial_window_segs);
	cc->own[SWIFT_TARGET_US] = 0;
	cc->own[SWIFT_LEAST_US] = 0;
	cc->own[SWIFT_UNTIMED] = 0;
}

#define swift_on_feedback reno_on_feedback

/* cwnd * max(1 - beta * (delay - target) / delay, 1 - max_mdf) (Swift, algorithm 1). */
VCC_INLINE void swift_cut(struct vcc_cc_state *cc, bool fractional, uint32_t delay_us,
			  uint32_t target_us)
{
	uint32_t floor_segs = vcc_min(vcc_max(cc->floor_segs, 1), cc->cwnd_segs);
	uint32_t cut_1024 =
	    (uint32_t)((uint64_t)(delay_us - target_us) * SWIFT_BETA_1024 / delay_us);
	uint64_t window_1024 = fractional_window_1024(cc);

	window_1024 -= window_1024 * vcc_min(cut_1024, SWIFT_MAX_CUT_1024) / 1024;
	if (!fractional)
		window_1024 = vcc_max((uint32_t)window_1024, floor_segs * SEGMENT_1024);
	fractional_set_window(cc, (uint32_t)window_1024);
	/* Slow start, and what is left of it, ends. */
	cc->ssthresh_segs = cc->cwnd_segs;
	cc->credit_bytes = 0;
}

VCC_INLINE void swift_sample(struct vcc_cc_state *cc)
{
	const struct vcc_path *path = &cc->path;

	if (!cc->own[SWIFT_LEAST_US] || path->rtt_min_us < cc->own[SWIFT_LEAST_US])
		cc->own[SWIFT_LEAST_US] = path->rtt_min_us;
	cc->own[SWIFT_TARGET_US] = swift_target_us(cc);
	cc->own[SWIFT_UNTIMED] = 0;
}

/*
 * A segment is timed from the first ACK after the sample before on, so each sample is of the window
 * that the decrease before has left, and there is one in a round trip (Swift's can_decrease). Where
 * the peer delays the only ACK of a window of one segment there is none, and the window grows until
 * there is.
 */
VCC_INLINE void swift_on_ack(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	uint32_t delay_us = cc->path.rtt_us;

	if (ack->timed)
		swift_sample(cc);
	else if (cc->cwnd_segs == 1)
		cc->own[SWIFT_UNTIMED]++;
	uint32_t target_us = cc->own[SWIFT_TARGET_US];
	bool unmeasured = !target_us || cc->own[SWIFT_UNTIMED] >= SWIFT_UNTIMED_MOST;

	if (unmeasured || delay_us < target_us)
		window_on_ack(cc, ack);
	else if (ack->timed)
		swift_cut(cc, ack->fractional, delay_us, target_us);
}

/* A loss cuts by the most (Swift, algorithm 1), also soon after a decrease. */
VCC_INLINE void swift_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
				    const struct vcc_params *p)
{
	(void)cause;
	if (has_fractions(p)) {
		fractional_reduce(cc, 1ull << 20);
		return;
	}
	cc->ssthresh_segs = vcc_max(cc->cwnd_segs / 2, vcc_max(p->window_floor_segs, 1));
	cc->credit_bytes = 0;
	cc->part_1024 = 0;
}

VCC_INLINE void swift_on_timeout(struct vcc_cc_state *cc)
{
	reno_on_timeout(cc);
	cc->part_1024 = cc->part_1024 < 0 ? cc->part_1024 : 0;
	/* The latest sample is of the queue that has caused it. */
	cc->own[SWIFT_TARGET_US] = 0;
}

/* Earlier measurements say nothing about the present. */
VCC_INLINE void swift_on_idle(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_on_idle(cc, initial_window_segs);
	cc->part_1024 = 0;
	cc->own[SWIFT_TARGET_US] = 0;
}

#define swift_on_mss reno_on_mss

#endif
VCC_CC(swift, "swift", "Swift's fabric window, led by delay (Kumar et al., 2020)",
       CC_CONTROLS | CC_TARGET | CC_DELAY | CC_FRACTIONS, swift)
