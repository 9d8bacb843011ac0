/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A segment of a flow that another CPU holds for longer than a segment waits: a virtual CPU that is
 * descheduled, or a thread that PREEMPT_RT has preempted. The flow is read as it was last written,
 * field by field, and never changed. What passes is within what the guest was last shown, so a
 * guest that keeps to its window loses nothing, and one that does not gains nothing.
 */
#ifndef VCC_CONTENDED_FLOW_H
#define VCC_CONTENDED_FLOW_H

#include "from_guest.h"
#include "to_guest.h"

/* Is it a segment of an open connection, neither the first nor the last of it? */
VCC_INLINE bool is_amid(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return f->stage == STAGE_ESTABLISHED && !(s->flags & (TCP_SYN | TCP_RST));
}

VCC_INLINE void unheld_from_guest(const struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s, struct vcc_action *a)
{
	*a = action_pass(s);
	/* As in policing.h; what is beyond cannot be charged to the next window. */
	if (is_policed(f, p) && (!is_amid(f, s) || acks_unseen(f, s) ||
				 seq_after(segment_end(s) - !!(s->flags & TCP_FIN),
					   f->right_edge - f->overdraft_bytes)))
		drop_policed(a);
	if (!is_controlled(f) || !translates(f, p) || (s->flags & TCP_SYN))
		return;
	/* A segment without ECT is right on any connection (RFC 3168, 6.1.4). */
	a->ip_ecn = IP_ECN_NOT_ECT;
	if (f->accecn)
		a->flags = with_ace(a->flags, f->ace_counted);
}

VCC_INLINE void unheld_to_guest(const struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s, struct vcc_action *a)
{
	*a = action_pass(s);
	if (!is_amid(f, s)) {
		if (is_policed(f, p))
			drop_policed(a);
		return;
	}
	/* The next report repeats all that is in this one. */
	if (s->options & OPT_FACK) {
		a->verdict = VCC_CONSUME;
		return;
	}
	a->window = window_translate(f, s->window);
	refused_to_guest(f, p, s, a);
}

#endif
