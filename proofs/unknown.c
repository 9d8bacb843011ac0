/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * No data of an unknown connection passes where a rule polices, once the grace is over; nor of one
 * whose SYN-ACK did not pass, which has no grace.
 */
#include "check.h"
#include "one_direction.h"

uint32_t nondet_u32(void);

int main(void)
{
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment();
	uint32_t attached_s = nondet_u32(), now_s = nondet_u32();

	__CPROVER_assume(attached_s <= now_s && p.policed_s <= now_s);
	bool polices = p.police && p.mode == MODE_ENFORCE && p.on_unknown != ON_UNKNOWN_PASS;
	bool in_grace =
	    now_s - attached_s < p.unknown_grace_s || now_s - p.policed_s < p.unknown_grace_s;
	bool drops = drops_unknown(&p, &s, attached_s, now_s);

	CLAIM(drops || !polices || !s.payload_bytes || in_grace,
	      "law 10: where a rule polices, data of an unknown connection is dropped");
	struct vcc_flow f = any_flow();
	struct vcc_action a = action_pass(&s);

	if (unanswered_from_guest(&f, &p, &s, &a))
		CLAIM(a.verdict == VCC_DROP || !s.payload_bytes || !is_policed(&f, &p) || !polices,
		      "law 20: where a rule polices, data without an answer is dropped");
	CLAIM(!drops || (polices && s.payload_bytes && !in_grace), "nothing else is dropped");
}
