/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the proofs claim of a flow after a call. */
#ifndef VCC_CHECK_H
#define VCC_CHECK_H

#include "any.h"

#define CLAIM(cond, what) __CPROVER_assert(cond, what)
#include "laws.h"

/* The invariant, claim by claim, so that a failure names what broke. */
static void claim_invariant(const struct vcc_flow *f)
{
	CLAIM(flow_invariant(f), "the invariant");
	CLAIM(enums_hold(f), "enumerations have one of their values");
	CLAIM(scales_hold(f), "the shown scale expresses every window");
	CLAIM(syn_holds(f), "a handshake is that of a recorded SYN");
	if (f->stage == STAGE_NONE) {
		CLAIM(!f->flags && !f->syn_flags, "without a SYN nothing is known");
		return;
	}
	CLAIM(mss_holds(f), "segments have bytes");
	CLAIM(window_holds(f), "windows have segments, and end their reductions");
	CLAIM(sequence_holds(f), "what was acknowledged was sent");
	CLAIM(undo_holds(f), "a reduction for a mark or a timeout is final");
}

#endif
