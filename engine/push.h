/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PSH where a sender with our cwnd would set it.
 *
 * Linux sets PSH on the last segment of each burst, and answers PSH data at once instead of
 * delaying the ACK. A native sender bursts at most half its cwnd; a guest throttled by its
 * receive window bursts all that the window admits, gets its ACKs sooner and takes more than its
 * share: 1.2 to 1.3 times, measured. So the flag is put where bursts of max(cwnd / 2, 1) would
 * have put it.
 */
#ifndef VCC_PUSH_H
#define VCC_PUSH_H

#include "cap.h"
#include "mss.h"

/*
 * May PSH be the burst's? Where the window leaves room for another segment, the guest had no more
 * to send, and PSH says so (RFC 9293, 3.9.1, MUST-61). So does a short segment, which ends what the
 * application wrote; a native sender pushes that, too.
 */
VCC_INLINE bool push_is_bursts(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t left_bytes = seq_distance(s->seq + s->payload_bytes, f->right_edge);
	uint32_t last_bytes = s->payload_bytes % cut_bytes(s);

	return left_bytes < f->mss_bytes && !last_bytes && !is_cut_shorter(f, s);
}

/* The flags that a data segment of the guest shall carry. Counts it towards the burst. */
VCC_INLINE uint16_t push_flags(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s)
{
	uint32_t cwnd_segs = cap_segs(f, p, f->cc.cwnd_segs);
	uint32_t burst_segs = vcc_max(cwnd_segs / 2, 1);
	uint32_t segs = 1;

	/* The header of a super-segment speaks for its last segment (Linux: tcp_gso_segment). */
	if (s->seg_bytes)
		segs = (s->payload_bytes + s->seg_bytes - 1) / s->seg_bytes;
	f->segs_since_ack = (uint16_t)vcc_min(f->segs_since_ack + segs, UINT16_MAX);

	uint32_t place = (f->segs_since_ack - 1) % burst_segs + 1;

	/* A window of one segment has nothing to follow: a delayed ACK would only idle the path. */
	if (cwnd_segs == 1)
		return s->flags | TCP_PSH;
	if (burst_segs >= 2 && place == burst_segs)
		return s->flags | TCP_PSH;
	if (f->segs_since_ack > 1 && place == 1 && push_is_bursts(f, s))
		return s->flags & (uint16_t)~TCP_PSH;
	return s->flags;
}

#endif
