/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes a live flow's treatment. The results of its handshake stay to its end: the guest reads
 * windows at the scale it was shown, and the peer expects the ECN and the reports it was promised.
 * Everything else follows the new treatment.
 */
#ifndef VCC_POLICY_CHANGE_H
#define VCC_POLICY_CHANGE_H

#include "accecn.h"
#include "undo.h"

/* Did vcc change the handshake, so that an established connection depends on it? */
VCC_INLINE bool is_bound(const struct vcc_flow *f)
{
	return plays_receiver(f) || f->wscale_shown != f->wscale_peer;
}

/* The underlay starts afresh, with the present window. */
VCC_INLINE void begin_with_window(struct vcc_flow *f, uint32_t initial_window_segs)
{
	uint32_t cwnd_segs = f->cc.cwnd_segs, ssthresh_segs = f->cc.ssthresh_segs;

	cc_init(f->underlay, &f->cc, initial_window_segs);
	f->cc.cwnd_segs = cwnd_segs;
	f->cc.ssthresh_segs = ssthresh_segs;
}

/*
 * The new underlay inherits the old one's window. If none was computed, it starts from the guest's
 * flight, which the path is known to carry; and a reduction of the window before has ended.
 */
VCC_INLINE void change_underlay(struct vcc_flow *f, const struct vcc_params *p, bool computed)
{
	uint32_t initial_segs = vcc_max(p->initial_window_segs, 1);

	undo_forbid(f);
	f->underlay = p->underlay;
	if (computed) {
		begin_with_window(f, initial_segs);
	} else {
		uint32_t flight_segs = bytes_to_segs_ceil(f, flight_bytes(f));

		cc_init(f->underlay, &f->cc, initial_segs);
		f->ca_state = CA_OPEN;
		f->dupacks = 0;
		f->cc.cwnd_segs = vcc_min(vcc_max(f->cc.cwnd_segs, flight_segs), CWND_MAX_SEGS);
	}
	VCC_LAW(f->cc.cwnd_segs >= 1);
}

/*
 * If the flow has the underlay `from`, it continues with `to` and the same window. Both must bring
 * ECN, or neither: a handshake has promised it.
 */
VCC_INLINE void move_underlay(struct vcc_flow *f, uint8_t from, uint8_t to)
{
	if (f->underlay != from || f->stage == STAGE_NONE)
		return;
	undo_forbid(f);
	f->underlay = to;
	begin_with_window(f, f->cc.cwnd_segs);
}

/* Did vcc change the handshake so far, so that one side expects what vcc promised? */
VCC_INLINE bool is_promised(const struct vcc_flow *f)
{
	bool asked_for_guest = (f->flags & (FLOW_ECN_ASKED | FLOW_ECN_GUEST)) == FLOW_ECN_ASKED;

	return asked_for_guest || (f->flags & FLOW_HELLO_OFFERED) ||
	       (f->syn_flags & SYN_ACCECN_ASKED) || f->wscale_shown != f->wscale_peer;
}

/* Does the flow depend on vcc, so that it must be kept even if its treatment leaves it alone? */
VCC_INLINE bool is_kept(const struct vcc_flow *f)
{
	return f->stage < STAGE_ESTABLISHED ? is_promised(f) : is_bound(f);
}

/*
 * Do guest and peer use different window scales, or may they when the handshake ends? Without vcc,
 * such a connection would be very slow.
 */
VCC_INLINE bool depends_on_translation(const struct vcc_flow *f)
{
	switch (f->stage) {
	case STAGE_SYN_SENT:
		/* The SYN-ACK that would show the guest a scale has reached it another way. */
		return !(f->sends & SENDS_UNANSWERED);
	case STAGE_SYN_RECEIVED:
		return true;
	case STAGE_ESTABLISHED:
		return f->wscale_shown != f->wscale_peer;
	default:
		return false;
	}
}

/*
 * Treats the flow by `p` from its next segment on. During the handshake, an underlay that has made
 * promises stays, because another one might not keep them.
 */
VCC_INLINE void vcc_judge_anew(struct vcc_flow *f, const struct vcc_params *p)
{
	bool computed = is_controlled(f);
	bool controls = cc_traits(p->underlay) & CC_CONTROLS;

	/* Its SYN brings the treatment. */
	if (f->stage == STAGE_NONE)
		return;
	if (is_kept(f) && !(mode_changes(p) && controls)) {
		f->flags |= FLOW_RELEASED;
		return;
	}
	f->flags &= ~(uint32_t)FLOW_RELEASED;
	if (f->stage < STAGE_ESTABLISHED) {
		if (!is_promised(f))
			change_underlay(f, p, false);
		return;
	}
	f->flags &= ~(uint32_t)FLOW_LEFT_ALONE;
	settle_ecn(f, p);
	if (f->underlay != p->underlay || (!computed && is_controlled(f)))
		change_underlay(f, p, computed && is_controlled(f));
}

#endif
