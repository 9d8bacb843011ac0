/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Another treatment keeps the invariant, and what the handshake promised. */
#include "check.h"

int main(void)
{
	const struct vcc_flow before = any_flow();
	const struct vcc_params p = any_params();
	struct vcc_flow f = before;

	vcc_judge_anew(&f, &p);
	claim_invariant(&f);
	CLAIM(f.stage == before.stage && f.snd_una == before.snd_una && f.snd_nxt == before.snd_nxt,
	      "the connection is where it was");
	CLAIM(f.wscale_shown == before.wscale_shown && f.right_edge == before.right_edge,
	      "laws 1 and 2: the guest reads its windows as before");
	CLAIM(!((f.flags ^ before.flags) & ~(FLOW_RELEASED | FLOW_LEFT_ALONE)),
	      "what the handshake agreed stays");
	CLAIM(!is_kept(&before) || is_controlled(&before) == is_controlled(&f) ||
		  before.stage >= STAGE_ESTABLISHED,
	      "a promise of the handshake stays with who gave it");
}
