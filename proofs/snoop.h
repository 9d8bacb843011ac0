/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the proofs quantify over of a port that acknowledges in the guest's name. */
#ifndef VCC_PROOF_SNOOP_H
#define VCC_PROOF_SNOOP_H

#include "check.h"
#include "snoop_ack.h"

struct vcc_snoop nondet_snoop(void);
struct vcc_room nondet_room(void);

/*
 * What is true of a connection at such a port between two calls: the ring and the port's buffer
 * have all that the guest has acknowledged, and no more beyond it than a window, of which a part
 * may be in the buffer alone; what it has reported behind a hole is within its window.
 */
static bool snoop_invariant(const struct vcc_snoop *sn)
{
	if (sn->opening && !sn->mss_bytes)
		return false;
	if (!sn->begun)
		return true;
	if (!sn->opening || !sn->seg_bytes || sn->ring_nxt - sn->guest_ack > SEQ_WINDOW_MAX ||
	    sn->stored_bytes > sn->ring_nxt - sn->guest_ack ||
	    sn->guest_edge - sn->guest_ack > SEQ_WINDOW_MAX)
		return false;
	if (!has_hole(sn))
		return sn->sacked_end == sn->ring_nxt;
	return sn->sacked_from - sn->ring_nxt - 1 < sn->sacked_end - sn->ring_nxt - 1 &&
	       !seq_after(sn->sacked_end, sn->guest_edge) &&
	       sn->sacked_end - sn->guest_ack <= SEQ_WINDOW_MAX;
}

/* The largest window that a field can express (RFC 7323, 2.2). */
#define WINDOW_MAX ((uint32_t)UINT16_MAX << WSCALE_MAX)

/*
 * What is true of the edge that the peer was sent last: it is within a window of the guest's
 * acknowledgement, which is not a gigabyte beyond it.
 */
static bool told_invariant(const struct vcc_snoop *sn)
{
	return sn->told_edge - sn->guest_ack + WINDOW_MAX <= 2 * WINDOW_MAX;
}

static struct vcc_snoop any_snoop(void)
{
	struct vcc_snoop sn = nondet_snoop();

	__CPROVER_assume(snoop_invariant(&sn));
	return sn;
}

#endif
