/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* Laws 2 and 16 of what `split` acknowledges to the guest, and of what a change of treatment ends.
 */
#include "hold.h"

struct vcc_repair nondet_repair(void);

int main(void)
{
	struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_buffer b = any_buffer();
	const struct vcc_hold before = any_hold(&f, &b);
	const struct vcc_segment s = any_segment();
	const uint32_t right_edge = f.right_edge, end = (uint32_t)nondet_u64();
	struct vcc_repair r = nondet_repair();
	struct vcc_hold h = before;

	/* Divisions by other sizes take the solver hours. */
	__CPROVER_assume(f.mss_bytes == 1024);
	if (nondet_bool()) {
		bool discards = repair_judge(&f, &h, &r, &p, (uint32_t)nondet_u64());

		CLAIM(!discards || !split_owes(&f, &before),
		      "law 16: what keeps a promise is not discarded");
		CLAIM(hold_invariant(&f, &h, &b), "the invariant of what is held");
		return 0;
	}
	/* The shell has all that the guest has sent up to `end`, and no more than that. */
	__CPROVER_assume(f.stage == STAGE_ESTABLISHED && before.begun);
	__CPROVER_assume(!seq_after(end, hold_guest_nxt(&f, &h)));
	__CPROVER_assume(f.right_edge - f.snd_una <= SEQ_WINDOW_MAX);
	bool says = split_promises(&f, &h, &b, &p, &s, end);

	CLAIM(hold_invariant(&f, &h, &b), "the invariant of what is held");
	CLAIM(!before.promises || !seq_before(h.promised, before.promised),
	      "law 16: a promise stands");
	CLAIM(!h.promises || before.promises || hold_covers(&f, &h),
	      "law 16: the first promise is of what is retained");
	CLAIM(!seq_before(f.right_edge, right_edge), "law 2: the right edge does not move left");
	CLAIM(!says || f.window_shown, "law 3: a window is never 0");
}
