/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the proofs quantify over: flows, parameters and segments that are arbitrary but possible. */
#ifndef VCC_ANY_H
#define VCC_ANY_H

#define VCC_LAW(cond) __CPROVER_assert(cond, #cond)
/* A loaded underlay may leave anything (cc/loaded.h). */
#define VCC_LOADED	static
#define UNDERLAY_loaded UNDERLAY_LOADED
#include "engine.h"
#include "invariant.h"

struct vcc_cc_state nondet_cc_state(void);

/* Some number for each slot, the same at each call. */
uint32_t __CPROVER_uninterpreted_traits(uint32_t slot);

static int loaded_run(uint32_t slot, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
		      const struct vcc_params *p, uint64_t call)
{
	(void)slot;
	(void)ack;
	(void)p;
	(void)call;
	*cc = nondet_cc_state();
	return 0;
}

static uint32_t loaded_traits(uint32_t slot)
{
	return __CPROVER_uninterpreted_traits(slot);
}

struct vcc_flow nondet_flow(void);
struct vcc_params nondet_params(void);
struct vcc_segment nondet_segment(void);
uint64_t nondet_u64(void);
_Bool nondet_bool(void);

/* Any state that satisfies the invariant. */
static struct vcc_flow any_flow(void)
{
	struct vcc_flow f = nondet_flow();

	__CPROVER_assume(flow_invariant(&f));
#ifdef UNDERLAY /* one at a time, or the solver takes longer than for all in turn */
	__CPROVER_assume(f.underlay == UNDERLAY);
#endif
	return f;
}

/* Any parameters that a policy may have (crates/vcc-policy). */
static struct vcc_params any_params(void)
{
	struct vcc_params p = nondet_params();

	__CPROVER_assume(is_underlay(p.underlay) && p.mode <= MODE_IGNORE &&
			 p.guest_ecn <= GUEST_ECN_OVERRIDE && p.beta_1024 <= BETA_ONE &&
			 p.act <= ACT_SPLIT && p.receive <= RECEIVE_ACCEPT &&
			 p.on_full <= ON_FULL_DROP && p.on_unknown <= ON_UNKNOWN_PASS);
	__CPROVER_assume(p.window_floor_segs <= 1000 && p.initial_window_segs >= 1 &&
			 p.initial_window_segs <= 1000);
	__CPROVER_assume(p.window_max_bytes >= 1 << 16 && p.window_max_bytes <= 1 << 30);
	__CPROVER_assume(p.rto_min_us >= 1000 && p.rto_min_us <= 60000000);
	return p;
}

/* As a shell parses it; a super-segment may be larger than 64 KiB (BIG TCP). */
static struct vcc_segment any_segment(void)
{
	struct vcc_segment s = nondet_segment();

	__CPROVER_assume(s.payload_bytes <= 1 << 20 && s.seg_bytes <= UINT16_MAX &&
			 s.seg_bytes < s.payload_bytes + !s.payload_bytes);
	__CPROVER_assume(!(s.options & OPT_MSS) || s.mss);
	__CPROVER_assume(s.ip_ecn <= 3 && s.flags <= 0x1ff && s.option_room_bytes <= 40);
	__CPROVER_assume(s.feedback.ect0_bytes <= 0xffffff && s.feedback.ce_bytes <= 0xffffff);
#ifdef ASSUME /* a case of several that are all there are */
	__CPROVER_assume(ASSUME(s));
#endif
	return s;
}

#endif
