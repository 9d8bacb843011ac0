/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The laws of one segment from the guest (docs/laws.md). */
#include "check.h"

int main(void)
{
	const struct vcc_flow before = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment();
	struct vcc_flow f = before;
	struct vcc_action a;

	vcc_from_guest(&f, &p, &s, &a);
	claim_from_guest(&before, &f, &p, &s, &a);
}
