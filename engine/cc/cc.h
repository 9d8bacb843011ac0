/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An underlay's hooks by its number, and what the rest of the engine knows of it. */
#ifndef VCC_CC_H
#define VCC_CC_H

#include "builtin.h"
#include "loaded.h"

VCC_INLINE bool is_underlay(uint32_t underlay)
{
	return underlay < UNDERLAY_COUNT || is_loaded(underlay);
}

/* enum vcc_cc_trait; none of an unknown number. */
VCC_INLINE uint32_t cc_traits(uint32_t underlay)
{
	return is_loaded(underlay) ? loaded_traits(loaded_slot(underlay))
				   : builtin_traits(underlay);
}

VCC_INLINE void cc_init(uint32_t underlay, struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	if (is_loaded(underlay))
		cc_loaded(underlay, cc, 0, 0, call_of(HOOK_INIT, initial_window_segs));
	else
		builtin_init(underlay, cc, initial_window_segs);
	cc->part_1024 = 0;
	VCC_LAW(cc->cwnd_segs >= 1);
}

/*
 * cc_on_feedback(), and cc_on_ack() if `grows`. Inline, for the segments that nearly all are
 * (header_prediction.h).
 */
VCC_INLINE void cc_advance(uint32_t underlay, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
			   bool grows)
{
	if (is_loaded(underlay)) {
		cc_loaded(underlay, cc, ack, 0, call_of(grows ? HOOK_ADVANCE : HOOK_FEEDBACK, 0));
	} else {
		builtin_feedback(underlay, cc, ack);
		if (grows)
			builtin_grow(underlay, cc, ack);
	}
	VCC_LAW(cc->cwnd_segs >= 1 && cc->cwnd_segs <= CWND_MAX_SEGS);
}

VCC_INLINE void cc_on_feedback(uint32_t underlay, struct vcc_cc_state *cc,
			       const struct vcc_cc_ack *ack)
{
	if (is_loaded(underlay))
		cc_loaded(underlay, cc, ack, 0, call_of(HOOK_FEEDBACK, 0));
	else
		builtin_on_feedback(underlay, cc, ack);
}

VCC_INLINE void cc_on_ack(uint32_t underlay, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	if (is_loaded(underlay))
		cc_loaded(underlay, cc, ack, 0, call_of(HOOK_ACK, 0));
	else
		builtin_on_ack(underlay, cc, ack);
	VCC_LAW(cc->cwnd_segs >= 1 && cc->cwnd_segs <= CWND_MAX_SEGS);
}

VCC_INLINE void cc_on_congestion(uint32_t underlay, struct vcc_cc_state *cc,
				 enum vcc_congestion cause, const struct vcc_params *p)
{
	if (is_loaded(underlay))
		cc_loaded(underlay, cc, 0, p, call_of(HOOK_CONGESTION, (uint32_t)cause));
	else
		builtin_on_congestion(underlay, cc, cause, p);
	VCC_LAW(cc->ssthresh_segs >= 1);
}

VCC_INLINE void cc_on_timeout(uint32_t underlay, struct vcc_cc_state *cc)
{
	if (is_loaded(underlay))
		cc_loaded(underlay, cc, 0, 0, call_of(HOOK_TIMEOUT, 0));
	else
		builtin_on_timeout(underlay, cc);
	VCC_LAW(cc->cwnd_segs >= 1 && cc->ssthresh_segs >= 1);
}

VCC_INLINE void cc_on_idle(uint32_t underlay, struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	if (is_loaded(underlay))
		cc_loaded(underlay, cc, 0, 0, call_of(HOOK_IDLE, initial_window_segs));
	else
		builtin_on_idle(underlay, cc, initial_window_segs);
	VCC_LAW(cc->cwnd_segs >= 1);
}

VCC_INLINE void cc_on_mss(uint32_t underlay, struct vcc_cc_state *cc, uint32_t from_bytes,
			  uint32_t to_bytes)
{
	if (is_loaded(underlay))
		cc_loaded(underlay, cc, 0, 0, call_of_mss(from_bytes, to_bytes));
	else
		builtin_on_mss(underlay, cc, from_bytes, to_bytes);
	VCC_LAW(cc->cwnd_segs >= 1 && cc->ssthresh_segs >= 1);
}

#endif
