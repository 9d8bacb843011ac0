/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of which the port sees only one direction. The other takes another path: another card
 * of the guest, or a balancer's direct return. One end's SYN-ACK does not pass the port, which then
 * knows neither what may be in flight nor what was acknowledged, and imposes nothing.
 */
#ifndef VCC_ONE_DIRECTION_H
#define VCC_ONE_DIRECTION_H

#include "policing.h"
#include "syn.h"
#include "unknown_connection.h"

/* Does a segment of the guest show that a SYN-ACK, the peer's or its own, did not pass? */
VCC_INLINE bool is_unanswered(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (f->stage == STAGE_SYN_SENT || lacks_own_synack(f)) &&
	       (s->flags & (TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK;
}

/*
 * Nothing limits the data of such a connection, as of an unknown one. It is judged like that, but
 * without a grace: the connection is not older than the port.
 */
VCC_INLINE bool unanswered_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				      const struct vcc_segment *s, struct vcc_action *a)
{
	if (!is_unanswered(f, s))
		return false;
	/* If the window was shown, unanswered_to_guest() has counted it. */
	a->one_direction = !(f->sends & SENDS_UNANSWERED) && !(f->flags & FLOW_WINDOW_SHOWN);
	f->sends |= SENDS_UNANSWERED;
	if (s->payload_bytes && is_policed(f, p) && rejects_unknown(p)) {
		count_policed(f);
		drop_policed(a);
		a->police = POLICED_UNKNOWN;
	}
	return true;
}

/*
 * A segment of the peer that has the guest's SYN-ACK, which did not pass: the guest answers by
 * another card, or a balancer's server answers the client (direct return). The guest reads windows
 * at the scale that the SYN has shown it, and the port knows too little to impose one.
 *
 * Scaled, the first window is smaller than the SYN's, which is not (RFC 7323, 2.2). Unscaled, it
 * may not be, because a receiver does not shrink its window (RFC 9293, 3.8.6): then the guest has
 * declined the option.
 */
VCC_INLINE void unanswered_to_guest(struct vcc_flow *f, const struct vcc_segment *s,
				    struct vcc_action *a)
{
	if (!lacks_own_synack(f) || !(s->flags & TCP_ACK))
		return;
	if (!(f->flags & FLOW_WINDOW_SHOWN)) {
		/* Only the peer's next segments may say it. */
		if (s->seq - f->rcv_nxt > UINT16_MAX)
			return;
		f->flags |= FLOW_WINDOW_SHOWN;
		if (s->window >= f->window_shown)
			f->flags &= ~(uint32_t)FLOW_WSCALE;
		a->one_direction = !(f->sends & SENDS_UNANSWERED);
	}
	note_seen(f, s);
	if (f->flags & FLOW_WSCALE)
		a->window = window_translate(f, s->window);
}

#endif
