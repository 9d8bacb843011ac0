/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Losses, inferred from the guest's retransmissions and the peer's duplicate ACKs. */
#ifndef VCC_LOSS_H
#define VCC_LOSS_H

#include "mss.h"
#include "prr.h"

/* A zero-window probe says nothing about the path (RFC 9293, 3.8.6.1). */
VCC_INLINE bool peer_closed_window(const struct vcc_flow *f)
{
	return (f->flags & FLOW_WINDOW_SHOWN) && !f->window_received;
}

/* Has the retransmission timer of the modelled sender expired? */
VCC_INLINE bool rto_passed(const struct vcc_flow *f, const struct vcc_params *p, uint32_t now_us)
{
	return flight_bytes(f) && !peer_closed_window(f) &&
	       elapsed_us(f->progress_us, now_us) >= rto_us(f, p->rto_min_us);
}

/* Records a retransmission whose reason the peer's answer will reveal. */
VCC_INLINE void resent_note(struct vcc_flow *f, const struct vcc_segment *s, enum vcc_resent why)
{
	f->resent = why;
	f->resent_end = segment_end(s);
	f->resent_bytes = segment_end(s) - s->seq;
}

/* The path MTU shrank: the flight is retransmitted in smaller segments. */
VCC_INLINE void resent_smaller(struct vcc_flow *f, uint32_t mss_bytes)
{
	f->resent = RESENT_SMALLER;
	f->resent_end = f->snd_nxt;
	mss_change(f, mss_bytes);
}

/* Are retransmissions due to a smaller path MTU, and not to a loss that the peer has reported? */
VCC_INLINE bool resends_smaller(const struct vcc_flow *f)
{
	return f->resent == RESENT_SMALLER && f->dupacks < DUPACK_THRESHOLD;
}

/*
 * Is this retransmission due to a smaller path MTU? Then nothing was lost to congestion, and no
 * duplicate ACK or SACK block asked for it (RFC 8201, 5.4; Linux: tcp_simple_retransmit). A single
 * shorter head may also be the lost end of an application write: the next segment shows which.
 */
VCC_INLINE bool resent_for_mtu(struct vcc_flow *f, enum vcc_sent sent, const struct vcc_segment *s)
{
	if (f->ca_state > CA_CWR)
		return false;
	if (f->resent == RESENT_SMALLER)
		return !seq_after(segment_end(s), f->resent_end);
	if (f->resent == RESENT_SHORT && s->seq == f->resent_end &&
	    cut_bytes(s) <= f->resent_bytes) {
		resent_smaller(f, f->resent_bytes);
		return true;
	}
	if ((f->resent != RESENT_NOTHING && f->resent != RESENT_PROBE) || f->dupacks ||
	    s->seq != f->snd_una || !is_cut_shorter(f, s))
		return false;
	if (s->seg_bytes) {
		resent_smaller(f, s->seg_bytes);
		return true;
	}
	if (sent == SENT_TAIL_AGAIN || f->ca_state != CA_OPEN)
		return false;
	resent_note(f, s, RESENT_SHORT);
	return true;
}

/*
 * The guest retransmitted: determines by which mechanism, and starts the sender half's reaction.
 * Out of line, because it is rare.
 */
VCC_APART int resent_by_guest(struct vcc_flow *f, const struct vcc_params *p, uint32_t sent,
			      const struct vcc_segment *s)
{
	if (!f || !p || !s)
		return -1;
	bool past_threshold = f->dupacks >= DUPACK_THRESHOLD;

	/* A fast retransmission may carry new data behind the missing segment. */
	if ((sent == SENT_PARTLY_NEW && !past_threshold) || peer_closed_window(f))
		return 0;
	if (s->seq == f->snd_una && rto_passed(f, p, (uint32_t)s->now_us)) {
		timeout_begin(f, (uint32_t)s->now_us);
		f->prr_out_bytes = s->payload_bytes;
		return 0;
	}
	if (!past_threshold && resent_for_mtu(f, (enum vcc_sent)sent, s))
		return 0;
	/*
	 * A window-limited guest cannot probe with new data, so its tail loss probe retransmits the
	 * last segment (RFC 8985, 7.3). Duplicates, a timeout or the probe's own ACK show whether
	 * that segment was lost.
	 */
	if (sent == SENT_TAIL_AGAIN && !past_threshold) {
		bool answered = f->ca_state != CA_OPEN && !seq_after(f->snd_nxt, f->recover);

		if (f->ca_state <= CA_CWR && !answered)
			resent_note(f, s, RESENT_PROBE);
		return 0;
	}
	f->resent = RESENT_NOTHING;
	if (f->ca_state == CA_OPEN) {
		reduction_begin(f, p, CONGESTION_LOSS);
		f->prr_out_bytes = s->payload_bytes;
	} else if (f->ca_state == CA_CWR) {
		reduction_to_recovery(f, p);
	}
	return 0;
}

VCC_INLINE void loss_from_guest(struct vcc_flow *f, const struct vcc_params *p, enum vcc_sent sent,
				const struct vcc_segment *s)
{
	if (sent != SENT_NOTHING && sent != SENT_NEW)
		resent_by_guest(f, p, sent, s);
}

/* A DSACK of the tail loss probe: the original arrived, nothing was lost (RFC 8985, 7.4.2). */
VCC_INLINE void probe_by_dsack(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t end = s->dsack_seq + s->dsack_bytes;

	if (f->resent == RESENT_PROBE && s->dsack_bytes && !seq_after(end, f->resent_end) &&
	    seq_after(end, f->resent_end - f->resent_bytes))
		f->resent = RESENT_NOTHING;
}

/*
 * A retransmission acknowledged without a DSACK repaired a loss. For a tail loss probe that holds
 * once an ACK goes beyond it (RFC 8985, 7.4.2; Linux: tcp_process_tlp_ack).
 */
VCC_INLINE void loss_from_resent(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, const struct ack_news *news)
{
	bool blocks = (s->options & OPT_SACK) && !s->dsack_bytes;

	if (f->resent <= RESENT_EXPECTED) {
		f->resent = blocks ? RESENT_EXPECTED : RESENT_NOTHING;
		return;
	}
	if (seq_before(f->snd_una, f->resent_end))
		return;
	if (f->resent == RESENT_PROBE && f->snd_una == f->resent_end) {
		/* A duplicate ACK: both the segment and the probe arrived. */
		if (!news->acked_bytes && !(s->options & OPT_SACK) && !s->payload_bytes &&
		    s->window == f->window_received)
			f->resent = RESENT_NOTHING;
		return;
	}
	bool lost = f->resent != RESENT_SMALLER;

	f->resent = RESENT_NOTHING;
	/* An ongoing reduction also answers this loss. */
	if (lost && f->ca_state == CA_OPEN)
		reduction_begin(f, p, CONGESTION_LOSS);
}

/*
 * The third duplicate ACK (RFC 5681, 3.2). A guest with SACK detects losses better than a count can
 * (RFC 6675; RFC 8985 adapts to reordering), so the engine waits for its retransmission; until then
 * the window admits no new data.
 */
VCC_INLINE void loss_from_dupacks(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s)
{
	if (f->dupacks < DUPACK_THRESHOLD || (s->options & OPT_SACK))
		return;
	if (f->ca_state == CA_OPEN)
		reduction_begin(f, p, CONGESTION_LOSS);
	else if (f->ca_state == CA_CWR)
		reduction_to_recovery(f, p);
}

#endif
