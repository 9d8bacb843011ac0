/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* No underlay: flows are tracked and counted, nothing is changed. */
#ifndef VCC_CC_TRANSPARENT_H
#define VCC_CC_TRANSPARENT_H

#include "hooks.h"

VCC_INLINE void transparent_init(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	cc->cwnd_segs = initial_window_segs;
	cc->ssthresh_segs = SSTHRESH_INFINITE;
}

VCC_INLINE void transparent_on_feedback(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	(void)cc;
	(void)ack;
}

VCC_INLINE void transparent_on_ack(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	(void)cc;
	(void)ack;
}

VCC_INLINE void transparent_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
					  const struct vcc_params *p)
{
	(void)cc;
	(void)cause;
	(void)p;
}

VCC_INLINE void transparent_on_timeout(struct vcc_cc_state *cc)
{
	(void)cc;
}

VCC_INLINE void transparent_on_idle(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	(void)cc;
	(void)initial_window_segs;
}

VCC_INLINE void transparent_on_mss(struct vcc_cc_state *cc, uint32_t from_bytes, uint32_t to_bytes)
{
	(void)cc;
	(void)from_bytes;
	(void)to_bytes;
}

#endif
VCC_CC(transparent, "transparent", "no congestion control: connections are counted and not changed",
       0, transparent)
