/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The laws of one call (docs/laws.md), by the flow's state before and after it. A model checker
 * proves them of any state; the fuzzer asserts them along the sequences that it finds (fuzz/).
 * CLAIM is the includer's.
 */
#ifndef VCC_LAWS_H
#define VCC_LAWS_H

#include "engine.h"
#include "invariant.h"

/* A segment from the guest. */
static void claim_from_guest(const struct vcc_flow *before, const struct vcc_flow *f,
			     const struct vcc_params *p, const struct vcc_segment *s,
			     const struct vcc_action *a)
{
	CLAIM(a->window == s->window, "the guest's own window is its own");
	CLAIM(a->ip_ecn == s->ip_ecn || a->ip_ecn != IP_ECN_CE, "law 5: no mark is made");
	CLAIM(a->verdict == VCC_PASS || (a->verdict == VCC_DROP && a->police),
	      "what the guest sends is dropped by policing alone");
	if (s->flags & TCP_SYN)
		return;
	CLAIM(!((a->flags ^ s->flags) & ~(TCP_ECN_BITS | TCP_PSH)),
	      "only ECN's bits and PSH change");
	if (!is_managed(f) || !translates(f, p))
		CLAIM(a->ip_ecn == s->ip_ecn || a->ip_ecn == IP_ECN_NOT_ECT,
		      "law 5: no ECT that nobody answers");
	else if (!a->police)
		CLAIM(a->ip_ecn == IP_ECN_NOT_ECT ||
			  (a->ip_ecn == IP_ECN_ECT_0 && (f->flags & FLOW_ECN_FABRIC) &&
			   !(f->flags & (FLOW_ECN_FELL_BACK | FLOW_UNHEARD | FLOW_RELEASED))),
		      "law 5: what leaves has the ECN that was negotiated with the peer");
	/* One that has come with its guest learns where that is. */
	CLAIM(f->snd_una == before->snd_una || f->stage < STAGE_ESTABLISHED || before->lags,
	      "law 9: the guest's data is acknowledged by the peer alone");
	CLAIM(!is_managed(f) || f->reductions - before->reductions <= 1, "law 6: one reduction");
	if ((s->flags & TCP_RST) && f->stage == before->stage)
		CLAIM(f->flags == before->flags && f->snd_nxt == before->snd_nxt &&
			  f->rcv_wup == before->rcv_wup && f->rcv_edge == before->rcv_edge &&
			  f->right_edge == before->right_edge &&
			  f->cc.cwnd_segs == before->cc.cwnd_segs,
		      "law 17: a RST that is not believed changes nothing");
}

/* A segment to the guest. */
static void claim_to_guest(const struct vcc_flow *before, const struct vcc_flow *f,
			   const struct vcc_params *p, const struct vcc_segment *s,
			   const struct vcc_action *a)
{
	CLAIM(f->snd_una == before->snd_una || seq_after(f->snd_una, before->snd_una) ||
		  (s->flags & TCP_SYN),
	      "what was acknowledged stays so");
	if (!mode_changes(p) && !(f->flags & FLOW_RELEASED) && !is_kept(before))
		CLAIM(a->verdict == VCC_PASS && a->flags == s->flags && a->ip_ecn == s->ip_ecn &&
			  a->window == s->window && a->mss == s->mss && a->wscale == s->wscale &&
			  !a->strip && a->emit == EMIT_NOTHING,
		      "shadow mode changes no bit");
	if (s->flags & TCP_SYN)
		CLAIM(a->window <= s->window && (a->window || !s->window),
		      "laws 1 and 3: the window of a SYN is not raised, and not closed");
	if (s->flags & (TCP_SYN | TCP_RST) || a->verdict == VCC_CONSUME ||
	    f->stage < STAGE_ESTABLISHED)
		return;
	uint32_t offered = window_translate(f, s->window);

	CLAIM(acts_by_hold(f, p) || a->window <= offered,
	      "law 1: the receiver's window is not exceeded");
	CLAIM(a->window || !s->window, "law 3: a window that is not zero stays so");
	CLAIM(a->ip_ecn == s->ip_ecn || a->ip_ecn != IP_ECN_CE, "law 5: no mark is made");
	if (!is_managed(f) || !translates(f, p) || !(f->flags & FLOW_ECN_FABRIC))
		return;
	CLAIM(!(a->flags & TCP_ECE), "law 5: ECE is answered for the guest");
	CLAIM(!ecn_is_ours(f) || (a->ip_ecn == IP_ECN_NOT_ECT && !(a->flags & (TCP_CWR | TCP_AE))),
	      "law 5: a guest without ECN sees none");
}

/* Is it a current segment to a guest that has been shown a window of ours? */
static bool shows_again(const struct vcc_flow *before, const struct vcc_params *p,
			const struct vcc_segment *s)
{
	return before->stage == STAGE_ESTABLISHED && is_managed(before) &&
	       acts_by_window(before, p) && (before->flags & FLOW_WINDOW_SHOWN) &&
	       !(s->flags & (TCP_SYN | TCP_RST)) && guest_accepts(before, s);
}

/* Laws 2 and 4 of such a segment. */
static void claim_right_edge(const struct vcc_flow *before, const struct vcc_flow *f,
			     const struct vcc_segment *s, const struct vcc_action *a)
{
	if (a->verdict == VCC_CONSUME || s->ack != f->snd_una)
		return;
	uint32_t offered = window_translate(f, s->window);
	bool repeats = s->ack == before->snd_una && !s->payload_bytes && !(s->flags & TCP_FIN) &&
		       flight_bytes(before) &&
		       (s->window == before->window_received || (s->options & OPT_SACK));
	bool sack = (f->flags & FLOW_SACK) && (s->options & OPT_SACK);

	if (repeats && !sack && before->window_shown)
		CLAIM(a->window == vcc_min(before->window_shown, offered),
		      "law 4: a duplicate ACK keeps the window");
	else
		CLAIM((uint64_t)a->window << f->wscale_shown >=
			  vcc_min(seq_distance(s->ack, before->right_edge),
				  offered << f->wscale_shown),
		      "law 2: the right edge does not move left");
}

/* Another treatment. */
static void claim_judged(const struct vcc_flow *before, const struct vcc_flow *f)
{
	CLAIM(f->stage == before->stage && f->snd_una == before->snd_una &&
		  f->snd_nxt == before->snd_nxt,
	      "the connection is where it was");
	CLAIM(f->wscale_shown == before->wscale_shown && f->right_edge == before->right_edge,
	      "laws 1 and 2: the guest reads its windows as before");
	CLAIM(!((f->flags ^ before->flags) & ~(FLOW_RELEASED | FLOW_LEFT_ALONE)),
	      "what the handshake agreed stays");
	CLAIM(!is_kept(before) || is_controlled(before) == is_controlled(f) ||
		  before->stage >= STAGE_ESTABLISHED,
	      "a promise of the handshake stays with who gave it");
}

#endif
