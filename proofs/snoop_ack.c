/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * Laws 3 and 16 of the guest's own acknowledgements, and of those that leave for the peer in its
 * name.
 */
#include "snoop.h"

int main(void)
{
	const struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment();
	const struct vcc_room room = nondet_room();
	struct vcc_snoop sn = any_snoop();
	uint32_t from = (uint32_t)nondet_u64(), end = (uint32_t)nondet_u64();
	uint32_t ring_nxt = sn.ring_nxt;
	bool begun = sn.begun;

	bool goes_on = snoop_guest_acked(&f, &sn, &s);

	CLAIM(snoop_invariant(&sn), "the invariant of what is promised");
	if (!goes_on || !begun)
		return 0;
	CLAIM(!seq_before(sn.ring_nxt, ring_nxt), "law 16: a promise stands");
	ring_nxt = sn.ring_nxt;
	/* A part of a block of which the shell has copies. */
	__CPROVER_assume(end - from <= SEQ_WINDOW_MAX && seq_plausible(ring_nxt, end));
	snoop_sacked(&sn, from, end);
	CLAIM(snoop_invariant(&sn) && sn.ring_nxt == ring_nxt,
	      "what is reported behind a hole is not promised");
	/* The guest has not acknowledged a gigabyte more than was sent to it. */
	__CPROVER_assume(seq_plausible(sn.ring_nxt, sn.told_edge) && told_invariant(&sn));
	const struct vcc_snoop before = sn;
	const struct vcc_snoop_ack said = snoop_ack_to_send(&f, &sn, &p, &room, &s);

	CLAIM(!(s.flags & TCP_SYN) || said.ack == s.ack, "a SYN-ACK says what the guest does");
	if (said.ack != s.ack)
		CLAIM(said.ack == sn.ring_nxt, "law 16: what is acknowledged is there");
	uint32_t share_bytes = vcc_min(room.buffer_bytes, RECEIVE_BUFFER_MAX_BYTES);
	/* A shut window ends at the acknowledgement. */
	uint32_t most_edge =
	    seq_max(seq_max(sn.guest_edge, sn.ring_nxt), sn.guest_ack + share_bytes);

	if (is_promise_due(&sn) && !(s.flags & (TCP_SYN | TCP_RST)) && (s.flags & TCP_ACK) &&
	    !is_inconsistent(&f, &sn)) {
		CLAIM(!seq_after(said.edge, seq_max(most_edge, sn.told_edge)),
		      "law 16: no more is offered than the guest's window or the buffer");
		CLAIM(p.receive >= RECEIVE_BUFFER || !seq_after(said.edge, sn.guest_edge),
		      "without a buffer, the guest's own window");
		CLAIM(!buffers(&f, &sn, &p) || !seq_before(said.edge, sn.told_edge),
		      "what was offered of the buffer is not withdrawn");
	}
	CLAIM(!((said.flags ^ s.flags) & ~TCP_ECE), "only ECE changes");
	snoop_ack_sent(&f, &sn, &said);
	CLAIM(snoop_invariant(&sn) && !seq_before(sn.ring_nxt, ring_nxt) &&
		  sn.stored_bytes == before.stored_bytes,
	      "what is said changes no promise");
}
