/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any segment to the guest keeps the invariant. */
#include "check.h"

int main(void)
{
	struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment();
	struct vcc_action a;

	vcc_to_guest(&f, &p, &s, &a);
	if (!a.forget)
		claim_invariant(&f);
}
