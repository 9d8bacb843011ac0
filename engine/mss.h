/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The size of the guest's full segments, in which windows count. The guest knows the path MTU, so
 * its own cut is the truth, as far as the handshake allows. What its window is worth in bytes is
 * not its to choose: with another segment size, all that counts in segments is counted anew.
 */
#ifndef VCC_MSS_H
#define VCC_MSS_H

#include "cc/cc.h"
#include "track.h"

/* RFC 9293, 3.1: more than that a segment's options do not take. */
#define TCP_OPTIONS_BYTES 40u

/* Payload of each full segment of it; of one that is no super-segment, all. */
VCC_INLINE uint32_t cut_bytes(const struct vcc_segment *s)
{
	return s->seg_bytes ? s->seg_bytes : s->payload_bytes;
}

/* What the guest's own SACK blocks may take of this segment (RFC 6691, 3). */
VCC_INLINE uint32_t blocks_bytes(const struct vcc_segment *s)
{
	return (s->options & OPT_SACK) ? TCP_OPTIONS_BYTES : 0;
}

/* Is this segment cut shorter than a full one has been? */
VCC_INLINE bool is_cut_shorter(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return cut_bytes(s) + blocks_bytes(s) < f->mss_bytes;
}

/* A window of `segs` segments, in segments of another size: not a byte more, and one at least. */
VCC_INLINE uint32_t segs_of(uint32_t segs, uint32_t from_bytes, uint32_t to_bytes)
{
	uint64_t count = (uint64_t)segs * from_bytes / to_bytes;

	return vcc_max(count < CWND_MAX_SEGS ? (uint32_t)count : CWND_MAX_SEGS, 1);
}

VCC_INLINE void mss_change(struct vcc_flow *f, uint32_t to_bytes)
{
	uint32_t from_bytes = f->mss_bytes;

	to_bytes = vcc_max(vcc_min(to_bytes, f->mss_max_bytes), 1);
	if (to_bytes == from_bytes)
		return;
	f->cc.cwnd_segs = segs_of(f->cc.cwnd_segs, from_bytes, to_bytes);
	if (f->cc.ssthresh_segs != SSTHRESH_INFINITE)
		f->cc.ssthresh_segs = segs_of(f->cc.ssthresh_segs, from_bytes, to_bytes);
	f->prr_prior_segs = (uint16_t)segs_of(f->prr_prior_segs, from_bytes, to_bytes);
	if (f->undo_prior_segs)
		f->undo_prior_segs = (uint16_t)segs_of(f->undo_prior_segs, from_bytes, to_bytes);
	cc_on_mss(f->underlay, &f->cc, from_bytes, to_bytes);
	f->mss_bytes = (uint16_t)to_bytes;
}

/*
 * The guest sent data. A segment that is longer than a full one was, or the cut of a super-segment,
 * tells of another size; one by itself that is shorter ends what was written.
 */
VCC_INLINE void mss_from_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (cut_bytes(s) > f->mss_bytes || (s->seg_bytes && is_cut_shorter(f, s)))
		mss_change(f, cut_bytes(s));
}

#endif
