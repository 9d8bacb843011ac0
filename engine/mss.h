/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The size of the guest's full segments, the unit of windows. The guest knows the path MTU, so its
 * own segmentation is authoritative, within the bound that the handshake sets. A new segment size
 * must not change a window's value in bytes, so every count of segments is converted.
 */
#ifndef VCC_MSS_H
#define VCC_MSS_H

#include "cc/cc.h"
#include "sequence_tracking.h"

/* The largest size of TCP options (RFC 9293, 3.1). */
#define TCP_OPTIONS_BYTES 40u

/* A full segment is at most this part shorter than the handshake lets it be. */
#define RESERVE_SHIFT 3
/* So many equal segments in a row are full ones. */
#define FULL_RUN 3

/* Payload of a super-segment's full segments, or of a single segment. */
VCC_INLINE uint32_t cut_bytes(const struct vcc_segment *s)
{
	return s->seg_bytes ? s->seg_bytes : s->payload_bytes;
}

/* Upper bound of what the guest's SACK blocks take from this segment's payload (RFC 6691, 3). */
VCC_INLINE uint32_t blocks_bytes(const struct vcc_segment *s)
{
	return (s->options & OPT_SACK) ? TCP_OPTIONS_BYTES : 0;
}

/* Is this segment shorter than a full one? */
VCC_INLINE bool is_cut_shorter(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return cut_bytes(s) + blocks_bytes(s) < f->mss_bytes;
}

/* Converts a window to another segment size, rounded down, at least 1. */
VCC_INLINE uint32_t segs_of(uint32_t segs, uint32_t from_bytes, uint32_t to_bytes)
{
	uint64_t count = (uint64_t)segs * from_bytes / to_bytes;

	return vcc_max(count < CWND_MAX_SEGS ? (uint32_t)count : CWND_MAX_SEGS, 1);
}

/* Out of line, because it is rare. */
VCC_APART int mss_change(struct vcc_flow *f, uint32_t to_bytes)
{
	if (!f)
		return -1;
	uint32_t from_bytes = f->mss_bytes;

	to_bytes = vcc_max(vcc_min(to_bytes, f->mss_max_bytes), 1);
	if (to_bytes == from_bytes)
		return 0;
	f->cc.cwnd_segs = segs_of(f->cc.cwnd_segs, from_bytes, to_bytes);
	if (f->cc.ssthresh_segs != SSTHRESH_INFINITE)
		f->cc.ssthresh_segs = segs_of(f->cc.ssthresh_segs, from_bytes, to_bytes);
	if (f->prr_prior_segs)
		f->prr_prior_segs = (uint16_t)segs_of(f->prr_prior_segs, from_bytes, to_bytes);
	if (f->undo_prior_segs)
		f->undo_prior_segs = (uint16_t)segs_of(f->undo_prior_segs, from_bytes, to_bytes);
	cc_on_mss(f->underlay, &f->cc, from_bytes, to_bytes);
	f->mss_bytes = (uint16_t)to_bytes;
	return 0;
}

/*
 * The guest sent data. A longer segment than before, or a super-segment's gso_size, reveals a new
 * segment size. A shorter single segment does not, alone: it may end an application's write.
 */
VCC_INLINE bool reveals_mss(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (cut_bytes(s) > f->mss_bytes && f->mss_bytes != f->mss_max_bytes) ||
	       (s->seg_bytes && is_cut_shorter(f, s));
}

/*
 * From-guest: may a single segment be a full one, although it is shorter? An application's last
 * segment is shorter, too, but where the window is the limit more follows. Stacks that reserve room
 * for options in each segment take less than an eighth of it.
 */
VCC_INLINE bool may_be_full(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return !s->seg_bytes && is_cut_shorter(f, s) && (f->flags & FLOW_WINDOW_LIMITED) &&
	       s->payload_bytes >= f->mss_bytes - ((uint32_t)f->mss_bytes >> RESERVE_SHIFT);
}

/*
 * From-guest: so many equal segments, each behind the one before it, reveal the segment size of a
 * guest without super-segments. Must be called before the segment is tracked. Out of line, because
 * it is rare.
 */
VCC_APART int mss_from_run(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!f || !s || s->seq != f->snd_nxt)
		return 0;
	bool again = s->payload_bytes == f->short_bytes && (uint16_t)s->seq == f->short_end;

	f->short_run = again ? f->short_run + 1 : 1;
	f->short_bytes = (uint16_t)s->payload_bytes;
	f->short_end = (uint16_t)(s->seq + s->payload_bytes);
	if (f->short_run < FULL_RUN)
		return 0;
	f->short_run = 0;
	return mss_change(f, s->payload_bytes);
}

VCC_INLINE void mss_from_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (reveals_mss(f, s))
		mss_change(f, cut_bytes(s));
}

#endif
