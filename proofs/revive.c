/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* A minisock with any content becomes a flow with the invariant, or is not revived. */
#include "check.h"

struct vcc_minisock nondet_minisock(void);

int main(void)
{
	const struct vcc_params p = any_params();
	const struct vcc_minisock m = nondet_minisock();
	struct vcc_flow f = {};

	if (vcc_revive(&f, &m, &p, nondet_u64()))
		return 0;
	claim_invariant(&f);
	CLAIM(f.wscale_shown == m.wscale_shown && f.wscale_peer == m.wscale_peer &&
		  f.wscale_guest == m.wscale_guest && f.right_edge == m.right_edge,
	      "laws 1 and 2: the guest reads its windows as before");
}
