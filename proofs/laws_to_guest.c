/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The laws of one segment to the guest (docs/laws.md). */
#include "check.h"

int main(void)
{
	const struct vcc_flow before = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment();
	struct vcc_flow f = before;
	struct vcc_action a;

	vcc_to_guest(&f, &p, &s, &a);
	CLAIM(f.snd_una == before.snd_una || seq_after(f.snd_una, before.snd_una) ||
		  (s.flags & TCP_SYN),
	      "what was acknowledged stays so");
	if (!mode_changes(&p) && !(f.flags & FLOW_RELEASED) && !is_kept(&before))
		CLAIM(a.verdict == VCC_PASS && a.flags == s.flags && a.ip_ecn == s.ip_ecn &&
			  a.window == s.window && a.mss == s.mss && a.wscale == s.wscale &&
			  !a.strip && a.emit == EMIT_NOTHING,
		      "shadow mode changes no bit");
	if (s.flags & (TCP_SYN | TCP_RST) || a.verdict == VCC_CONSUME ||
	    f.stage < STAGE_ESTABLISHED)
		return 0;
	uint32_t offered = window_translate(&f, s.window);

	CLAIM(acts_by_hold(&f, &p) || a.window <= offered,
	      "law 1: the receiver's window is not exceeded");
	CLAIM(a.window || !s.window, "law 3: a window that is not zero stays so");
}
