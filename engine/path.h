/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What acknowledgements show of the path, for congestion controls that are led by delay: its RTT,
 * by ACKs that the peer has hardly delayed (is_path_sample), and the rate of delivery.
 *
 * One segment is timed at a time (rtt.h), so each round trip has one sample. TSval would time each
 * ACK, but its unit of a millisecond (RFC 7323, 5.4; Linux) is many round trips of a fabric.
 */
#ifndef VCC_PATH_H
#define VCC_PATH_H

#include "delay.h"
#include "prr.h"

/* Half of the time for which the least RTT is valid (Linux: tcp_min_rtt_wlen, 300 s). */
#define RTT_MIN_HALF_US 150000000u

/*
 * The least of the current half and of the one before. What fills the queues for longer is mistaken
 * for the path's own delay.
 */
VCC_INLINE void path_least(struct vcc_path *path, uint32_t now_us)
{
	uint32_t age_us = elapsed_us(path->least_since_us, now_us);
	bool is_first = !path->rtt_min_us || age_us >= 2 * RTT_MIN_HALF_US;

	if (is_first || age_us >= RTT_MIN_HALF_US) {
		path->rtt_min_us = is_first ? path->rtt_us : path->rtt_least_us;
		path->rtt_least_us = path->rtt_us;
		path->least_since_us = now_us;
	}
	path->rtt_least_us = vcc_min(path->rtt_least_us, path->rtt_us);
	path->rtt_min_us = vcc_min(path->rtt_min_us, path->rtt_us);
}

/* The operator's settings of an underlay, for its hooks. */
VCC_INLINE void path_wanted(struct vcc_flow *f, const struct vcc_params *p)
{
	f->cc.path.target_us = p->rtt_target_us;
	f->cc.floor_segs = (uint16_t)vcc_min(reduction_floor_segs(f, p), UINT16_MAX);
}

/*
 * The peer's answer to the guest's SYN or SYN-ACK, unless that was sent again (Karn's algorithm).
 * No data is in the way, and most ends answer at once. It is the first sample of the RTO, too
 * (RFC 6298, 2.2; Linux: tcp_synack_rtt_meas): else a first flight of which all is lost, as of many
 * servers that answer at once, would wait for a second.
 */
VCC_INLINE void path_handshake(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s)
{
	uint32_t rtt_us = rtt_sample(f, s->ack, (uint32_t)s->now_us);

	path_wanted(f, p);
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
 * Does the ACK show how long the path is? Where delays are measured, one of a single segment does
 * only if it cannot have been delayed, or if it came sooner than the one before: a peer's
 * application may take a millisecond to answer, which is many round trips of a fabric. A window of
 * one segment has no other ACKs, and cannot be reduced by them.
 */
VCC_INLINE bool is_path_sample(const struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, const struct ack_news *news,
			       uint32_t fabric_us)
{
	if (!p->delays || leaves_out_segment(f, s))
		return true;
	if ((f->sends & SENDS_LATE) && seq_after(s->ack, f->late_seq))
		return false;
	return news->acked_bytes >= 2u * f->mss_bytes || !f->cc.path.rtt_us ||
	       news->rtt_us < f->cc.path.rtt_us || (f->cc.cwnd_segs == 1 && fabric_us);
}

/* A sample of the RTT. Out of line, because the callers have no stack to spare. */
VCC_APART int path_sample(struct vcc_flow *f, const struct vcc_params *p,
			  const struct vcc_segment *s, struct ack_news *news)
{
	if (!f || !p || !s || !news || !news->rtt_us)
		return -1;
	struct vcc_path *path = &f->cc.path;
	uint32_t rtt_us = news->rtt_us;
	uint32_t fabric_us = p->delays ? fabric_answered(f, s, news) : 0;

	path_wanted(f, p);
	news->timed = is_path_sample(f, p, s, news, fabric_us);
	news->rtt_us = fabric_us;
	if (!news->timed)
		return 0;
	path->rtt_us = rtt_us;
	path_least(path, (uint32_t)s->now_us);
	path->rate_bytes_per_ms = rate_bytes_per_ms(f->snd_una - f->rtt_una, rtt_us);
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
