/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* Another treatment keeps the invariant, and what the handshake promised. */
#include "check.h"

int main(void)
{
	const struct vcc_flow before = any_flow();
	const struct vcc_params p = any_params();
	struct vcc_flow f = before;

	vcc_judge_anew(&f, &p);
	claim_invariant(&f);
	claim_judged(&before, &f);
}
