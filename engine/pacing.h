/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pacing of windows below two segments (cc/fractional_window.h): one segment every 1 / window round
 * trips (Swift, 3.6). A shell that holds segments waits with the segment (hold_release.h). Any
 * other waits with the ACK that admits it: ACK pacing. The guest's window stays at a segment or
 * more, so the guest never depends on a later window update (law 3), and a shell that cannot delay
 * a segment leaves it with a window of one segment.
 */
#ifndef VCC_PACING_H
#define VCC_PACING_H

#include "base.h"
#include "rtt.h"
#include "cc/fractional_window.h"

/* The longest time between two segments of a paced window. */
#define SEGMENT_INTERVAL_MAX_US 1000000u

/* An ACK waits for no more than this part of the guest's RTO: the guest must not retransmit. */
#define ACK_DELAY_RTO_SHIFT 2

/* Is the window any fraction of a segment? A peer that sends delays the ACK of one (prr.h). */
VCC_INLINE bool is_fractional(const struct vcc_flow *f, const struct vcc_params *p)
{
	return has_fractions(p) && !f->peer_sends;
}

/* Do segments leave one by one, in intervals? */
VCC_INLINE bool paces(const struct vcc_flow *f, const struct vcc_params *p)
{
	return is_fractional(f, p) && is_paced_window(&f->cc);
}

/* The time until the next segment of a paced window may leave, in us. 0: now. */
VCC_INLINE uint32_t segment_interval_us(const struct vcc_flow *f, const struct vcc_params *p,
					uint32_t now_us)
{
	if (!paces(f, p))
		return 0;
	uint64_t interval_us =
	    (uint64_t)(f->srtt_us8 >> 3) * SEGMENT_1024 / fractional_window_1024(&f->cc);

	if (interval_us > SEGMENT_INTERVAL_MAX_US)
		interval_us = SEGMENT_INTERVAL_MAX_US;
	return vcc_sub_floor0((uint32_t)interval_us, elapsed_us(f->sent_us, now_us));
}

/*
 * To-guest: how long the shell delays an ACK of new data, in us. 0: not at all. Duplicate ACKs, and
 * what a guest needs to repair a loss, pass at once.
 */
VCC_INLINE uint32_t ack_delay_us(const struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, uint32_t acked_bytes)
{
	bool repairs = f->ca_state != CA_OPEN && f->ca_state != CA_CWR;

	if (!acked_bytes || repairs || s->payload_bytes || (s->flags & (TCP_FIN | TCP_RST)))
		return 0;
	return vcc_min(segment_interval_us(f, p, (uint32_t)s->now_us),
		       p->rto_min_us >> ACK_DELAY_RTO_SHIFT);
}

#endif
