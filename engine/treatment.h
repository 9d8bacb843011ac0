/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The treatment of a flow, by its parameters and its underlay's traits. */
#ifndef VCC_TREATMENT_H
#define VCC_TREATMENT_H

#include "cc/cc.h"

/* Does the mode change segments? */
VCC_INLINE bool mode_changes(const struct vcc_params *p)
{
	return p->mode == MODE_ENFORCE || p->mode == MODE_DRAIN;
}

/* Does the treatment impose the underlay's window? */
VCC_INLINE bool imposes(const struct vcc_flow *f, const struct vcc_params *p)
{
	return mode_changes(p) && !(f->flags & FLOW_RELEASED);
}

/* Does the shell hold the guest's segments until the window admits them (hold.h)? */
VCC_INLINE bool acts_by_hold(const struct vcc_flow *f, const struct vcc_params *p)
{
	return imposes(f, p) && p->act >= ACT_HOLD;
}

/* Does the shell acknowledge what it holds (split.h)? */
VCC_INLINE bool acts_by_split(const struct vcc_flow *f, const struct vcc_params *p)
{
	return imposes(f, p) && p->act == ACT_SPLIT;
}

/* Is the guest shown the underlay's window (window.h)? */
VCC_INLINE bool acts_by_window(const struct vcc_flow *f, const struct vcc_params *p)
{
	return imposes(f, p) && p->act == ACT_WINDOW;
}

/* Are ECN, scales and options translated? A released flow is translated to its end. */
VCC_INLINE bool translates(const struct vcc_flow *f, const struct vcc_params *p)
{
	return mode_changes(p) || (f->flags & FLOW_RELEASED);
}

/* Does the underlay control the flow? */
VCC_INLINE bool is_controlled(const struct vcc_flow *f)
{
	return (cc_traits(f->underlay) & CC_CONTROLS) && !(f->flags & FLOW_LEFT_ALONE);
}

/* Does the engine compute the underlay's window for this flow? */
VCC_INLINE bool is_managed(const struct vcc_flow *f)
{
	return f->stage >= STAGE_ESTABLISHED && is_controlled(f);
}

/* Does the policy leave the ECN of a guest that uses some itself? */
VCC_INLINE bool leaves_own_ecn(const struct vcc_params *p)
{
	return p->guest_ecn == GUEST_ECN_LEAVE || p->migratable;
}

/* Does the guest use ECN itself, and does the policy leave it? */
VCC_INLINE bool keeps_own_ecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return (f->flags & FLOW_ECN_GUEST) && leaves_own_ecn(p);
}

/* Has a SYN asked the peer for ECN in the guest's name, so that the answer is for vcc? */
VCC_INLINE bool has_asked_ecn(const struct vcc_flow *f)
{
	const uint32_t asks = FLOW_GUEST_OPENED | FLOW_ECN_ASKED | FLOW_ECN_GUEST;

	return (f->syn_flags & asks) == (FLOW_GUEST_OPENED | FLOW_ECN_ASKED);
}

/*
 * Does vcc negotiate ECN on behalf of a guest without? Where the guest may continue without vcc,
 * nobody would echo the peer's marks any more.
 */
VCC_INLINE bool brings_ecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return translates(f, p) && (cc_traits(f->underlay) & CC_ECN) &&
	       (!p->migratable || has_asked_ecn(f));
}

/*
 * Is a flow with the guest's own ECN left alone? Classic ECN is, unless the operator overrides it.
 * AccECN of its own always is, because a classic sender half cannot use its counters; what vcc has
 * agreed on in its place never is.
 */
VCC_INLINE bool leaves_alone(const struct vcc_flow *f, const struct vcc_params *p)
{
	return mode_changes(p) && !f->accecn &&
	       ((f->flags & FLOW_ACCECN_GUEST) || keeps_own_ecn(f, p));
}

/* Called when both SYNs have passed. */
VCC_INLINE void settle_ecn(struct vcc_flow *f, const struct vcc_params *p)
{
	if (leaves_alone(f, p))
		f->flags |= FLOW_LEFT_ALONE;
}

/* The action that passes a segment unchanged. */
VCC_INLINE struct vcc_action action_pass(const struct vcc_segment *s)
{
	return (struct vcc_action){
		.verdict = VCC_PASS,
		.ip_ecn = s->ip_ecn,
		.flags = s->flags,
		.window = s->window,
		.mss = s->mss,
		.wscale = s->wscale,
	};
}

#endif
