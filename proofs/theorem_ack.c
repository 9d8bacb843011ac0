/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: reno_ecn dctcp */
/*
 * vCC's theorems, the step for an ACK: of new data, partial, full, or a duplicate, with marks or
 * without.
 */
#include "theorem.h"

/* What the guest may send by equation 2, and what the engine's window admits (equation 16). */
static void claim_admitted(const struct vcc_flow *before, const struct vcc_flow *f,
			   const struct guest *g, const struct vcc_segment *s,
			   const struct vcc_action *a)
{
	uint32_t unit_bytes = 1u << f->wscale_shown;
	uint32_t offered_bytes = window_translate(f, s->window) * unit_bytes;
	uint32_t shown_bytes = a->window * unit_bytes;
	uint32_t told_segs = is_recovering(f) ? bytes_to_segs_ceil(f, sacked_bytes(f)) : 0;
	uint32_t native_segs = f->cc.cwnd_segs + told_segs;
	uint32_t kept_bytes = seq_distance(s->ack, seq_max(before->right_edge, f->snd_nxt));

	CLAIM(g->cwnd_segs >= native_segs, "equation 18");
	CLAIM(shown_bytes >= vcc_min(native_segs * MSS_BYTES, offered_bytes),
	      "equation 16: the guest is not held back");
	/* Without the right edge of before (law 2), and until leftover duplicates end. */
	if (kept_bytes > native_segs * MSS_BYTES || native_segs < 2 ||
	    (f->ca_state == CA_RECOVERY && !told_segs && f->dupacks))
		return;
	CLAIM(shown_bytes < native_segs * MSS_BYTES + unit_bytes,
	      "equation 16: nor may it send a segment more");
}

int main(void)
{
	struct guest g = any_guest();
	const struct vcc_flow before = related_flow(&g);
	const struct vcc_params p = papers_params();
	const struct vcc_segment s = any_segment();
	struct vcc_flow f = before;
	struct vcc_action a;
	uint32_t acked_segs = nondet_u64();

	__CPROVER_assume((s.flags & ~TCP_ECE) == TCP_ACK && !s.payload_bytes &&
			 !(s.options & (OPT_SACK | OPT_FACK)) && !s.dsack_bytes && !s.pool_bytes &&
			 guest_accepts(&f, &s));
	/* Whole segments, and not more than a window; the window does not change with them. */
	__CPROVER_assume(acked_segs <= f.cc.cwnd_segs &&
			 s.ack == f.snd_una + acked_segs * MSS_BYTES &&
			 !seq_after(s.ack, f.snd_nxt) && s.window == f.window_received);
	__CPROVER_assume(acked_segs || flight_bytes(&f));
	/* The guest has answered each earlier ACK, so nothing that it was admitted is about to
	 * leave. */
	__CPROVER_assume(snd_nxt_due(&f, &p, 0) == f.snd_nxt);
	/* The clock does not run back. */
	__CPROVER_assume((int32_t)((uint32_t)s.now_us - f.sent_us) >= 0);
	/* A duplicate in a recovery that is over has no effect, and need not be followed. */
	__CPROVER_assume(f.dupacks < UINT16_MAX);
	vcc_to_guest(&f, &p, &s, &a);
	/* A loss that a mark has answered may leave DCTCP's ssthresh above the guest's. */
	__CPROVER_assume(f.underlay != UNDERLAY_dctcp || acked_segs ||
			 before.dupacks < DUPACK_THRESHOLD - 1 || is_restarted(&before) ||
			 before.ca_state > CA_CWR ||
			 (before.ca_state == CA_OPEN && f.marks == before.marks));
	if (acked_segs)
		guest_on_ack(&g, s.ack, acked_segs);
	else
		guest_on_duplicate(&g, f.snd_nxt);
	claim_hypothesis(&f, &g);
	if (acked_segs)
		claim_admitted(&before, &f, &g, &s, &a);
	else
		CLAIM(a.window == vcc_min(before.window_shown, window_translate(&f, s.window)),
		      "a duplicate admits nothing new (law 4)");
}
