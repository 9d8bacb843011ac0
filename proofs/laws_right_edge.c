/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Laws 2 and 4: the window shown on a current ACK, where the guest has seen one before. */
#include "check.h"

int main(void)
{
	const struct vcc_flow before = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment();
	struct vcc_flow f = before;
	struct vcc_action a;

	__CPROVER_assume(shows_again(&before, &p, &s));
	vcc_to_guest(&f, &p, &s, &a);
	claim_right_edge(&before, &f, &s, &a);
}
