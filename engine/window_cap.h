/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Window cap: an upper limit, as Linux's snd_cwnd_clamp (AC/DC, 3.4). */
#ifndef VCC_WINDOW_CAP_H
#define VCC_WINDOW_CAP_H

#include "pacing.h"
#include "treatment.h"
#include "window.h"

/* The cap in bytes; UINT32_MAX: none. */
VCC_INLINE uint32_t cap_bytes(const struct vcc_flow *f, const struct vcc_params *p)
{
	uint64_t cap = p->window_cap_bytes ? p->window_cap_bytes : UINT32_MAX;

	if (p->rate_cap_bytes_per_ms && f->srtt_us8) {
		uint64_t by_rate = (uint64_t)p->rate_cap_bytes_per_ms * (f->srtt_us8 >> 3) / 1000;

		cap = by_rate < cap ? by_rate : cap;
	}
	return (uint32_t)cap;
}

/* `granted_segs`, limited by the cap; at least 1. */
VCC_INLINE uint32_t cap_segs(const struct vcc_flow *f, const struct vcc_params *p,
			     uint32_t granted_segs)
{
	if (!p->window_cap_bytes && !p->rate_cap_bytes_per_ms)
		return granted_segs;
	return vcc_min(granted_segs, vcc_max(segs_within(f, cap_bytes(f, p)), 1));
}

/* The underlay's window in segments. The pace sees to it that all of the last is not used. */
VCC_INLINE uint32_t window_segs(const struct vcc_flow *f, const struct vcc_params *p)
{
	return f->cc.cwnd_segs + (paces(f, p) && f->cc.part_1024 > 0);
}

/* Does the treatment bind the first flight, which is sent before the first ACK shows a window? */
VCC_INLINE bool binds_first_flight(const struct vcc_flow *f, const struct vcc_params *p)
{
	return (p->police || p->window_cap_bytes || p->rate_cap_bytes_per_ms) && is_controlled(f) &&
	       acts_by_window(f, p);
}

/*
 * The first flight, in bytes: the underlay's initial window, by the cap, in segments of `mss_bytes`
 * (not 0). At least two of them, as in window_field(), and no more than fits an unscaled window.
 */
VCC_INLINE uint32_t first_flight_bytes(const struct vcc_flow *f, const struct vcc_params *p,
				       uint32_t mss_bytes)
{
	uint32_t segs = vcc_max(p->initial_window_segs, 1);

	segs = vcc_min(segs, cap_bytes(f, p) / mss_bytes);
	segs = vcc_max(segs, vcc_max(p->window_floor_segs, 2));
	return vcc_min(segs * mss_bytes, UINT16_MAX);
}

#endif
