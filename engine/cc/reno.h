/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* NewReno, loss-based (RFC 5681, RFC 6582). */
#ifndef VCC_CC_RENO_H
#define VCC_CC_RENO_H

#include "fractional_window.h"

/* Minimum of ssthresh (RFC 5681, 3.1). */
#define RENO_MIN_SSTHRESH_SEGS 2u

VCC_INLINE void reno_init(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	cc->cwnd_segs = initial_window_segs;
	cc->ssthresh_segs = SSTHRESH_INFINITE;
	cc->credit_bytes = 0;
}

/* Reno does not use the number of marked bytes. */
VCC_INLINE void reno_on_feedback(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	(void)cc;
	(void)ack;
}

VCC_INLINE void reno_on_ack(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	if (!ack->window_limited)
		return;
	if (cc->cwnd_segs < cc->ssthresh_segs) {
		/*
		 * Slow start by acknowledged bytes (RFC 3465), up to ssthresh. Of the credit from
		 * congestion avoidance, only the fraction of a segment counts here.
		 */
		uint32_t part_bytes = cc->credit_bytes % ack->mss_bytes;
		uint32_t grow_segs = (part_bytes + ack->acked_bytes) / ack->mss_bytes;
		uint32_t room_segs = cc->ssthresh_segs - cc->cwnd_segs;

		grow_segs = vcc_min(grow_segs, room_segs);
		cc->cwnd_segs += grow_segs;
		cc->credit_bytes += ack->acked_bytes - grow_segs * ack->mss_bytes;
		if (grow_segs < room_segs)
			return;
	} else {
		cc->credit_bytes += ack->acked_bytes;
	}
	/* Congestion avoidance: one segment per acknowledged window (RFC 5681, 3.1). */
	uint32_t window_bytes = cc->cwnd_segs * ack->mss_bytes;

	if (cc->credit_bytes >= window_bytes) {
		cc->credit_bytes -= window_bytes;
		cc->cwnd_segs++;
	}
}

VCC_INLINE void reno_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
				   const struct vcc_params *p)
{
	(void)cause;
	(void)p;
	cc->ssthresh_segs = vcc_max(cc->cwnd_segs / 2, RENO_MIN_SSTHRESH_SEGS);
	cc->credit_bytes = 0;
}

VCC_INLINE void reno_on_timeout(struct vcc_cc_state *cc)
{
	cc->ssthresh_segs = vcc_max(cc->cwnd_segs / 2, RENO_MIN_SSTHRESH_SEGS);
	cc->cwnd_segs = 1;
	cc->credit_bytes = 0;
}

VCC_INLINE void reno_on_idle(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	cc->cwnd_segs = vcc_min(cc->cwnd_segs, initial_window_segs);
	cc->credit_bytes = 0;
}

VCC_INLINE void reno_on_mss(struct vcc_cc_state *cc, uint32_t from_bytes, uint32_t to_bytes)
{
	(void)cc;
	(void)from_bytes;
	(void)to_bytes;
}

/* Growth by the treatment: in fractions, or Reno's. */
VCC_INLINE void window_on_ack(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	if (ack->fractional)
		fractional_on_ack(cc, ack);
	else
		reno_on_ack(cc, ack);
}

#endif
VCC_CC(reno, "reno", "NewReno, led by loss (RFC 5681, RFC 6582)", CC_CONTROLS, reno)
