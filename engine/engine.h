/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The three calls of vcc.h. Shells include this file. */
#ifndef VCC_ENGINE_H
#define VCC_ENGINE_H

#include "arrival.h"
#include "emit.h"
#include "header_prediction.h"
#include "expiry.h"
#include "fragments.h"
#include "from_guest.h"
#include "policy_change.h"
#include "minisock.h"
#include "to_guest.h"
#include "contended_flow.h"

VCC_INLINE void vcc_from_guest(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	segment_from_guest(f, p, s, a);
}

VCC_INLINE void vcc_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, struct vcc_action *a)
{
	segment_to_guest(f, p, s, a);
}

/*
 * A deadline expired: infers the sender half's retransmission timeout, and forgets a flow that has
 * been idle for too long or, once closed, yields its place in a `crowded` table (expiry.h).
 * Otherwise the action says when to call again.
 */
VCC_INLINE struct vcc_action vcc_deadline(struct vcc_flow *f, const struct vcc_params *p,
					  uint64_t now_us, bool crowded)
{
	struct vcc_action a = {};
	uint32_t idle_ms = (uint32_t)(now_us / 1000) - f->last_seen_ms;
	uint32_t limit_ms = idle_limit_ms(f, p);

	if (crowded && f->stage == STAGE_CLOSED)
		limit_ms = vcc_min(limit_ms, CROWDED_CLOSED_MS);
	/* This CPU's clock may lag behind the one that stamped the last segment. */
	if ((int32_t)idle_ms < 0)
		idle_ms = 0;
	if (idle_ms >= limit_ms) {
		a.forget = true;
		return a;
	}
	a.deadline_ms = limit_ms - idle_ms;
	if (is_managed(f) && f->stage == STAGE_ESTABLISHED && flight_bytes(f)) {
		if (rto_passed(f, p, (uint32_t)now_us))
			timeout_begin(f, (uint32_t)now_us);
		/* Read after timeout_begin(), which restarts the timer. */
		uint32_t since_us = elapsed_us(f->progress_us, (uint32_t)now_us);
		uint32_t left_us = vcc_sub_floor0(rto_us(f, p->rto_min_us), since_us);

		/* Against a closed window nothing is due: the guest probes (RFC 9293, 3.8.6.1). */
		if (!peer_closed_window(f))
			a.deadline_ms = vcc_min(a.deadline_ms, left_us / 1000 + 1);
		if (imposes(f, p)) {
			prod(f, p, since_us, &a);
			if (acts_by_window(f, p))
				update_window(f, p, &a);
		}
	}
	return a;
}

#endif
