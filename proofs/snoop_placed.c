/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* Law 16 of a segment that lies in the guest's ring: what may be acknowledged in its name. */
#include "snoop.h"

int main(void)
{
	const struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment();
	const struct vcc_snoop before = any_snoop();
	const uint32_t end = s.seq + s.payload_bytes;
	struct vcc_snoop sn = before;
	const struct vcc_placed placed = snoop_placed(&f, &sn, &p, &s, (uint32_t)nondet_u64(),
						      nondet_bool(), (uint32_t)nondet_u64());

	CLAIM(snoop_invariant(&sn), "the invariant of what is promised");
	CLAIM(sn.guest_ack == before.guest_ack && sn.guest_edge == before.guest_edge,
	      "what the guest says is the guest's");
	CLAIM(!seq_before(sn.ring_nxt, before.ring_nxt), "law 16: a promise stands");
	CLAIM(!seq_before(given_nxt(&sn), given_nxt(&before)), "what is in the ring stays there");
	if (sn.ring_nxt == before.ring_nxt)
		return 0;
	CLAIM(placed.keep, "law 16: what is promised is kept");
	CLAIM(given_nxt(&sn) == given_nxt(&before) ||
		  (!seq_after(s.seq, given_nxt(&before)) && !has_stored(&sn)),
	      "the ring has it in sequence, or it is given again");
	CLAIM(!seq_after(sn.ring_nxt, sn.guest_edge), "law 16: within the guest's own window");
	CLAIM(!seq_after(s.seq, before.ring_nxt), "law 16: nothing is missing before it");
	CLAIM(sn.ring_nxt == end || (has_hole(&before) && !seq_after(before.sacked_from, end) &&
				     sn.ring_nxt == before.sacked_end),
	      "law 16: complete up to there");
	CLAIM(!(s.flags & (TCP_SYN | TCP_RST | TCP_URG)) && !(s.options & OPT_SIGNED),
	      "law 16: the guest accepts it");
}
