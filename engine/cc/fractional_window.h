/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Windows in fractions of a segment, and below one (AC/DC, 3.3; Swift, 3.6), where the treatment
 * has no floor: with less than one, a segment leaves every 1 / window round trips (pacing.h). The
 * window is cwnd_segs + part_1024 / 1024, and cwnd_segs is at least 1.
 *
 * Many flows meet here. If each grew by a segment in a round trip (RFC 5681, 3.1), N flows would
 * add N segments to the queue at a time. So growth begins at 1/64 of a segment in a round trip,
 * which is the same for all windows, or the smaller ones would not catch up. With every eight round
 * trips without congestion it doubles, up to a segment, as then the queue has room (TIMELY, Mittal
 * et al., SIGCOMM 2015, 4.3).
 */
#ifndef VCC_CC_FRACTIONAL_WINDOW_H
#define VCC_CC_FRACTIONAL_WINDOW_H

#include "hooks.h"

#define SEGMENT_1024 1024u
/* The least window: a segment in 64 round trips. */
#define WINDOW_LEAST_1024 16u
/* The least growth in a round trip, its doublings, and the round trips until each. */
#define GROWTH_LEAST_1024  16u
#define GROWTH_DOUBLINGS   6u
#define QUIET_ROUNDS_SHIFT 3
/* The most growth by one ACK, which may be that of 64 round trips. */
#define GROWTH_ACK_1024 256u
/* More quiet round trips do not matter, in 1/1024. */
#define QUIET_MAX_1024 (64u << 10)

/* Has the treatment fractional windows? */
VCC_INLINE bool has_fractions(const struct vcc_params *p)
{
	return !p->window_floor_segs;
}

VCC_INLINE uint32_t fractional_window_1024(const struct vcc_cc_state *cc)
{
	uint32_t window_1024 = cc->cwnd_segs * SEGMENT_1024 + (uint32_t)(int32_t)cc->part_1024;

	return vcc_max(window_1024, WINDOW_LEAST_1024);
}

/*
 * Smaller windows are paced: their segments leave one by one, 1 / window round trips apart. Larger
 * ones have the part of a segment to count with, and their ACKs for a clock.
 */
#define PACED_SEGS 2u

VCC_INLINE bool is_paced_window(const struct vcc_cc_state *cc)
{
	return cc->part_1024 && cc->cwnd_segs < PACED_SEGS;
}

/* The window in segments: at least 1, and at most CWND_MAX_SEGS. */
VCC_INLINE uint32_t fractional_segs(uint32_t window_1024)
{
	return vcc_min(vcc_max(window_1024 / SEGMENT_1024, 1), CWND_MAX_SEGS);
}

/* What a window has beyond fractional_segs(), or lacks of one segment. */
VCC_INLINE int16_t fractional_part_1024(uint32_t window_1024)
{
	window_1024 = vcc_max(window_1024, WINDOW_LEAST_1024);
	if (window_1024 < SEGMENT_1024)
		return (int16_t)((int32_t)window_1024 - (int32_t)SEGMENT_1024);
	return (int16_t)(window_1024 % SEGMENT_1024);
}

VCC_INLINE void fractional_set_window(struct vcc_cc_state *cc, uint32_t window_1024)
{
	cc->cwnd_segs = fractional_segs(window_1024);
	cc->part_1024 = fractional_part_1024(window_1024);
}

/*
 * Growth by an ACK. An acknowledged window is a round trip, also if it is less than a segment.
 * credit_bytes counts those without congestion, in 1/1024.
 */
VCC_INLINE void fractional_on_ack(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	uint32_t window_1024 = fractional_window_1024(cc);

	if (!ack->window_limited || !ack->mss_bytes)
		return;
	if (cc->cwnd_segs < cc->ssthresh_segs) {
		/* Slow start (RFC 5681, 3.1). */
		uint64_t more_1024 = (uint64_t)ack->acked_bytes * SEGMENT_1024 / ack->mss_bytes;

		fractional_set_window(cc, window_1024 + vcc_min((uint32_t)more_1024, window_1024));
		return;
	}
	uint64_t window_bytes = (uint64_t)window_1024 * ack->mss_bytes / SEGMENT_1024;
	uint64_t rounds_1024 =
	    (uint64_t)ack->acked_bytes * SEGMENT_1024 / vcc_max((uint32_t)window_bytes, 1);
	uint32_t doublings =
	    vcc_min(cc->credit_bytes / SEGMENT_1024 >> QUIET_ROUNDS_SHIFT, GROWTH_DOUBLINGS);
	uint64_t more_1024 = rounds_1024 * (GROWTH_LEAST_1024 << doublings) / SEGMENT_1024;

	rounds_1024 += cc->credit_bytes;
	cc->credit_bytes = rounds_1024 < QUIET_MAX_1024 ? (uint32_t)rounds_1024 : QUIET_MAX_1024;
	if (more_1024 > GROWTH_ACK_1024)
		more_1024 = GROWTH_ACK_1024;
	fractional_set_window(cc, window_1024 + (uint32_t)more_1024);
}

/* Reduces by `share` / 2^21, without a floor of one segment. */
VCC_INLINE void fractional_reduce(struct vcc_cc_state *cc, uint64_t share)
{
	uint32_t window_1024 = fractional_window_1024(cc);

	window_1024 -= (uint32_t)((window_1024 * share) >> 21);
	cc->ssthresh_segs = fractional_segs(window_1024);
	cc->part_1024 = fractional_part_1024(window_1024);
	cc->credit_bytes = 0;
}

#endif
