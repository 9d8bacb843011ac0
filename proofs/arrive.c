/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* What anyone may have written becomes a flow with the invariant, or does not arrive. */
#include "check.h"

int main(void)
{
	const struct vcc_params p = any_params();
	const struct vcc_flow described = nondet_flow();
	struct vcc_flow f = described;

	if (vcc_arrive(&f, &p, nondet_u64()))
		return 0;
	claim_invariant(&f);
	CLAIM(f.stage == STAGE_ESTABLISHED && f.snd_una == described.snd_una &&
		  f.snd_nxt == described.snd_nxt && f.rcv_nxt == described.rcv_nxt,
	      "the connection is where it was");
	CLAIM(f.wscale_shown == described.wscale_shown && f.wscale_peer == described.wscale_peer &&
		  f.right_edge == described.right_edge,
	      "laws 1 and 2: the guest reads its windows as before");
}
