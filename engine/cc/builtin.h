/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dispatch from the number of a built-in underlay to its hooks. list.h is included once per table:
 * each inclusion expands the VCC_CC line at the end of every algorithm's file, and the first also
 * defines the hooks. There are no function pointers, because BPF could not inline through them.
 */
#ifndef VCC_CC_BUILTIN_H
#define VCC_CC_BUILTIN_H

#include "hooks.h"

#define VCC_CC(id, name, about, traits, hooks)
#include "list.h"
#include "loaded.h"
#undef VCC_CC

enum vcc_underlay {
#define VCC_CC(id, name, about, traits, hooks) UNDERLAY_##id,
#include "list.h"
#undef VCC_CC
	UNDERLAY_COUNT
};

_Static_assert(UNDERLAY_COUNT <= UNDERLAY_LOADED, "the numbers of built-in underlays come first");

/* The underlay's name in policies and commands; null for an unknown number. */
VCC_INLINE const char *cc_name(uint32_t underlay)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks)                                                     \
	case UNDERLAY_##id:                                                                        \
		return name;
#include "list.h"
#undef VCC_CC
	default:
		return (const char *)0;
	}
}

/* One line on it for the documentation; likewise. */
VCC_INLINE const char *cc_about(uint32_t underlay)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks)                                                     \
	case UNDERLAY_##id:                                                                        \
		return about;
#include "list.h"
#undef VCC_CC
	default:
		return (const char *)0;
	}
}

VCC_INLINE uint32_t builtin_traits(uint32_t underlay)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks)                                                     \
	case UNDERLAY_##id:                                                                        \
		return traits;
#include "list.h"
#undef VCC_CC
	default:
		return 0;
	}
}

#define CC_DISPATCH(hooks, id, call)                                                               \
	case UNDERLAY_##id:                                                                        \
		hooks##call;                                                                       \
		break;

VCC_INLINE void builtin_init(uint32_t underlay, struct vcc_cc_state *cc,
			     uint32_t initial_window_segs)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks)                                                     \
	CC_DISPATCH(hooks, id, _init(cc, initial_window_segs))
#include "list.h"
#undef VCC_CC
	}
}

VCC_INLINE void builtin_feedback(uint32_t underlay, struct vcc_cc_state *cc,
				 const struct vcc_cc_ack *ack)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks) CC_DISPATCH(hooks, id, _on_feedback(cc, ack))
#include "list.h"
#undef VCC_CC
	}
}

VCC_APART int builtin_on_feedback(uint32_t underlay, struct vcc_cc_state *cc,
				  const struct vcc_cc_ack *ack)
{
	if (!cc || !ack)
		return -1;
	builtin_feedback(underlay, cc, ack);
	return 0;
}

VCC_INLINE void builtin_grow(uint32_t underlay, struct vcc_cc_state *cc,
			     const struct vcc_cc_ack *ack)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks) CC_DISPATCH(hooks, id, _on_ack(cc, ack))
#include "list.h"
#undef VCC_CC
	}
	cc->cwnd_segs = vcc_min(cc->cwnd_segs, CWND_MAX_SEGS);
}

VCC_APART int builtin_on_ack(uint32_t underlay, struct vcc_cc_state *cc,
			     const struct vcc_cc_ack *ack)
{
	if (!cc || !ack)
		return -1;
	builtin_grow(underlay, cc, ack);
	return 0;
}

VCC_APART int builtin_on_congestion(uint32_t underlay, struct vcc_cc_state *cc,
				    enum vcc_congestion cause, const struct vcc_params *p)
{
	if (!cc || !p)
		return -1;
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks) CC_DISPATCH(hooks, id, _on_congestion(cc, cause, p))
#include "list.h"
#undef VCC_CC
	}
	return 0;
}

VCC_APART int builtin_on_timeout(uint32_t underlay, struct vcc_cc_state *cc)
{
	if (!cc)
		return -1;
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks) CC_DISPATCH(hooks, id, _on_timeout(cc))
#include "list.h"
#undef VCC_CC
	}
	return 0;
}

VCC_INLINE void builtin_on_idle(uint32_t underlay, struct vcc_cc_state *cc,
				uint32_t initial_window_segs)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks)                                                     \
	CC_DISPATCH(hooks, id, _on_idle(cc, initial_window_segs))
#include "list.h"
#undef VCC_CC
	}
}

VCC_INLINE void builtin_on_mss(uint32_t underlay, struct vcc_cc_state *cc, uint32_t from_bytes,
			       uint32_t to_bytes)
{
	switch (underlay) {
#define VCC_CC(id, name, about, traits, hooks)                                                     \
	CC_DISPATCH(hooks, id, _on_mss(cc, from_bytes, to_bytes))
#include "list.h"
#undef VCC_CC
	}
}

#endif
