/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an underlay that is compiled by itself learns which of its hooks to run (loaded.h). */
#ifndef VCC_CC_CALL_H
#define VCC_CC_CALL_H

#include "fractional_window.h"

enum vcc_cc_hook {
	HOOK_INIT,
	HOOK_FEEDBACK,
	HOOK_ACK,
	HOOK_CONGESTION,
	HOOK_TIMEOUT,
	HOOK_IDLE,
	HOOK_MSS,
	HOOK_ADVANCE, /* on_feedback, then on_ack: a call costs as much as they do */
};

/* A hook and its argument: segments, a cause, or two segment sizes. */
VCC_INLINE uint64_t call_of(enum vcc_cc_hook hook, uint32_t argument)
{
	return (uint64_t)argument << 32 | (uint32_t)hook;
}

VCC_INLINE uint64_t call_of_mss(uint32_t from_bytes, uint32_t to_bytes)
{
	return call_of(HOOK_MSS, from_bytes << 16 | (to_bytes & 0xffff));
}

VCC_INLINE enum vcc_cc_hook call_hook(uint64_t call)
{
	return (enum vcc_cc_hook)(uint32_t)call;
}

/*
 * Bounds what a loaded underlay has written. Only one that has never reduced its window has an
 * infinite ssthresh, and once it is finite it stays so (invariant.h).
 */
VCC_INLINE void cc_bound(struct vcc_cc_state *cc, bool may_be_infinite, bool has_alpha)
{
	cc->cwnd_segs = vcc_min(vcc_max(cc->cwnd_segs, 1), CWND_MAX_SEGS);
	if (!may_be_infinite || cc->ssthresh_segs != SSTHRESH_INFINITE)
		cc->ssthresh_segs = vcc_min(vcc_max(cc->ssthresh_segs, 1), CWND_MAX_SEGS);
	if (cc->part_1024 < 0)
		cc->cwnd_segs = 1;
	cc->part_1024 = fractional_part_1024(fractional_window_1024(cc));
	if (has_alpha)
		cc->own[CC_OWN_ALPHA] = vcc_min(cc->own[CC_OWN_ALPHA], CC_ALPHA_ONE);
}

#ifdef CC_HOOKS_APART
/* The compiler may share code between on_ack here and alone, and then it has no line. */
#define CC_CALL_ADVANCE(hooks, traits, cc, ack)                                                    \
	case HOOK_ADVANCE:                                                                         \
		break;
#else
#define CC_CALL_ADVANCE(hooks, traits, cc, ack)                                                    \
	case HOOK_ADVANCE:                                                                         \
		if (ack) {                                                                         \
			bool was_infinite = cc->ssthresh_segs == SSTHRESH_INFINITE;                \
                                                                                                   \
			hooks##_on_feedback(cc, ack);                                              \
			cc_bound(cc, was_infinite, (traits)&CC_ALPHA);                             \
			hooks##_on_ack(cc, ack);                                                   \
		}                                                                                  \
		break;
#endif

/*
 * Runs the hook that `call` names, of an underlay with this prefix and these traits. As the BPF
 * verifier sees it, each pointer may be null.
 */
#define CC_CALL(hooks, traits, cc, ack, p, call)                                                   \
	do {                                                                                       \
		uint32_t argument = (uint32_t)((call) >> 32);                                      \
                                                                                                   \
		switch (call_hook(call)) {                                                         \
		case HOOK_INIT:                                                                    \
			hooks##_init(cc, argument);                                                \
			break;                                                                     \
		case HOOK_FEEDBACK:                                                                \
			if (ack)                                                                   \
				hooks##_on_feedback(cc, ack);                                      \
			break;                                                                     \
		case HOOK_ACK:                                                                     \
			if (ack)                                                                   \
				hooks##_on_ack(cc, ack);                                           \
			break;                                                                     \
		case HOOK_CONGESTION:                                                              \
			if (p)                                                                     \
				hooks##_on_congestion(cc, (enum vcc_congestion)argument, p);       \
			break;                                                                     \
		case HOOK_TIMEOUT:                                                                 \
			hooks##_on_timeout(cc);                                                    \
			break;                                                                     \
		case HOOK_IDLE:                                                                    \
			hooks##_on_idle(cc, argument);                                             \
			break;                                                                     \
		case HOOK_MSS:                                                                     \
			hooks##_on_mss(cc, argument >> 16, argument & 0xffff);                     \
			break;                                                                     \
			CC_CALL_ADVANCE(hooks, traits, cc, ack)                                    \
		}                                                                                  \
	} while (0)

#endif
