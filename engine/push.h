/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets PSH where a native sender with the underlay's cwnd would.
 *
 * Linux sets PSH on the last segment of a burst, and acknowledges a segment with PSH at once
 * instead of delaying the ACK. A native sender's burst is at most half its cwnd. A guest limited by
 * its receive window bursts the whole window, gets its ACKs sooner and takes 1.2 to 1.3 times its
 * share (measured). PSH therefore goes where bursts of max(cwnd / 2, 1) segments would end.
 */
#ifndef VCC_PUSH_H
#define VCC_PUSH_H

#include "window_cap.h"
#include "runt.h"

/*
 * Did the guest set PSH because its burst ended at the window? If the window has room for another
 * segment, or if the segment is short, PSH marks the end of the application's data (RFC
 * 9293, 3.9.1, MUST-61), and a native sender would set it too.
 */
VCC_INLINE bool push_is_bursts(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t left_bytes = seq_distance(s->seq + s->payload_bytes, f->right_edge);
	uint32_t last_bytes = s->payload_bytes % cut_bytes(s);
	uint32_t short_bytes = last_bytes ? cut_bytes(s) - last_bytes : 0;
	/* A window that ends before the border of a segment (runt.h). */
	bool whole = sends_runts(f) ? !(short_bytes >> f->wscale_shown) : !short_bytes;

	return left_bytes < f->mss_bytes && whole && !is_cut_shorter(f, s);
}

/* The flags for a data segment from the guest. Counts the segment towards the burst. */
VCC_INLINE uint16_t push_flags(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s)
{
	uint32_t cwnd_segs = cap_segs(f, p, f->cc.cwnd_segs);
	uint32_t burst_segs = vcc_max(cwnd_segs / 2, 1);
	uint32_t segs = 1;

	/* A super-segment's PSH applies to its last segment (Linux: tcp_gso_segment). */
	if (s->seg_bytes)
		segs = (s->payload_bytes + s->seg_bytes - 1) / s->seg_bytes;
	f->segs_since_ack = (uint16_t)vcc_min(f->segs_since_ack + segs, UINT16_MAX);

	uint32_t place = (f->segs_since_ack - 1) % burst_segs + 1;

	/* Behind a segment that leaves alone, a delayed ACK would only idle the path. */
	if (cwnd_segs == 1 || (is_fractional(f, p) && cwnd_segs <= PACED_SEGS))
		return s->flags | TCP_PSH;
	if (burst_segs >= 2 && place == burst_segs)
		return s->flags | TCP_PSH;
	if (f->segs_since_ack > 1 && place == 1 && push_is_bursts(f, s))
		return s->flags & (uint16_t)~TCP_PSH;
	return s->flags;
}

#endif
