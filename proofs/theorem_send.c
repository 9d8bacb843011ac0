/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: reno_ecn dctcp */
/*
 * vCC's theorems, the step for a timeout, as the guest's retransmission or a deadline reports it,
 * for a restart after an idle period, and for new data.
 */
#include "theorem.h"

int main(void)
{
	struct guest g = any_guest();
	const struct vcc_flow before = related_flow(&g);
	const struct vcc_params p = papers_params();
	const struct vcc_segment s = any_segment();
	struct vcc_flow f = before;
	struct vcc_action a;
	uint32_t now_us = (uint32_t)s.now_us;
	bool expired = rto_passed(&f, &p, now_us);
	bool idle = !flight_bytes(&f) && elapsed_us(f.progress_us, now_us) >= idle_rto_us(&f, &p);

	/* A loss that a mark has answered may leave DCTCP's ssthresh above the guest's. */
	__CPROVER_assume(!expired || f.underlay != UNDERLAY_dctcp || f.ca_state != CA_CWR ||
			 !seq_before(f.snd_una, f.recover));
	__CPROVER_assume(s.flags == TCP_ACK && !s.seg_bytes && s.payload_bytes &&
			 s.payload_bytes <= MSS_BYTES && !s.options);
	__CPROVER_assume(flight_bytes(&f) < SEQ_WINDOW_MAX / 2);
	/* A guest's restart leaves its ssthresh, although its window may say more. */
	__CPROVER_assume(!idle || f.cc.ssthresh_segs <= g.ssthresh_segs);
	if (expired && nondet_bool()) {
		const struct vcc_action next = vcc_deadline(&f, &p, s.now_us, false);

		__CPROVER_assume(!next.forget);
	} else {
		__CPROVER_assume(s.seq == (expired ? f.snd_una : f.snd_nxt));
		__CPROVER_assume(!expired || s.payload_bytes <= flight_bytes(&f));
		vcc_from_guest(&f, &p, &s, &a);
	}
	if (expired)
		guest_on_timeout(&g, f.snd_una, f.snd_nxt);
	else if (idle)
		guest_on_idle(&g, p.initial_window_segs);
	claim_hypothesis(&f, &g);
}
