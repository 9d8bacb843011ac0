/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* A deadline keeps the invariant, and never asks to be called again at once. */
#include "check.h"

int main(void)
{
	struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_action a = vcc_deadline(&f, &p, nondet_u64(), nondet_bool());

	if (a.forget)
		return 0;
	claim_invariant(&f);
	CLAIM(a.deadline_ms >= 1, "the next deadline is in the future");
}
