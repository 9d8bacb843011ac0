/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Undo of a reduction for a loss that was none: segments arrived in another order, the guest sent
 * some again, and the peer says that it has those twice (RFC 2883). Once all that was sent again in
 * a recovery was unnecessary, the window is what it was (RFC 3708; the response is that of RFC
 * 4015, 3.2, and Linux's tcp_try_undo_dsack). Without this, hosts that hand packets over on several
 * CPUs keep a window small for ever.
 *
 * Reductions for marks are never undone: a mark is no guess.
 */
#ifndef VCC_UNDO_H
#define VCC_UNDO_H

#include "track.h"

/* Of undo_segs: there is nothing to undo. */
#define UNDO_NEVER UINT16_MAX

/*
 * A reduction for a loss begins. Where segments overtake each other, the next may begin before it
 * is known that the last was in vain: within a window both are undone together, or not at all.
 */
VCC_INLINE void undo_begin(struct vcc_flow *f)
{
	bool pending = f->undo_segs && f->undo_segs != UNDO_NEVER;
	bool recent = seq_distance(f->recover, f->snd_una) <= f->cc.cwnd_segs * f->mss_bytes;

	if (pending && recent)
		return;
	f->undo_segs = 0;
	f->undo_prior_segs = (uint16_t)vcc_min(f->cc.cwnd_segs, UINT16_MAX);
}

/* From-guest: something was sent again while a loss is being repaired. */
VCC_INLINE void undo_sent_again(struct vcc_flow *f, uint32_t bytes)
{
	if (f->ca_state != CA_RECOVERY || f->undo_segs == UNDO_NEVER)
		return;
	f->undo_segs = (uint16_t)vcc_min(f->undo_segs + bytes_to_segs_ceil(f, bytes), UNDO_NEVER);
}

/* To-guest: the peer had `bytes` of it already. The last of them undoes the reduction. */
VCC_INLINE void undo_by_dsack(struct vcc_flow *f, const struct vcc_params *p, uint32_t bytes)
{
	if (!p->undo || !bytes || !f->undo_segs || f->undo_segs == UNDO_NEVER)
		return;
	f->undo_segs = (uint16_t)vcc_sub_floor0(f->undo_segs, bytes_to_segs_ceil(f, bytes));
	if (f->undo_segs)
		return;
	VCC_LAW(f->ca_state == CA_OPEN || f->ca_state == CA_RECOVERY);
	f->undo_segs = UNDO_NEVER;
	f->cc.cwnd_segs = vcc_max(f->cc.cwnd_segs, f->undo_prior_segs);
	f->cc.ssthresh_segs = vcc_max(f->cc.ssthresh_segs, f->undo_prior_segs);
	if (f->ca_state == CA_RECOVERY) {
		f->ca_state = CA_OPEN;
		f->dupacks = 0;
	}
}

#endif
