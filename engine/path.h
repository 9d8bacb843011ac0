/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What acknowledgements tell of the path, for congestion controls that are led by delay: the
 * fabric's RTT without what an end delays, and the rate of delivery.
 *
 * One segment is timed at a time (rtt.h), so each round trip has one sample. TSval would time each
 * ACK, but its unit of a millisecond (RFC 7323, 5.4; Linux) is many round trips of a fabric.
 */
#ifndef VCC_PATH_H
#define VCC_PATH_H

#include "delay.h"
#include "prr.h"

/* Half of the time for which the least RTT counts (Linux: tcp_min_rtt_wlen, 300 s). */
#define RTT_MIN_HALF_US 150000000u

/*
 * The least of the current half and of the one before. Whatever fills the queues for longer is
 * taken for the path's own.
 */
VCC_INLINE void path_least(struct vcc_path *path, uint32_t now_us)
{
	if (!path->rtt_min_us || elapsed_us(path->least_since_us, now_us) >= RTT_MIN_HALF_US) {
		path->rtt_min_us = path->rtt_min_us ? path->rtt_least_us : path->rtt_us;
		path->rtt_least_us = path->rtt_us;
		path->least_since_us = now_us;
	}
	path->rtt_least_us = vcc_min(path->rtt_least_us, path->rtt_us);
	path->rtt_min_us = vcc_min(path->rtt_min_us, path->rtt_us);
}

/*
 * The peer's answer to the guest's SYN or SYN-ACK, unless that was sent again (Karn's algorithm).
 * An end answers at once, and no data is in the way.
 */
VCC_INLINE void path_handshake(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t rtt_us = rtt_of_timed(f, s->ack, (uint32_t)s->now_us);

	if (!rtt_us)
		return;
	f->cc.path.rtt_us = rtt_us;
	path_least(&f->cc.path, (uint32_t)s->now_us);
}

/*
 * The rate of what was acknowledged while the timed segment was in flight
 * (draft-cheng-iccrg-delivery-rate-estimation, 2).
 */
VCC_INLINE uint32_t rate_bytes_per_ms(uint32_t bytes, uint32_t rtt_us)
{
	uint64_t rate = bytes * 1000ull / rtt_us;

	return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

/*
 * A sample of the RTT. Where delays are not measured, an end's delay is part of it. Where they are,
 * an ACK that comes far later than usual is no sample of the fabric's delay unless it cannot have
 * been delayed; one that a queue has suddenly delayed is a sample of the path. Out of line, because
 * the callers have no stack to spare.
 */
VCC_APART int path_sample(struct vcc_flow *f, const struct vcc_params *p,
			  const struct vcc_segment *s, struct ack_news *news)
{
	if (!f || !p || !s || !news || !news->rtt_us)
		return -1;
	struct vcc_path *path = &f->cc.path;
	bool prompt = leaves_out_segment(f, s);
	uint32_t rtt_us = news->rtt_us;

	if (p->delays)
		news->rtt_us = fabric_answered(f, s, news);
	if (!news->rtt_us && !prompt)
		return 0;
	news->timed = true;
	path->rtt_us = rtt_us;
	path_least(path, (uint32_t)s->now_us);
	path->rate_bytes_per_ms = rate_bytes_per_ms(f->snd_una - f->rtt_una, rtt_us);
	path->target_us = p->rtt_target_us;
	path->floor_segs = reduction_floor_segs(f, p);
	return 0;
}

/* To-guest: an acknowledgement. */
VCC_INLINE void path_measure(struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, struct ack_news *news)
{
	if (news->rtt_us)
		path_sample(f, p, s, news);
}

#endif
