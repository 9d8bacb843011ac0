/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is done with a flow at all, by its port's parameters and its underlay's traits. */
#ifndef VCC_TREAT_H
#define VCC_TREAT_H

#include "cc/cc.h"

VCC_INLINE bool mode_changes(const struct vcc_params *p)
{
	return p->mode != MODE_SHADOW;
}

/* Is the flow under an underlay's control, and not left to itself? */
VCC_INLINE bool is_controlled(const struct vcc_flow *f)
{
	return (cc_traits(f->underlay) & CC_CONTROLS) && !(f->flags & FLOW_LEFT_ALONE);
}

/* Does the guest negotiate ECN itself, and may it keep that? */
VCC_INLINE bool keeps_own_ecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return (f->flags & FLOW_ECN_GUEST) && p->guest_ecn == GUEST_ECN_LEAVE;
}

/* Does vcc, on this flow, ask for ECN where the guest did not? */
VCC_INLINE bool brings_ecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return mode_changes(p) && (cc_traits(f->underlay) & CC_ECN);
}

#endif
