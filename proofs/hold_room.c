/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * The room of the next segment of a guest, which may ignore its window: it is never room that
 * others have or were granted, so the buffer has a bound, but for what may leave at once.
 */
#include "hold.h"

int main(void)
{
	struct vcc_flow f = any_flow();
	struct vcc_params p = any_params();
	const struct vcc_buffer b = any_buffer();
	const struct vcc_hold h = any_hold(&f, &b);

	/* Divisions by other numbers take the solver hours. */
	__CPROVER_assume(f.mss_bytes == 1024);
	p.buffer_alpha = 1;
	p.buffer_alpha_short = 7;
	const uint32_t others_bytes =
	    b.used_bytes - h.held_bytes + b.granted_bytes - h.granted_bytes;
	const uint32_t room_bytes = hold_room_bytes(&f, &h, &b, &p, (uint32_t)nondet_u64());
	const uint32_t leaving_bytes =
	    takes_buffer(&f, &h, &p)
		? 0
		: seq_distance(hold_guest_nxt(&f, &h), hold_leaving_edge(&f, &h, &p));

	CLAIM(room_bytes >= leaving_bytes, "what may leave at once has room");
	CLAIM(room_bytes <= h.granted_bytes + leaving_bytes ||
		  h.held_bytes + room_bytes + others_bytes <= b.size_bytes + leaving_bytes,
	      "what is admitted takes nothing that others have or were granted");
}
