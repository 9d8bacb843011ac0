/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is done with a flow at all, by its port's parameters and its underlay's traits. */
#ifndef VCC_TREAT_H
#define VCC_TREAT_H

#include "cc/cc.h"

VCC_INLINE bool mode_changes(const struct vcc_params *p)
{
	return p->mode == MODE_ENFORCE || p->mode == MODE_DRAIN;
}

/* Is the flow's window ours to impose, as far as its treatment goes? */
VCC_INLINE bool imposes(const struct vcc_flow *f, const struct vcc_params *p)
{
	return mode_changes(p) && !(f->flags & FLOW_RELEASED);
}

/* Are its ECN, scales and options translated? Of a flow that was released, to its end. */
VCC_INLINE bool translates(const struct vcc_flow *f, const struct vcc_params *p)
{
	return mode_changes(p) || (f->flags & FLOW_RELEASED);
}

/* Is the flow under an underlay's control, and not left to itself? */
VCC_INLINE bool is_controlled(const struct vcc_flow *f)
{
	return (cc_traits(f->underlay) & CC_CONTROLS) && !(f->flags & FLOW_LEFT_ALONE);
}

/* Is the underlay's law computed for this flow? */
VCC_INLINE bool is_managed(const struct vcc_flow *f)
{
	return f->stage >= STAGE_ESTABLISHED && is_controlled(f);
}

/* Does the guest negotiate ECN itself, and may it keep that? */
VCC_INLINE bool keeps_own_ecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return (f->flags & FLOW_ECN_GUEST) && p->guest_ecn == GUEST_ECN_LEAVE;
}

/* Does vcc, on this flow, ask for ECN where the guest did not? */
VCC_INLINE bool brings_ecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return translates(f, p) && (cc_traits(f->underlay) & CC_ECN);
}

/*
 * Whose ECN is it? A guest's own is left alone, unless the operator overrides it. AccECN's
 * counters mean nothing to a classic sender half: never taken over.
 */
VCC_INLINE bool leaves_alone(const struct vcc_flow *f, const struct vcc_params *p)
{
	return mode_changes(p) && ((f->flags & FLOW_ACCECN_GUEST) || keeps_own_ecn(f, p));
}

/* Both sides have said what ECN they want. */
VCC_INLINE void settle_ecn(struct vcc_flow *f, const struct vcc_params *p)
{
	if (leaves_alone(f, p))
		f->flags |= FLOW_LEFT_ALONE;
}

#endif
