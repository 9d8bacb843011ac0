/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * Laws 2, 3, 15 and 16 of an ACK to the guest of a port that holds segments, for any state that the
 * engine has left the flow in.
 */
#include "hold.h"

struct ack_outcome nondet_outcome(void);
struct vcc_action nondet_action(void);

int main(void)
{
	struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_buffer b = any_buffer();
	const struct vcc_hold before = any_hold(&f, &b);
	struct vcc_segment s = any_segment();
	const struct ack_outcome outcome = nondet_outcome();
	const uint32_t right_edge = f.right_edge;
	struct vcc_hold h = before;
	struct vcc_action a = nondet_action();

	/* Divisions by other sizes take the solver hours. */
	__CPROVER_assume(f.mss_bytes == 1024);
	__CPROVER_assume(f.stage == STAGE_ESTABLISHED && before.begun &&
			 !(s.flags & (TCP_SYN | TCP_RST)));
	/* What ack_acceptable() admits, and is current. */
	__CPROVER_assume(s.ack == f.snd_una && outcome.granted_bytes <= SEQ_WINDOW_MAX);
	/* The edge that was shown is no further than a field and a buffer reach. */
	__CPROVER_assume(f.right_edge - f.snd_una <= SEQ_WINDOW_MAX);
	if (nondet_bool())
		hold_on_ack(&f, &h, &b, &p, &s, &outcome, &a);
	else
		hold_on_ack_released(&f, &h, &s, &a);
	CLAIM(hold_invariant(&f, &h, &b), "the invariant of what is held");
	CLAIM(h.held_bytes == before.held_bytes && h.retains == before.retains &&
		  h.promises == before.promises,
	      "what is held stays until it leaves");
	CLAIM(hold_shown_edge(&f, &h, &b, &p, 0) - f.snd_una <= SEQ_WINDOW_MAX,
	      "nothing is shown beyond the largest window");
	uint32_t ack = split_ack(&h, s.ack);

	CLAIM(!seq_after(ack, h.promises ? hold_guest_nxt(&f, &h) : f.snd_nxt),
	      "law 15: what has not left is unacknowledged, but for promises (law 16)");
	CLAIM(!h.promises || !seq_before(h.promised, before.promised), "law 16: a promise stands");
	CLAIM(!seq_before(f.right_edge, right_edge), "law 2: the right edge does not move left");
}
