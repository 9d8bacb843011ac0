/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Enforcement: the window field of segments to the guest (RFC 9293, 3.8.6; AC/DC, 3.3).
 * The peer's windows are scaled by wscale_peer, the guest's view by wscale_shown. wscale_shown is
 * never larger, so every window of the peer can be expressed to the guest.
 */
#ifndef VCC_WINDOW_H
#define VCC_WINDOW_H

#include "runt.h"

/* The largest scale (RFC 7323, 2.2). */
#define WSCALE_MAX 14u
/* The timestamps option with its padding (RFC 7323, appendix A). */
#define TIMESTAMPS_BYTES 12u
/* Exact windows may cost at most 1/8 of the MSS. */
#define EXACT_MSS_COST_SHIFT 3
/*
 * A guest that sends runts is admitted two segments at a time if it has at least so many in flight,
 * of which the next ACK comes without delay.
 */
#define DEFER_FLIGHT_SEGS 4u

/*
 * The smallest scale at which a window of max_bytes, less one unit, fits the 16-bit field. Apart
 * and counted without branches, or the verifier would follow each scale to the end of the
 * handshake; and not unrolled, which would take more stack.
 */
VCC_APART uint32_t wscale_for(uint32_t max_bytes)
{
	uint64_t scale = 0;

#pragma GCC unroll 1
	for (uint32_t less = 0; less < WSCALE_MAX; less++)
		scale += vcc_opaque((1ull << (16 + less)) - max_bytes) >> 63;
	return (uint32_t)scale;
}

/* The MSS rounded down to a multiple of the scale's unit, unless that costs too much. */
VCC_INLINE uint32_t mss_exact(uint32_t mss_bytes, uint8_t scale)
{
	uint32_t exact = mss_bytes & ~((1u << scale) - 1);

	return mss_bytes - exact > mss_bytes >> EXACT_MSS_COST_SHIFT ? mss_bytes : exact;
}

/* The peer's window field converted to the scale shown to the guest. */
VCC_INLINE uint16_t window_translate(const struct vcc_flow *f, uint16_t window)
{
	uint32_t shift = f->wscale_peer - f->wscale_shown;

	return (uint16_t)vcc_min((uint32_t)window << shift, UINT16_MAX);
}

/* Bytes in units of a scale, rounded up. */
VCC_INLINE uint32_t units_ceil(uint32_t bytes, uint8_t scale)
{
	return (bytes + (1u << scale) - 1) >> scale;
}

/*
 * Converts bytes to units of the shown scale, rounded up. Rounded down, a window of N segments
 * would have room for N - 1 whole ones, and a guest that sends only whole segments (RFC
 * 9293, 3.8.6.2.1) would never be window-limited, so its window would keep shrinking. The excess is
 * less than a unit, and stays below a segment.
 */
VCC_INLINE uint32_t window_units(const struct vcc_flow *f, uint32_t bytes)
{
	return units_ceil(bytes, f->wscale_shown);
}

/* The largest number of segments whose window, rounded up to a unit, is at most `bytes`. */
VCC_INLINE uint32_t segs_within(const struct vcc_flow *f, uint32_t bytes)
{
	return (bytes >> f->wscale_shown << f->wscale_shown) / f->mss_bytes;
}

/* Bytes from an ACK to the right edge shown to the guest, or to snd_nxt if that is higher. */
VCC_INLINE uint32_t held_bytes(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return seq_distance(s->ack, seq_max(f->right_edge, f->snd_nxt));
}

/* held_bytes() as a window field; never 0. */
VCC_INLINE uint32_t window_held(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return vcc_max(window_units(f, held_bytes(f, s)), 1);
}

/*
 * held_bytes() as the window field of an old ACK, rounded down: if the guest missed the newer ACKs,
 * this one must not move its right edge further. Never 0.
 */
VCC_INLINE uint32_t window_old(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return vcc_max(held_bytes(f, s) >> f->wscale_shown, 1);
}

/*
 * The window field for a guest that sends runts, as far as its segments are concerned: what it may
 * send ends before the border of a segment. Nothing but a whole segment makes Linux send, so less
 * than one behind the flight is harmless. Out of line, because it is rare.
 */
VCC_APART uint32_t window_before_border(const struct vcc_flow *f, uint32_t wanted_bytes)
{
	if (!f || !f->mss_bytes)
		return 0;
	uint32_t flight = flight_bytes(f);
	uint32_t room_bytes = vcc_sub_floor0(wanted_bytes, flight);
	/* Runts in flight take no segment's place. */
	uint32_t segs = (room_bytes + (f->mss_bytes >> RUNT_SHIFT)) / f->mss_bytes;
	uint32_t one_bytes = flight + f->mss_bytes;
	uint32_t border = vcc_min(flight + segs * f->mss_bytes, vcc_max(wanted_bytes, one_bytes));

	if (!segs)
		return 0;
	if (f->fills == FILLS_ONCE && part_in_flight(f))
		return window_units(f, border);
	if (segs > 1)
		return border >> f->wscale_shown;
	/* It waits for the next ACK, which admits two. */
	if (flight + (f->mss_bytes >> RUNT_SHIFT) >= DEFER_FLIGHT_SEGS * f->mss_bytes)
		return 0;
	return window_units(f, one_bytes);
}

/*
 * The window field for `granted_bytes` beyond snd_una. Laws in order of precedence: never advertise
 * more than the receiver did (law 1); to a guest without SACK, a duplicate ACK repeats the window
 * of the ACK before it (law 4); the right edge never moves left (law 2); the window is never below
 * the floor (law 3).
 */
VCC_INLINE uint16_t window_field(const struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, const struct ack_news *news,
				 uint32_t granted_bytes)
{
	uint16_t offered = window_translate(f, s->window);
	/*
	 * Linux limits its segments to half the largest window it has seen
	 * (tcp_bound_to_half_wnd), so the first window has at least two segments.
	 */
	uint32_t least_segs = (f->flags & FLOW_WINDOW_SHOWN) ? 1 : 2;
	uint32_t floor_bytes = vcc_max(p->window_floor_segs, least_segs) * f->mss_bytes;
	uint32_t wanted_bytes = vcc_max(granted_bytes, floor_bytes);
	/* A pool grants bytes, not segments. */
	bool by_border = sends_runts(f) && leaves_rests(f) && !p->pool_weight;
	uint32_t grant =
	    by_border ? window_before_border(f, wanted_bytes) : window_units(f, wanted_bytes);
	uint32_t field = vcc_max(grant, window_held(f, s));

	/* Law 4: a guest with SACK is shown what PRR or limited transmit grants. */
	bool by_blocks = (f->flags & FLOW_SACK) && (s->options & OPT_SACK);

	if (news->duplicate && f->window_shown && !by_blocks)
		field = f->window_shown;
	return (uint16_t)vcc_min(field, offered);
}

/* Records the window shown to the guest. */
VCC_INLINE void window_note(struct vcc_flow *f, const struct vcc_segment *s, uint16_t field)
{
	f->right_edge = seq_max(f->right_edge, s->ack + ((uint32_t)field << f->wscale_shown));
	f->window_shown = field;
	f->window_received = s->window;
	f->flags |= FLOW_WINDOW_SHOWN;
}

#endif
