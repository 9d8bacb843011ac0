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

	__CPROVER_assume(before.stage == STAGE_ESTABLISHED && is_managed(&before) &&
			 acts_by_window(&before, &p) && (before.flags & FLOW_WINDOW_SHOWN));
	__CPROVER_assume(!(s.flags & (TCP_SYN | TCP_RST)) && guest_accepts(&before, &s));
	vcc_to_guest(&f, &p, &s, &a);
	if (a.verdict == VCC_CONSUME || s.ack != f.snd_una)
		return 0;
	uint32_t offered = window_translate(&f, s.window);
	bool repeats = s.ack == before.snd_una && !s.payload_bytes && !(s.flags & TCP_FIN) &&
		       flight_bytes(&before) &&
		       (s.window == before.window_received || (s.options & OPT_SACK));
	bool sack = (f.flags & FLOW_SACK) && (s.options & OPT_SACK);

	if (repeats && !sack && before.window_shown)
		CLAIM(a.window == vcc_min(before.window_shown, offered),
		      "law 4: a duplicate ACK keeps the window");
	else
		CLAIM(
		    (uint64_t)a.window << f.wscale_shown >=
			vcc_min(seq_distance(s.ack, before.right_edge), offered << f.wscale_shown),
		    "law 2: the right edge does not move left");
}
