/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Window cap: an upper limit, as Linux's snd_cwnd_clamp (AC/DC, 3.4). */
#ifndef VCC_CAP_H
#define VCC_CAP_H

#include "window.h"

/* `granted_segs`, limited by the cap; at least 1. */
VCC_INLINE uint32_t cap_segs(const struct vcc_flow *f, const struct vcc_params *p,
			     uint32_t granted_segs)
{
	if (!p->window_cap_bytes && !p->rate_cap_bytes_per_ms)
		return granted_segs;
	uint64_t cap_bytes = p->window_cap_bytes ? p->window_cap_bytes : UINT32_MAX;

	if (p->rate_cap_bytes_per_ms && f->srtt_us8) {
		uint64_t by_rate = (uint64_t)p->rate_cap_bytes_per_ms * (f->srtt_us8 >> 3) / 1000;

		cap_bytes = by_rate < cap_bytes ? by_rate : cap_bytes;
	}
	return vcc_min(granted_segs, vcc_max(segs_within(f, (uint32_t)cap_bytes), 1));
}

#endif
