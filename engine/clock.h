/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which usual segments need the exact time. Reading the clock is a fourth of what such a segment
 * costs, and most only compare it with timers of many ticks. A shell may give these the time of the
 * kernel's last tick (vcc_segment.at_tick). Exact are both ends of a sample of the RTT, the first
 * question to the guest in each tick, and its answer; see delay.h for the others.
 */
#ifndef VCC_CLOCK_H
#define VCC_CLOCK_H

#include "delay.h"
#include "pacing.h"
#include "rcv_rtt.h"

/* The modelled sender's timers are so many ticks long, or its segments need the exact time. */
#define TIMER_TICKS_MIN 16u

/* A loaded underlay may use the time for any purpose (cc/loaded.h). */
VCC_INLINE bool bears_ticks(const struct vcc_flow *f, const struct vcc_params *p)
{
	return rto_least_us(p) >= TIMER_TICKS_MIN * TICK_MAX_US && f->underlay < UNDERLAY_LOADED;
}

/* From-guest: does the segment answer what the guest was asked, and is the wait a sample? */
VCC_INLINE bool ends_wait(const struct vcc_flow *f, const struct vcc_segment *s)
{
	bool answers = f->asked == ASKED_DATA ? !!s->payload_bytes
					      : f->asked && !seq_before(s->ack, f->asked_seq);

	return answers && !is_untimed(f, (uint32_t)s->now_us);
}

/*
 * From-guest, is_predicted_from_guest(), with the time of the last tick. Data shorter than a
 * segment may come apart from the one that is timed (fabric_asked()).
 */
VCC_INLINE bool needs_time_from_guest(const struct vcc_flow *f, const struct vcc_params *p,
				      const struct vcc_segment *s)
{
	bool may_be_late = s->payload_bytes < f->mss_bytes && !(f->sends & SENDS_LATE);

	/* A pace is shorter than a tick; to-guest, no segment of a paced flow is usual. */
	if (!bears_ticks(f, p) || paces(f, p) || ends_wait(f, s) || begins_rcv_rtt(f, s))
		return true;
	return s->payload_bytes && (!(f->flags & FLOW_RTT_TIMING) || may_be_late);
}

/*
 * To-guest: may delay_to_guest() ask the guest something? By its data, or an ACK that admits some:
 * no more than twice what is acknowledged, in slow start, and a unit by rounding.
 */
VCC_INLINE bool may_ask_guest(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t edge = f->right_edge + 2 * (s->ack - f->snd_una) + (1u << f->wscale_shown);

	return s->payload_bytes ||
	       ((f->sends & SENDS_MORE) && !seq_after(f->snd_nxt + f->mss_bytes, edge));
}

/*
 * To-guest: does the segment begin a wait that is timed? The first of each tick does, and what the
 * guest has not answered when the next segment comes.
 */
VCC_INLINE bool begins_wait(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t now_us = (uint32_t)s->now_us;

	if (f->asked == ASKED_NOTHING)
		return elapsed_us(f->asked_us, now_us) && may_ask_guest(f, s);
	return f->asked == ASKED_ANSWER ? !(f->sends & ASKED_AT_TICK) : is_untimed(f, now_us);
}

/* To-guest, is_predicted_to_guest(), with the time of the last tick. */
VCC_INLINE bool needs_time_to_guest(const struct vcc_flow *f, const struct vcc_params *p,
				    const struct vcc_segment *s)
{
	return !bears_ticks(f, p) || begins_wait(f, s) || ends_rcv_rtt(f, s) || ends_rtt(f, s->ack);
}

#endif
