/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runts. A window ends at a multiple of the scale's unit beyond the acknowledgement. If the guest's
 * segments are no multiple of the unit, a rest of less than a unit is left behind the last one. A
 * sender that avoids the silly window syndrome leaves it (RFC 9293, 3.8.6.2.1). Linux sends it
 * behind a whole segment: always with TCP_NODELAY, else unless another part of a segment is in
 * flight (tcp_nagle_check, tcp_minshall_check). Each runt is a packet more that may be marked. A
 * guest that sends them is therefore shown a window that ends less than a unit before the border of
 * a segment (window.h): its last segment is shorter by that.
 */
#ifndef VCC_RUNT_H
#define VCC_RUNT_H

#include "mss.h"

/* May a window end less than a unit behind a segment, and is that a runt? */
VCC_INLINE bool leaves_rests(const struct vcc_flow *f)
{
	uint32_t unit_bytes = 1u << f->wscale_shown;

	return (f->mss_bytes & (unit_bytes - 1)) &&
	       unit_bytes <= (uint32_t)f->mss_bytes >> RUNT_SHIFT;
}

/* Does the guest send runts, but none alone? */
VCC_INLINE bool sends_runts(const struct vcc_flow *f)
{
	return f->fills == FILLS_ONCE || f->fills == FILLS_ALWAYS;
}

/* Is part of a segment in flight? The peer acknowledges at the ends of segments. */
VCC_INLINE bool part_in_flight(const struct vcc_flow *f)
{
	return flight_bytes(f) % f->mss_bytes;
}

/* From-guest: does the segment end in a runt, and with its window? */
VCC_INLINE bool ends_in_runt(const struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!leaves_rests(f) || s->seq + s->payload_bytes != f->right_edge)
		return false;
	uint32_t runt_bytes = s->seg_bytes ? s->payload_bytes % s->seg_bytes : s->payload_bytes;

	return runt_bytes && !(runt_bytes >> f->wscale_shown);
}

/* From-guest: what runts show of the guest. Must be called before the segment is tracked. */
VCC_INLINE void runt_from_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->seq != f->snd_nxt || !ends_in_runt(f, s))
		return;
	/* It would send them before the border, too. */
	if (f->fills == FILLS_ALONE || (!s->seg_bytes && !f->segs_since_ack))
		f->fills = FILLS_ALONE;
	else if (f->fills == FILLS_SEGMENTS)
		f->fills = FILLS_ONCE;
	else if (part_in_flight(f))
		f->fills = FILLS_ALWAYS;
}

/*
 * To-guest: has the guest left the room for a segment that is shorter by less than a unit? Then it
 * sends whole ones alone, or has no more data. The next runt shows which.
 */
VCC_INLINE void runt_unsent(struct vcc_flow *f)
{
	uint32_t short_bytes = f->mss_bytes - (f->right_edge - f->snd_nxt);

	if (sends_runts(f) && short_bytes && !(short_bytes >> f->wscale_shown) &&
	    (f->fills == FILLS_ALWAYS || !part_in_flight(f)))
		f->fills = FILLS_SEGMENTS;
}

#endif
