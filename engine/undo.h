/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Undo of a reduction for a loss that was none: segments arrived in another order, the guest sent
 * some again, and the peer says that it has those twice (RFC 2883, RFC 3708). Once that was said of
 * all that was sent again, the window is what it was, as Linux's tcp_try_undo_dsack has it. Without
 * this, hosts that hand packets over on several CPUs keep a window small for ever.
 *
 * All that is sent again counts, probes and keep-alives too: the peer says of them, too, that they
 * came twice, and must not be taken to speak of others. Reductions for marks are never undone: a
 * mark is no guess.
 */
#ifndef VCC_UNDO_H
#define VCC_UNDO_H

#include "track.h"

/* A mark or a timeout: the reduction stands, whatever was sent again in vain. */
VCC_INLINE void undo_forbid(struct vcc_flow *f)
{
	f->undo_prior_segs = 0;
}

/*
 * A reduction for a loss begins. Where segments overtake each other, the next may begin before it
 * is known that the last was in vain: then both are undone together, or not at all.
 */
VCC_INLINE void undo_begin(struct vcc_flow *f)
{
	if (!f->undo_prior_segs)
		f->undo_prior_segs = (uint16_t)vcc_min(f->cc.cwnd_segs, UINT16_MAX);
}

/* From-guest, before it is tracked: of this segment, so much was sent before. */
VCC_INLINE void undo_sent_again(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t bytes = vcc_min(segment_end(s) - s->seq, seq_distance(s->seq, f->snd_nxt));

	if (!bytes)
		return;
	f->undo_from = f->undo_bytes ? seq_min(f->undo_from, s->seq) : s->seq;
	f->undo_to = f->undo_bytes ? seq_max(f->undo_to, s->seq + bytes) : s->seq + bytes;
	f->undo_bytes = vcc_min(f->undo_bytes + bytes, SEQ_WINDOW_MAX);
	/* So long it may take until its copy is told of: see undo_expire(). */
	if (f->ca_state == CA_OPEN)
		f->recover = f->snd_nxt;
}

/* To-guest: a window beyond it nothing more will be told of what was sent again: it was lost. */
VCC_INLINE void undo_expire(struct vcc_flow *f)
{
	if (f->ca_state != CA_OPEN ||
	    seq_distance(f->recover, f->snd_una) <= f->cc.cwnd_segs * f->mss_bytes)
		return;
	f->undo_bytes = 0;
	undo_forbid(f);
}

/*
 * Is the block of bytes that were sent again? Copies that the network made are none, nor is what a
 * receiver makes up that has not looked (Linux: tcp_dsack_seen).
 */
VCC_INLINE bool undo_speaks_of(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return s->dsack_bytes && s->dsack_bytes <= f->undo_bytes &&
	       !seq_before(s->dsack_seq, f->undo_from) &&
	       !seq_after(s->dsack_seq + s->dsack_bytes, f->undo_to);
}

/* To-guest: the peer had some of it already. The last of that undoes the reduction. */
VCC_INLINE void undo_by_dsack(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s)
{
	if (!undo_speaks_of(f, s))
		return;
	f->undo_bytes -= s->dsack_bytes;
	if (!p->undo || f->undo_bytes || !f->undo_prior_segs)
		return;
	VCC_LAW(f->ca_state == CA_OPEN || f->ca_state == CA_RECOVERY);
	f->cc.cwnd_segs = vcc_max(f->cc.cwnd_segs, f->undo_prior_segs);
	f->cc.ssthresh_segs = vcc_max(f->cc.ssthresh_segs, f->undo_prior_segs);
	if (f->ca_state == CA_RECOVERY) {
		f->ca_state = CA_OPEN;
		f->dupacks = 0;
	}
	/* What is taken back need not be told (RFC 3168, 6.1.2). */
	f->flags &= ~(uint32_t)FLOW_CWR_DUE;
	undo_forbid(f);
}

#endif
