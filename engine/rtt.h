/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RTT and RTO (RFC 6298). One segment is timed at a time. */
#ifndef VCC_RTT_H
#define VCC_RTT_H

#include "seq.h"
#include "vcc.h"

/* RTO before the first sample (RFC 6298, 2.1). */
#define RTO_INITIAL_US	1000000u
#define RTO_MAX_US	60000000u
#define RTO_BACKOFF_MAX 6u
/* A larger sample is caused by a clock jump, not by the path. */
#define RTT_MAX_US	  30000000u
#define CLOCK_SKEW_MAX_US 1000000u

/* Time from `since_us` to `now_us`; 0 if `since_us` is ahead by the skew between CPU clocks. */
VCC_INLINE uint32_t elapsed_us(uint32_t since_us, uint32_t now_us)
{
	return since_us - now_us < CLOCK_SKEW_MAX_US ? 0 : now_us - since_us;
}

/* Starts timing a segment that ends at `end`, unless another one is being timed. */
VCC_INLINE void rtt_start(struct vcc_flow *f, uint32_t end, uint32_t now_us)
{
	if (f->flags & FLOW_RTT_TIMING)
		return;
	f->flags |= FLOW_RTT_TIMING;
	f->rtt_seq = end;
	f->rtt_sent_us = now_us;
	f->rtt_una = f->snd_una;
}

/* Karn's algorithm (RFC 6298, 3): no sample from a retransmitted segment. */
VCC_INLINE void rtt_cancel(struct vcc_flow *f)
{
	f->flags &= ~(uint32_t)FLOW_RTT_TIMING;
}

/* Does `ack` cover the timed segment, if there is one? */
VCC_INLINE bool ends_rtt(const struct vcc_flow *f, uint32_t ack)
{
	return (f->flags & FLOW_RTT_TIMING) && !seq_before(ack, f->rtt_seq);
}

/* The RTT of the timed segment in us if `ack` covers it; 0: no sample. */
VCC_INLINE uint32_t rtt_of_timed(struct vcc_flow *f, uint32_t ack, uint32_t now_us)
{
	if (!ends_rtt(f, ack))
		return 0;
	rtt_cancel(f);
	uint32_t rtt_us = elapsed_us(f->rtt_sent_us, now_us);

	return rtt_us <= RTT_MAX_US ? rtt_us : 0;
}

/* Takes a sample if `ack` covers the timed segment. Returns it in us, or 0. */
VCC_INLINE uint32_t rtt_sample(struct vcc_flow *f, uint32_t ack, uint32_t now_us)
{
	uint32_t rtt_us = rtt_of_timed(f, ack, now_us);

	if (!rtt_us)
		return 0;
	if (!f->srtt_us8) { /* RFC 6298, 2.2 */
		f->srtt_us8 = rtt_us << 3;
		f->rttvar_us4 = rtt_us << 1;
		return rtt_us;
	}
	/* RFC 6298, 2.3, with alpha 1/8 and beta 1/4. */
	uint32_t srtt_us = f->srtt_us8 >> 3;
	uint32_t error_us = srtt_us > rtt_us ? srtt_us - rtt_us : rtt_us - srtt_us;

	f->rttvar_us4 += error_us - (f->rttvar_us4 >> 2);
	f->srtt_us8 += rtt_us - srtt_us;
	return rtt_us;
}

/*
 * The modelled sender's RTO. As in Linux, the minimum applies to the variance term, so that a path
 * of stable delay keeps a margin above its RTT.
 */
VCC_INLINE uint32_t rto_us(const struct vcc_flow *f, uint32_t rto_min_us)
{
	uint32_t rto = RTO_INITIAL_US;

	if (f->srtt_us8)
		rto = (f->srtt_us8 >> 3) + vcc_max(f->rttvar_us4, rto_min_us);
	rto = vcc_min(rto, RTO_MAX_US);
	return vcc_min(rto << vcc_min(f->rto_backoff, RTO_BACKOFF_MAX), RTO_MAX_US);
}

/* No RTO is shorter, whatever was measured. */
VCC_INLINE uint32_t rto_least_us(const struct vcc_params *p)
{
	return vcc_min(p->rto_min_us, RTO_INITIAL_US);
}

#endif
