/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the proofs quantify over of a port that holds segments: its state besides the flow's. */
#ifndef VCC_PROOF_HOLD_H
#define VCC_PROOF_HOLD_H

#include "check.h"
#include "split.h"

struct vcc_hold nondet_hold(void);
struct vcc_buffer nondet_buffer(void);

/*
 * What is true of a flow at such a port between two calls. The peer's edge is that of its last
 * acknowledgement; what was promised has been held, and is unacknowledged.
 */
static bool hold_invariant(const struct vcc_flow *f, const struct vcc_hold *h,
			   const struct vcc_buffer *b)
{
	if (h->state > HOLD_DRAINING || h->held_bytes > b->used_bytes)
		return false;
	if (h->granted_bytes > b->granted_bytes || h->charge_64 > CHARGE_64_MAX)
		return false;
	if (h->promises && (!h->begun || !h->retains))
		return false;
	if (!h->begun || f->stage < STAGE_ESTABLISHED)
		return !h->promises;
	if (h->peer_edge - f->snd_una > SEQ_WINDOW_MAX)
		return false;
	if (is_held(f, h) && h->held_end - f->snd_una > SEQ_WINDOW_MAX)
		return false;
	return !h->promises || (!seq_before(h->promised, f->snd_una) &&
				!seq_after(h->promised, hold_guest_nxt(f, h)));
}

static struct vcc_buffer any_buffer(void)
{
	struct vcc_buffer b = nondet_buffer();

	/* As a policy has them (crates/vcc-policy). */
	__CPROVER_assume(b.policy <= BUFFER_PRIORITIZED && b.size_bytes <= SEQ_WINDOW_MAX);
	/* A buffer may have been larger, and a frame is counted before it leaves. */
	__CPROVER_assume(b.used_bytes <= SEQ_WINDOW_MAX && b.granted_bytes <= SEQ_WINDOW_MAX);
	return b;
}

static struct vcc_hold any_hold(const struct vcc_flow *f, const struct vcc_buffer *b)
{
	struct vcc_hold h = nondet_hold();

	__CPROVER_assume(hold_invariant(f, &h, b));
	/* Divisions by other charges take the solver hours. */
	__CPROVER_assume(!h.charge_64);
	return h;
}

#endif
