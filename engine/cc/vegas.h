/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
 * Internet", 1995) with the rules of Linux's tcp_vegas.c: from the least RTT of a round trip it
 * derives how many of its segments wait in queues, and keeps alpha to beta of them there.
 *
 * Linux wants three samples in a round trip, because one may be of a delayed ACK; here an ACK that
 * may be is no sample (path.h), so one is enough. A window that the guest does not use in full does
 * not grow (RFC 7661). baseRTT is not the handshake's, which is of segments without payload: the
 * time that a whole burst takes would count as a queue. It is forgotten after an idle period, in
 * Linux whenever nothing is in flight.
 */
#ifndef VCC_CC_VEGAS_H
#define VCC_CC_VEGAS_H

#include "../seq.h"
#include "reno.h"

/* Segments that wait (Linux's defaults): fewer and the window grows, more and it shrinks. */
#define VEGAS_ALPHA_SEGS 2u
#define VEGAS_BETA_SEGS	 4u
/* More than this end slow start. */
#define VEGAS_GAMMA_SEGS 1u
#define VEGAS_MIN_SEGS	 2u

/* Vegas's state, as indices of cc->own. */
enum vegas_own {
	VEGAS_BASE_US,	/* baseRTT: the least RTT since the connection began or was idle */
	VEGAS_LEAST_US, /* minRTT: the least of this round trip; 0: no sample yet */
	VEGAS_END,	/* beg_snd_nxt: the round trip ends when this is acknowledged */
	VEGAS_HAS_END,	/* bool */
};

VCC_INLINE void vegas_init(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_init(cc, initial_window_segs);
	cc->own[VEGAS_BASE_US] = 0;
	cc->own[VEGAS_LEAST_US] = 0;
	cc->own[VEGAS_END] = 0;
	cc->own[VEGAS_HAS_END] = 0;
}

#define vegas_on_feedback reno_on_feedback

VCC_INLINE void vegas_sample(struct vcc_cc_state *cc, uint32_t rtt_us)
{
	if (!cc->own[VEGAS_BASE_US] || rtt_us < cc->own[VEGAS_BASE_US])
		cc->own[VEGAS_BASE_US] = rtt_us;
	if (!cc->own[VEGAS_LEAST_US] || rtt_us < cc->own[VEGAS_LEAST_US])
		cc->own[VEGAS_LEAST_US] = rtt_us;
}

/* The window of the next round trip (Linux: tcp_vegas_cong_avoid). */
VCC_INLINE void vegas_adjust(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
			     uint32_t base_us, uint32_t least_us)
{
	uint64_t cwnd_segs = cc->cwnd_segs;
	/* The window that would leave no segment waiting, and how many do. */
	uint32_t target_segs = (uint32_t)(cwnd_segs * base_us / least_us);
	uint64_t diff_segs = cwnd_segs * (least_us - base_us) / base_us;

	if (cc->cwnd_segs < cc->ssthresh_segs) {
		if (diff_segs <= VEGAS_GAMMA_SEGS) {
			reno_on_ack(cc, ack);
			return;
		}
		cc->cwnd_segs = vcc_min(cc->cwnd_segs, target_segs + 1);
		cc->ssthresh_segs = vcc_min(cc->ssthresh_segs, vcc_max(cc->cwnd_segs, 1));
	} else if (diff_segs > VEGAS_BETA_SEGS) {
		cc->cwnd_segs--;
		cc->ssthresh_segs = vcc_min(cc->ssthresh_segs, vcc_max(cc->cwnd_segs, 1));
	} else if (diff_segs < VEGAS_ALPHA_SEGS && ack->window_limited) {
		cc->cwnd_segs++;
	}
	cc->cwnd_segs = vcc_max(cc->cwnd_segs, VEGAS_MIN_SEGS);
	/* Linux: tcp_current_ssthresh(). */
	cc->ssthresh_segs = vcc_max(cc->ssthresh_segs, cc->cwnd_segs / 2 + cc->cwnd_segs / 4);
}

VCC_INLINE void vegas_on_ack(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack)
{
	if (ack->timed)
		vegas_sample(cc, cc->path.rtt_us);
	if (cc->own[VEGAS_HAS_END] && !seq_after(ack->snd_una, cc->own[VEGAS_END])) {
		if (cc->cwnd_segs < cc->ssthresh_segs)
			reno_on_ack(cc, ack);
		return;
	}
	/* The first round trip, or the first after a reduction, has only begun. */
	uint32_t least_us = cc->own[VEGAS_HAS_END] ? cc->own[VEGAS_LEAST_US] : 0;
	uint32_t base_us = cc->own[VEGAS_BASE_US];

	cc->own[VEGAS_END] = ack->snd_nxt;
	cc->own[VEGAS_HAS_END] = 1;
	cc->own[VEGAS_LEAST_US] = 0;
	if (base_us && least_us >= base_us)
		vegas_adjust(cc, ack, base_us, least_us);
	else
		reno_on_ack(cc, ack);
}

/* Samples from before a reduction say nothing about the time after it (Linux: vegas_enable). */
VCC_INLINE void vegas_round_forget(struct vcc_cc_state *cc)
{
	cc->own[VEGAS_LEAST_US] = 0;
	cc->own[VEGAS_HAS_END] = 0;
}

VCC_INLINE void vegas_on_congestion(struct vcc_cc_state *cc, enum vcc_congestion cause,
				    const struct vcc_params *p)
{
	reno_on_congestion(cc, cause, p);
	vegas_round_forget(cc);
}

VCC_INLINE void vegas_on_timeout(struct vcc_cc_state *cc)
{
	reno_on_timeout(cc);
	vegas_round_forget(cc);
}

VCC_INLINE void vegas_on_idle(struct vcc_cc_state *cc, uint32_t initial_window_segs)
{
	reno_on_idle(cc, initial_window_segs);
	vegas_round_forget(cc);
	cc->own[VEGAS_BASE_US] = 0;
}

#define vegas_on_mss reno_on_mss

#endif
VCC_CC(vegas, "vegas", "Vegas, led by delay (Brakmo and Peterson, 1995)", CC_CONTROLS | CC_DELAY,
       vegas)
