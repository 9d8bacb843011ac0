/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * Law 16 of a port that stores data for its guest: what may be acknowledged of it, that the ring
 * gets data in sequence and within the guest's own window, and a FIN behind all data. And of one
 * that answers SYNs.
 */
#include "snoop.h"

#include "accept.h"

/* A segment that the port stores, or what has been behind a hole. */
static void store(const struct vcc_flow *f, const struct vcc_params *p, const struct vcc_segment *s)
{
	const struct vcc_snoop before = any_snoop();
	const uint32_t end = s->seq + s->payload_bytes;
	struct vcc_snoop sn = before;

	__CPROVER_assume(told_invariant(&before));
	const uint32_t edge = offered_to(f, &before, p);
	const struct vcc_placed stored = snoop_stored(f, &sn, p, s, (uint32_t)nondet_u64(),
						      nondet_bool(), (uint32_t)nondet_u64());

	CLAIM(snoop_invariant(&sn), "the invariant of what is promised");
	CLAIM(!seq_before(sn.ring_nxt, before.ring_nxt), "law 16: a promise stands");
	CLAIM(given_nxt(&sn) == given_nxt(&before), "what is stored has not been given");
	if (sn.ring_nxt != before.ring_nxt) {
		CLAIM(stored.keep, "law 16: what is promised is kept");
		CLAIM(!seq_after(sn.ring_nxt, edge), "law 16: within what the peer was offered");
		CLAIM(!seq_after(s->seq, before.ring_nxt), "law 16: nothing is missing before it");
		CLAIM(sn.ring_nxt == end ||
			  (has_hole(&before) && !seq_after(before.sacked_from, end) &&
			   sn.ring_nxt == before.sacked_end),
		      "law 16: complete up to there");
		CLAIM(!(s->flags & (TCP_SYN | TCP_RST | TCP_URG)) && !(s->options & OPT_SIGNED),
		      "law 16: the guest accepts it");
	}
	const uint32_t nxt = (uint32_t)nondet_u64(), given = given_nxt(&sn);
	const struct vcc_snoop holed = sn;

	if (!snoop_covered(f, &sn, p, nxt))
		return;
	CLAIM(snoop_invariant(&sn) && given_nxt(&sn) == given, "the same of what it fills");
	CLAIM(sn.ring_nxt == nxt || sn.ring_nxt == holed.sacked_end,
	      "law 16: as far as there are copies");
	CLAIM(!seq_after(sn.ring_nxt, edge), "law 16: within what the peer was offered");
}

/* A segment to the guest: what of it reaches the ring. */
static void pass(const struct vcc_flow *f, const struct vcc_params *p, const struct vcc_segment *s)
{
	const struct vcc_snoop sn = any_snoop();
	const struct vcc_room room = nondet_room();
	const uint32_t end = s->seq + s->payload_bytes, given = given_nxt(&sn);
	const bool fin = s->flags & TCP_FIN;
	uint8_t way = receive_way(f, &sn, p, &room, s, (uint32_t)nondet_u64(), nondet_bool(),
				  (uint32_t)nondet_u64());

	if (!sn.begun || is_inconsistent(f, &sn) || (s->flags & (TCP_SYN | TCP_RST)))
		return;
	CLAIM(way != WAY_MOVED || (!s->payload_bytes && !fin), "no data moves");
	if (!has_stored(&sn))
		return;
	CLAIM(way != WAY_PASS || !fin, "a FIN waits for what is stored");
	CLAIM(way != WAY_PASS || !s->payload_bytes || !seq_after(end, given),
	      "data waits for what is stored");
}

/* What is stored reaches the ring. */
static void give(void)
{
	struct vcc_snoop sn = any_snoop();
	const struct vcc_snoop before = sn;
	const uint32_t end = (uint32_t)nondet_u64(), seg_bytes = (uint32_t)nondet_u64();
	const uint32_t given = given_nxt(&sn);

	/* Divisions by other sizes take the solver hours. */
	__CPROVER_assume(sn.begun && has_stored(&sn) && seg_bytes == 1024);
	__CPROVER_assume(seq_after(end, given) && !seq_after(end, sn.ring_nxt));
	uint32_t bytes = receive_gives_bytes(&sn, end, seg_bytes);

	if (!bytes)
		return;
	CLAIM(!seq_after(given + bytes, sn.guest_edge), "law 16: within the guest's own window");
	CLAIM(!seq_after(given + bytes, end), "no more than there is");
	receive_gave(&sn, given + bytes);
	CLAIM(snoop_invariant(&sn) && sn.ring_nxt == before.ring_nxt &&
		  given_nxt(&sn) == given + bytes,
	      "it is in the ring, and promised as before");
}

/* A SYN is answered in the guest's name: the guest is given nothing before it has answered it. */
static void accept(const struct vcc_segment *synack, const struct vcc_segment *own)
{
	struct vcc_snoop sn = nondet_snoop();
	const uint32_t end = (uint32_t)nondet_u64(), edge = synack->ack + synack->window;

	__CPROVER_assume((synack->flags & TCP_SYN) && (synack->flags & TCP_ACK) && synack->mss);
	snoop_begin(&sn, synack, edge);
	accept_begin(&sn);
	CLAIM(snoop_invariant(&sn) && !has_stored(&sn), "nothing is stored yet");
	CLAIM(sn.told_edge == edge, "the peer has its first window");

	struct vcc_snoop later = any_snoop();

	/* Data has been stored since, and the guest has sent nothing. */
	__CPROVER_assume(later.begun && later.guest_ack == later.irs_nxt && !has_hole(&later) &&
			 later.guest_edge == later.guest_ack &&
			 later.stored_bytes == later.ring_nxt - later.guest_ack);
	const struct vcc_snoop before = later;

	CLAIM(!receive_gives_bytes(&later, end, 1024), "law 16: the guest has not answered");
	if (!accept_joins(&later, own))
		return;
	CLAIM((own->flags & TCP_SYN) && (own->flags & TCP_ACK) && own->ack == before.irs_nxt,
	      "the guest has answered this SYN");
	CLAIM(snoop_invariant(&later) && later.ring_nxt == before.ring_nxt &&
		  given_nxt(&later) == given_nxt(&before),
	      "what is promised stands");
	CLAIM(later.guest_edge - later.guest_ack <= UINT16_MAX, "its window is unscaled");
}

int main(void)
{
	const struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_segment s = any_segment(), own = any_segment();

	store(&f, &p, &s);
	pass(&f, &p, &s);
	give();
	accept(&s, &own);
}
