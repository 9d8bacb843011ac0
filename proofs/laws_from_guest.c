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
	CLAIM(a.window == s.window, "the guest's own window is its own");
	CLAIM(a.ip_ecn == s.ip_ecn || a.ip_ecn != IP_ECN_CE, "law 5: no mark is made");
	CLAIM(a.verdict == VCC_PASS || (a.verdict == VCC_DROP && a.police),
	      "what the guest sends is dropped by policing alone");
	if (s.flags & TCP_SYN)
		return 0;
	CLAIM(!((a.flags ^ s.flags) & ~(TCP_ECN_BITS | TCP_PSH)), "only ECN's bits and PSH change");
	if (f.flags & (FLOW_ECN_FELL_BACK | FLOW_UNHEARD | FLOW_RELEASED) ||
	    !(f.flags & FLOW_ECN_FABRIC))
		CLAIM(a.ip_ecn == s.ip_ecn || a.ip_ecn == IP_ECN_NOT_ECT,
		      "law 5: no ECT that nobody answers");
	CLAIM(f.snd_una == before.snd_una || f.stage < STAGE_ESTABLISHED,
	      "law 9: the guest's data is acknowledged by the peer alone");
	CLAIM(!is_managed(&f) || f.reductions - before.reductions <= 1, "law 6: one reduction");
	if ((s.flags & TCP_RST) && f.stage == before.stage)
		CLAIM(f.flags == before.flags && f.snd_nxt == before.snd_nxt &&
			  f.rcv_wup == before.rcv_wup && f.rcv_edge == before.rcv_edge &&
			  f.right_edge == before.right_edge &&
			  f.cc.cwnd_segs == before.cc.cwnd_segs,
		      "law 17: a RST that is not believed changes nothing");
}
