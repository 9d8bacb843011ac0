/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * What a flow is granted of a port's buffer (vFlood, 3.3), in any state of the flow and whatever
 * the others have: nothing that another one has or was granted, and nothing is lost from the
 * account.
 */
#include "hold.h"

int main(void)
{
	struct vcc_flow f = any_flow();
	struct vcc_params p = any_params();
	const struct vcc_buffer before = any_buffer();
	const struct vcc_hold had = any_hold(&f, &before);
	const struct vcc_segment s = any_segment();
	const uint32_t bytes = (uint32_t)nondet_u64();
	struct vcc_buffer b = before;
	struct vcc_hold h = had;

	/* Divisions by other numbers take the solver hours. */
	__CPROVER_assume(f.mss_bytes == 1024);
	p.buffer_alpha = 1;
	p.buffer_alpha_short = 7;
	const uint32_t share_bytes = hold_share_bytes(&f, &had, &before, &p);
	const uint32_t others_bytes =
	    before.used_bytes - had.held_bytes + before.granted_bytes - had.granted_bytes;

	CLAIM(!share_bytes || share_bytes + others_bytes <= before.size_bytes,
	      "a share has nothing that others have or were granted");
	if (nondet_bool()) {
		hold_settle(&f, &h, &b, &p, (uint32_t)nondet_u64());
		CLAIM(h.held_bytes == had.held_bytes && b.used_bytes == before.used_bytes,
		      "a grant moves nothing that is held");
		CLAIM(h.granted_bytes <= had.granted_bytes ||
			  h.granted_bytes + h.held_bytes <= share_bytes,
		      "no more is granted than the flow's share");
	} else {
		__CPROVER_assume(bytes <= SEQ_WINDOW_MAX - before.used_bytes);
		hold_kept(&f, &h, &b, &p, &s, bytes);
		CLAIM(h.held_bytes - had.held_bytes == bytes, "what is held is counted");
		CLAIM(h.granted_bytes == vcc_sub_floor0(had.granted_bytes, bytes),
		      "what is taken is no longer granted besides");
	}
	CLAIM(b.used_bytes - h.held_bytes == before.used_bytes - had.held_bytes &&
		  b.granted_bytes - h.granted_bytes == before.granted_bytes - had.granted_bytes,
	      "the others keep what they have");
}
