/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A guest whose segments leave in IP fragments: its link, or a router behind it, has a smaller MTU
 * than its segments. The first fragment alone has TCP's header, and does not say how long the
 * segment is, so the guest's flight is not known. A window computed from the known part would stay
 * at its first bytes: the flow is released instead, and what the peer acknowledges has been sent.
 */
#ifndef VCC_FRAGMENTS_H
#define VCC_FRAGMENTS_H

#include "acceptability.h"
#include "treatment.h"

/*
 * The first fragment of a segment from the guest passes; `s` has the payload that is in it. Returns
 * whether that releases the flow. A fragment of data that is known brings nothing new.
 */
VCC_INLINE bool vcc_fragment_from_guest(struct vcc_flow *f, const struct vcc_params *p,
					const struct vcc_segment *s)
{
	uint32_t end = s->seq + s->payload_bytes;

	if (!is_managed(f) || !mode_changes(p) || f->stage != STAGE_ESTABLISHED ||
	    (s->flags & (TCP_SYN | TCP_RST)) || !seq_plausible(f->snd_una, end) ||
	    !seq_after(end, f->snd_nxt))
		return false;
	note_seen(f, s);
	f->sends |= SENDS_FRAGMENTS;
	if (f->flags & FLOW_RELEASED)
		return false;
	f->flags |= FLOW_RELEASED;
	return true;
}

/* To-guest: the peer may acknowledge what has passed in fragments. */
VCC_INLINE void fragments_acked(struct vcc_flow *f, const struct vcc_segment *s)
{
	if ((f->sends & SENDS_FRAGMENTS) && (s->flags & TCP_ACK) && seq_after(s->ack, f->snd_nxt) &&
	    s->ack - f->snd_una <= SEQ_WINDOW_MAX && in_guests_window(f, s))
		f->snd_nxt = s->ack;
}

#endif
