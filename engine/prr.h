/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Window reductions: Proportional Rate Reduction (RFC 6937) with the slow start reduction bound, in
 * the arithmetic of Linux's tcp_cwnd_reduction. Competing native senders use it, and one segment
 * per round trip decides about a fair share.
 */
#ifndef VCC_PRR_H
#define VCC_PRR_H

#include "cc/cc.h"
#include "undo.h"
#include "cwnd_validation.h"

/*
 * The least that a reduction leaves to a peer that sends data itself, Linux's own minimum. Such a
 * receiver delays the ACK of a single segment in spite of its PSH (Linux: pingpong mode), so each
 * message longer than a window of one segment would wait for its delayed ACK.
 */
#define PINGPONG_FLOOR_SEGS 2u

/* The least window that a reduction may leave, in segments. */
VCC_INLINE uint32_t reduction_floor_segs(const struct vcc_flow *f, const struct vcc_params *p)
{
	return vcc_max(p->window_floor_segs, f->peer_sends ? PINGPONG_FLOOR_SEGS : 1);
}

/* Is a reduction under way, whose ACKs grant what may be sent? */
VCC_INLINE bool is_reducing(const struct vcc_flow *f)
{
	return f->ca_state == CA_CWR || f->ca_state == CA_RECOVERY;
}

/*
 * Starts a reduction. Law 6: one per window of data (RFC 3168, 6.1.2). The next may start only when
 * data sent after this moment has been acknowledged. Out of line, because it is rare.
 */
VCC_APART int reduction_begin(struct vcc_flow *f, const struct vcc_params *p,
			      enum vcc_congestion cause)
{
	if (!f || !p)
		return -1;
	VCC_LAW(f->ca_state == CA_OPEN);
	if (cause == CONGESTION_LOSS)
		undo_begin(f);
	else
		undo_forbid(f);
	f->prr_prior_segs = (uint16_t)vcc_min(f->cc.cwnd_segs, UINT16_MAX);
	f->prr_delivered_bytes = 0;
	f->prr_out_bytes = 0;
	f->recover = f->snd_nxt;
	f->reductions++;
	f->ca_state = cause == CONGESTION_LOSS ? CA_RECOVERY : CA_CWR;
	cc_on_congestion(f->underlay, &f->cc, cause, p);
	if (f->peer_sends && f->cc.ssthresh_segs < PINGPONG_FLOOR_SEGS) {
		f->cc.ssthresh_segs = PINGPONG_FLOOR_SEGS;
		f->cc.part_1024 = 0;
	}
	if (!p->prr)
		f->cc.cwnd_segs = vcc_min(f->cc.cwnd_segs, f->cc.ssthresh_segs);
	/* CWR announces a reduction for any reason (RFC 3168, 6.1.2). */
	if (f->flags & FLOW_ECN_FABRIC)
		f->flags |= FLOW_CWR_DUE;
	return 0;
}

/*
 * A loss during a reduction extends it to the current flight, without a second reduction. After a
 * restart (see below) the loss is of later data, and answered by itself.
 */
VCC_INLINE void reduction_to_recovery(struct vcc_flow *f, const struct vcc_params *p)
{
	if (!f->prr_prior_segs) {
		f->ca_state = CA_OPEN;
		reduction_begin(f, p, CONGESTION_LOSS);
		return;
	}
	f->ca_state = CA_RECOVERY;
	f->recover = f->snd_nxt;
}

/*
 * The guest restarts after an idle period, before an ACK beyond `recover` has ended its reduction.
 * From here on `recover` only says which ECE (law 6) or which duplicates (RFC 6582, 3.2 step 1) are
 * stale. Its end must not raise the window again: prr_prior_segs is 0.
 */
VCC_INLINE void reduction_restart(struct vcc_flow *f)
{
	if (f->ca_state == CA_OPEN)
		return;
	if (f->ca_state == CA_RECOVERY)
		f->ca_state = CA_LOSS;
	f->prr_prior_segs = 0;
	f->prr_delivered_bytes = 0;
	f->prr_out_bytes = 0;
	f->dupacks = 0;
}

/* The retransmission timer of the modelled sender expired (RFC 5681, 3.1; RFC 6298, 5.5). */
VCC_INLINE void timeout_begin(struct vcc_flow *f, uint32_t now_us)
{
	/*
	 * During a reduction, ssthresh has been reduced for this window already. It must not be
	 * reduced again when a retransmission is lost (RFC 5681, 3.1).
	 */
	uint32_t ssthresh_segs = f->cc.ssthresh_segs;

	cc_on_timeout(f->underlay, &f->cc);
	if (f->ca_state != CA_OPEN && seq_before(f->snd_una, f->recover))
		f->cc.ssthresh_segs = ssthresh_segs;
	else
		f->reductions++;
	f->ca_state = CA_LOSS;
	undo_forbid(f);
	f->recover = f->snd_nxt;
	f->prr_delivered_bytes = 0;
	f->prr_out_bytes = 0;
	f->dupacks = 0;
	f->resent = RESENT_NOTHING;
	f->progress_us = now_us;
	f->validated_us = now_us;
	f->rto_backoff += f->rto_backoff < RTO_BACKOFF_MAX;
	rtt_cancel(f);
	if (f->flags & FLOW_ECN_FABRIC)
		f->flags |= FLOW_CWR_DUE;
}

/*
 * Ends a reduction once data beyond `recover` is acknowledged. Strictly beyond: the first data
 * after the reduction carried CWR, and until the peer has received it, its ECE is stale.
 */
VCC_INLINE void reduction_end(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (f->ca_state == CA_OPEN || !seq_after(s->ack, f->recover))
		return;
	if (f->ca_state != CA_LOSS && f->prr_prior_segs) {
		f->cc.cwnd_segs = f->cc.ssthresh_segs;
		f->validated_us = (uint32_t)s->now_us;
	}
	f->cc.credit_bytes = 0;
	f->ca_state = CA_OPEN;
	f->dupacks = 0;
}

/*
 * The acknowledged bytes that were delivered just now and may grow cwnd. During recovery, duplicate
 * ACKs have counted the rest. After a timeout, only bytes sent since count: otherwise one ACK that
 * fills the hole would restore a whole window (RFC 3465, 2.3).
 */
VCC_INLINE uint32_t growth_bytes(struct vcc_flow *f, const struct ack_news *news,
				 enum vcc_ca_state before)
{
	if (before == CA_OPEN)
		return news->acked_bytes;
	if (before != CA_LOSS)
		return vcc_min(news->acked_bytes, news->delivered_bytes);
	uint32_t due_bytes = vcc_sub_floor0(f->prr_out_bytes, f->prr_delivered_bytes);

	due_bytes = vcc_min(due_bytes, news->acked_bytes);
	f->prr_delivered_bytes += due_bytes;
	return due_bytes;
}

/*
 * The bytes beyond snd_una that the guest may have in flight after this ACK (RFC 6937, 3); 0: the
 * window stays as shown. Sets cwnd to match. A receiver that acknowledges a segment in parts gets
 * as much as for all of it. Out of line, to save the stack of its caller.
 */
VCC_APART uint64_t prr_granted_bytes(struct vcc_flow *f, const struct ack_news *news,
				     uint32_t snd_nxt)
{
	if (!f || !news || !f->mss_bytes)
		return 0;
	/* Whole segments that the guest is about to send; after a loss it sends by its own cwnd. */
	uint32_t due_segs =
	    f->ca_state == CA_CWR ? seq_distance(f->snd_nxt, snd_nxt) / f->mss_bytes : 0;
	uint32_t due_bytes = due_segs * f->mss_bytes;
	uint32_t pipe_segs = bytes_to_segs_ceil(f, flight_bytes(f) - sacked_bytes(f)) + due_segs;
	uint32_t ssthresh_segs = f->cc.ssthresh_segs;
	uint32_t send_segs;

	uint32_t before_segs = bytes_to_segs_ceil(f, f->prr_delivered_bytes);

	f->prr_delivered_bytes += news->delivered_bytes;
	uint32_t delivered_segs = bytes_to_segs_ceil(f, f->prr_delivered_bytes);
	uint32_t out_bytes = f->prr_out_bytes + beyond_recover_bytes(f, f->snd_nxt + due_bytes);
	uint32_t out_segs = bytes_to_segs_ceil(f, out_bytes);
	uint32_t newly_segs = delivered_segs - before_segs;

	if (!newly_segs)
		return 0;
	if (pipe_segs > ssthresh_segs) {
		uint64_t prior_segs = vcc_max(f->prr_prior_segs, 1);
		uint64_t due =
		    ((uint64_t)ssthresh_segs * delivered_segs + prior_segs - 1) / prior_segs;

		send_segs = vcc_sub_floor0((uint32_t)due, out_segs);
	} else {
		/* Slow start reduction bound (RFC 6937, 3). */
		send_segs = vcc_max(vcc_sub_floor0(delivered_segs, out_segs), newly_segs);
		if (news->acked_bytes)
			send_segs++;
		send_segs = vcc_min(send_segs, ssthresh_segs - pipe_segs);
	}
	/* At least one on the first ACK, for the fast retransmission. */
	if (!out_bytes)
		send_segs = vcc_max(send_segs, 1);
	f->cc.cwnd_segs = vcc_min(vcc_max(pipe_segs + send_segs, 1), CWND_MAX_SEGS);
	return flight_filled_bytes(f) + due_bytes + (uint64_t)send_segs * f->mss_bytes;
}

#endif
