/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Enforcement: the window field of what the guest receives (RFC 9293, 3.8.6; AC/DC, 3.3).
 * Scales: the peer's windows count in wscale_peer, what the guest sees in wscale_shown, which is
 * never the larger one, so that every window of the peer can be said to the guest.
 */
#ifndef VCC_WINDOW_H
#define VCC_WINDOW_H

#include "track.h"

/* RFC 7323, 2.2. */
#define WSCALE_MAX 14u
/* RFC 7323, appendix A: the timestamps option with its padding. */
#define TIMESTAMPS_BYTES 12u
/* An exact window may cost so much of a segment: an eighth. */
#define EXACT_MSS_COST_SHIFT 3

/* The smallest scale at which a window of max_bytes fits the 16-bit field, but for one unit. */
VCC_INLINE uint8_t wscale_for(uint32_t max_bytes)
{
	uint8_t scale = 0;

	while (scale < WSCALE_MAX && (1u << (16 + scale)) < max_bytes)
		scale++;
	return scale;
}

/* An MSS whose windows are exact at `scale`, whole units for whole segments, if that is cheap. */
VCC_INLINE uint32_t mss_exact(uint32_t mss_bytes, uint8_t scale)
{
	uint32_t exact = mss_bytes & ~((1u << scale) - 1);

	return mss_bytes - exact > mss_bytes >> EXACT_MSS_COST_SHIFT ? mss_bytes : exact;
}

/* The peer's window as the guest would read it, were it not limited by us. */
VCC_INLINE uint16_t window_translate(const struct vcc_flow *f, uint16_t window)
{
	uint32_t shift = f->wscale_peer - f->wscale_shown;

	return (uint16_t)vcc_min((uint32_t)window << shift, UINT16_MAX);
}

/*
 * `bytes` in units of the scale that the guest was told, rounded up. Rounded down, a window of N
 * segments has room for N - 1 where the guest sends whole ones only (RFC 9293, 3.8.6.2.1), and who
 * never fills his window is never limited by it: it would shrink for ever. What is too much is less
 * than a unit, and stays below a segment.
 */
VCC_INLINE uint32_t window_units(const struct vcc_flow *f, uint32_t bytes)
{
	return (bytes + (1u << f->wscale_shown) - 1) >> f->wscale_shown;
}

/* Whole segments whose window, rounded up, is within `bytes`. */
VCC_INLINE uint32_t segs_within(const struct vcc_flow *f, uint32_t bytes)
{
	return (bytes >> f->wscale_shown << f->wscale_shown) / f->mss_bytes;
}

/* From an ACK to the right edge that the guest has seen, or to the end of its flight. */
VCC_INLINE uint32_t held_bytes(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return seq_distance(s->ack, seq_max(f->right_edge, f->snd_nxt));
}

/* How the guest is told of that; never 0. */
VCC_INLINE uint32_t window_held(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return vcc_max(window_units(f, held_bytes(f, s)), 1);
}

/* The same on an old ACK: to who has missed the newer ones it is news, and must not be more. */
VCC_INLINE uint32_t window_old(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return vcc_max(held_bytes(f, s) >> f->wscale_shown, 1);
}

/*
 * The field to show for a window of `granted_bytes` beyond snd_una. Laws, strongest first:
 * never more than the receiver offers (1); to a guest without SACK a duplicate ACK repeats the
 * window before it (4); never less than what was shown or is in flight (2); never below the floor
 * (3).
 */
VCC_INLINE uint16_t window_field(const struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, const struct ack_news *news,
				 uint32_t granted_bytes)
{
	uint16_t offered = window_translate(f, s->window);
	/*
	 * Linux cuts its segments to half of the largest window that it has seen
	 * (tcp_bound_to_half_wnd), so the first is of two at the least.
	 */
	uint32_t least_segs = (f->flags & FLOW_WINDOW_SHOWN) ? 1 : 2;
	uint32_t floor_bytes = vcc_max(p->window_floor_segs, least_segs) * f->mss_bytes;
	uint32_t grant = window_units(f, vcc_max(granted_bytes, floor_bytes));
	uint32_t field = vcc_max(grant, window_held(f, s));

	/* A guest with SACK counts by the blocks: it is shown what PRR or limited transmit grants.
	 */
	bool by_blocks = (f->flags & FLOW_SACK) && (s->options & OPT_SACK);

	if (news->duplicate && f->window_shown && !by_blocks)
		field = f->window_shown;
	return (uint16_t)vcc_min(field, offered);
}

/* Remember what the guest was given. */
VCC_INLINE void window_note(struct vcc_flow *f, const struct vcc_segment *s, uint16_t field)
{
	f->right_edge = seq_max(f->right_edge, s->ack + ((uint32_t)field << f->wscale_shown));
	f->window_shown = field;
	f->window_received = s->window;
	f->flags |= FLOW_WINDOW_SHOWN;
}

#endif
