/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Undo of spurious reductions. After reordering, the guest retransmits segments that were not lost,
 * and the peer reports the duplicates by DSACK (RFC 2883, RFC 3708). Once every retransmitted byte
 * has been reported, the window is restored, as by Linux's tcp_try_undo_dsack. Without this, hosts
 * that process packets on several CPUs, and so reorder them, would keep the window small forever.
 *
 * All retransmissions count, probes and keep-alives included: the peer reports those by DSACK too,
 * and their reports must not be mistaken for others'. A reduction for marks is never undone,
 * because a mark is certain.
 */
#ifndef VCC_UNDO_H
#define VCC_UNDO_H

#include "sequence_tracking.h"

/* Half a round trip, of 8 * SRTT: no retransmission is acknowledged sooner. */
#define UNDO_SRTT_SHIFT 4

/* A mark or a timeout makes the reduction final. */
VCC_INLINE void undo_forbid(struct vcc_flow *f)
{
	f->undo_prior_segs = 0;
}

/* A reduction on an ACK, by an underlay that is led by delay, is not for the loss before it. */
VCC_INLINE void undo_unless_grown(struct vcc_flow *f, uint32_t before_segs)
{
	if (f->cc.cwnd_segs < before_segs)
		undo_forbid(f);
}

/*
 * A reduction for a loss starts. With reordering, another may start before the first is known to be
 * spurious; both are then undone together or not at all.
 */
VCC_INLINE void undo_begin(struct vcc_flow *f)
{
	if (!f->undo_prior_segs)
		f->undo_prior_segs = (uint16_t)vcc_min(f->cc.cwnd_segs, UINT16_MAX);
}

/* From-guest: counts retransmitted bytes. Must be called before the segment is tracked. */
VCC_INLINE void undo_sent_again(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t bytes = vcc_min(segment_end(s) - s->seq, seq_distance(s->seq, f->snd_nxt));

	if (!bytes)
		return;
	if (!f->undo_bytes || !f->undo_us)
		f->undo_us = (uint32_t)s->now_us | 1;
	f->undo_from = f->undo_bytes ? seq_min(f->undo_from, s->seq) : s->seq;
	f->undo_to = f->undo_bytes ? seq_max(f->undo_to, s->seq + bytes) : s->seq + bytes;
	f->undo_bytes = vcc_min(f->undo_bytes + bytes, SEQ_WINDOW_MAX);
	/* The DSACK may arrive up to a window after this point; see undo_expire(). */
	if (f->ca_state == CA_OPEN)
		f->recover = f->snd_nxt;
}

/* To-guest: a window after the retransmission no DSACK can follow, so the original was lost. */
VCC_INLINE void undo_expire(struct vcc_flow *f)
{
	if (f->ca_state != CA_OPEN ||
	    seq_distance(f->recover, f->snd_una) <= f->cc.cwnd_segs * f->mss_bytes)
		return;
	f->undo_bytes = 0;
	undo_forbid(f);
}

/*
 * Does the DSACK block report retransmitted bytes? Network duplicates and implausible blocks are
 * ignored (Linux: tcp_dsack_seen).
 */
VCC_INLINE bool undo_speaks_of(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return s->dsack_bytes && s->dsack_bytes <= f->undo_bytes &&
	       !seq_before(s->dsack_seq, f->undo_from) &&
	       !seq_after(s->dsack_seq + s->dsack_bytes, f->undo_to);
}

/*
 * To-guest, with policing, where a receiver may not be believed that a retransmission was needless
 * (RFC 3708, 4). What acknowledges it sooner than a retransmission can be acknowledged answers the
 * original (RFC 3522). A reduction for another is final.
 */
VCC_INLINE void undo_prove(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!f->undo_bytes || !f->undo_us || seq_before(f->snd_una, f->undo_to))
		return;
	if (elapsed_us(f->undo_us, (uint32_t)s->now_us) < f->srtt_us8 >> UNDO_SRTT_SHIFT)
		f->undo_us = 0;
	else
		undo_forbid(f);
}

/* To-guest: a DSACK block. The one that covers the last retransmitted byte undoes the reduction. */
VCC_INLINE void undo_by_dsack(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s)
{
	if (!undo_speaks_of(f, s))
		return;
	f->undo_bytes -= s->dsack_bytes;
	if (f->undo_bytes)
		return;
	if (p->police && f->undo_us)
		undo_forbid(f);
	if (!p->undo || !f->undo_prior_segs)
		return;
	VCC_LAW(f->ca_state == CA_OPEN || f->ca_state == CA_RECOVERY);
	f->cc.cwnd_segs = vcc_max(f->cc.cwnd_segs, f->undo_prior_segs);
	f->cc.ssthresh_segs = vcc_max(f->cc.ssthresh_segs, f->undo_prior_segs);
	if (f->ca_state == CA_RECOVERY) {
		f->ca_state = CA_OPEN;
		f->dupacks = 0;
	}
	/* CWR must not announce an undone reduction (RFC 3168, 6.1.2). */
	f->flags &= ~(uint32_t)FLOW_CWR_DUE;
	undo_forbid(f);
}

#endif
