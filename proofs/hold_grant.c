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
	const uint32_t bytes = (uint32_t)nondet_u64(), end = (uint32_t)nondet_u64();
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
		hold_settle(&f, &h, &b, &p);
		CLAIM(h.held_bytes == had.held_bytes && b.used_bytes == before.used_bytes,
		      "a grant moves nothing that is held");
		CLAIM(h.granted_bytes <= had.granted_bytes ||
			  h.granted_bytes + h.held_bytes <= share_bytes,
		      "no more is granted than the flow's share");
	} else {
		__CPROVER_assume(bytes <= SEQ_WINDOW_MAX - before.used_bytes);
		const uint32_t room_bytes = hold_room_bytes(&f, &had, &before, &p, end);

		hold_kept(&f, &h, &b, &p, end, bytes);
		CLAIM(h.held_bytes - had.held_bytes == bytes, "what is held is counted");
		CLAIM(takes_buffer(&had, &p) ||
			  !seq_distance(f.snd_nxt, hold_leaving_edge(&f, &had, &p)) || room_bytes,
		      "what may leave at once has room");
		CLAIM(!takes_buffer(&had, &p) || bytes > room_bytes ||
			  h.held_bytes + h.granted_bytes + others_bytes <=
			      vcc_max(before.size_bytes,
				      had.held_bytes + had.granted_bytes + others_bytes),
		      "what is admitted takes nothing that others were granted");
	}
	CLAIM(b.used_bytes - h.held_bytes == before.used_bytes - had.held_bytes &&
		  b.granted_bytes - h.granted_bytes == before.granted_bytes - had.granted_bytes,
	      "the others keep what they have");
}
