/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariant of every flow's state between two calls of the engine, after any segments. A new
 * flow, all zero, satisfies it; each call keeps it (proofs/). Native debug builds assert it.
 */
#ifndef VCC_INVARIANT_H
#define VCC_INVARIANT_H

#include "cc/cc.h"
#include "loss.h"
#include "report.h"
#include "window.h"

/* Enumerations have one of their values. */
VCC_INLINE bool enums_hold(const struct vcc_flow *f)
{
	return f->stage <= STAGE_CLOSED && f->ca_state <= CA_LOSS && is_underlay(f->underlay) &&
	       f->resent <= RESENT_SMALLER && f->asked <= ASKED_DATA &&
	       f->sends <=
		   (SENDS_MORE | SENDS_LATE | SENDS_FRAGMENTS | ASKED_AT_TICK | SENDS_UNANSWERED) &&
	       f->fills <= FILLS_ALONE && f->rcv_rtt <= RCV_RTT_TIMED &&
	       f->lags <= (LAGS_GUEST | LAGS_PEER);
}

/* The scale shown to the guest expresses every window of the peer (window.h). */
VCC_INLINE bool scales_hold(const struct vcc_flow *f)
{
	return f->wscale_peer <= WSCALE_MAX && f->wscale_shown <= f->wscale_peer &&
	       f->wscale_guest <= WSCALE_MAX && f->syn_wscale <= WSCALE_MAX;
}

/* A handshake is that of a recorded SYN, which says how long segments may be (syn.h). */
VCC_INLINE bool syn_holds(const struct vcc_flow *f)
{
	bool recorded = f->syn_flags & (FLOW_GUEST_OPENED | FLOW_SYN_SEEN_PEER);
	bool opened = f->flags & FLOW_GUEST_OPENED;

	if (recorded && f->syn_mss_bytes <= TIMESTAMPS_BYTES)
		return false;
	if (opened && !(f->flags & FLOW_SYN_SEEN_GUEST))
		return false;
	if (f->stage >= STAGE_ESTABLISHED)
		return true;
	if (f->settled || (f->stage == STAGE_SYN_SENT && !opened))
		return false;
	return !opened || (f->syn_flags & FLOW_GUEST_OPENED);
}

/* Segments have bytes, with timestamps too, which the end of the handshake takes off. */
VCC_INLINE bool mss_holds(const struct vcc_flow *f)
{
	uint32_t overhead_bytes = f->stage < STAGE_ESTABLISHED ? TIMESTAMPS_BYTES : 0;

	return f->mss_bytes > overhead_bytes && f->mss_max_bytes > overhead_bytes;
}

/*
 * Windows have segments (RFC 5681, 3.1). A reduction ends at ssthresh, so that is finite by then.
 * alpha is a fraction (RFC 8257, 3.3), or a reduction by it would wrap.
 */
VCC_INLINE bool window_holds(const struct vcc_flow *f)
{
	const struct vcc_cc_state *cc = &f->cc;
	bool never_reduced = f->ca_state == CA_OPEN && cc->ssthresh_segs == SSTHRESH_INFINITE;
	bool has_alpha = cc_traits(f->underlay) & CC_ALPHA;

	if (has_alpha && cc->own[CC_OWN_ALPHA] > CC_ALPHA_ONE)
		return false;
	if (cc->part_1024 < (int32_t)WINDOW_LEAST_1024 - (int32_t)SEGMENT_1024 ||
	    cc->part_1024 >= (int32_t)SEGMENT_1024)
		return false;
	return cc->cwnd_segs >= 1 && cc->cwnd_segs <= CWND_MAX_SEGS && cc->ssthresh_segs >= 1 &&
	       (never_reduced || cc->ssthresh_segs <= CWND_MAX_SEGS);
}

/* What was acknowledged was sent (RFC 9293, 3.4). */
VCC_INLINE bool sequence_holds(const struct vcc_flow *f)
{
	return flight_bytes(f) <= SEQ_WINDOW_MAX;
}

/* AccECN is one way of ECN between vcc and the peer, and what is guessed is less than half a turn.
 */
VCC_INLINE bool accecn_holds(const struct vcc_flow *f)
{
	const uint32_t agreed = ACCECN_AGREED | ACCECN_ANSWERS | ACCECN_HEARD | ACCECN_ECT_1 |
				ACCECN_OPTION_FALSE | ACCECN_SETTLES;

	if (f->guessed_bytes > COUNTER_MASK / 2)
		return false;
	return !f->accecn || (!(f->accecn & ~agreed) && (f->accecn & ACCECN_AGREED) &&
			      (f->flags & FLOW_ECN_FABRIC));
}

/* A reduction for a mark or a timeout is final (undo.h). */
VCC_INLINE bool undo_holds(const struct vcc_flow *f)
{
	return !f->undo_prior_segs || f->ca_state == CA_OPEN || f->ca_state == CA_RECOVERY;
}

/* A flow that has seen no SYN knows none, and has no window. */
VCC_INLINE bool flow_invariant(const struct vcc_flow *f)
{
	if (!enums_hold(f) || !scales_hold(f) || !syn_holds(f))
		return false;
	if (f->stage == STAGE_NONE)
		return !f->flags && !f->syn_flags;
	return mss_holds(f) && window_holds(f) && sequence_holds(f) && undo_holds(f) &&
	       accecn_holds(f);
}

#endif
