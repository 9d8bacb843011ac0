/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric's delay where the guest receives: from its ACK to the data that the peer sends in
 * response, measured by timestamps (RFC 7323, 4; Linux: tcp_rcv_rtt_measure_ts).
 *
 * Only the first segment with a new TSval is timed: an earlier one with the same may be what the
 * peer echoes. The ACK must admit data, and the peer must have had more to send, or the time would
 * be its application's. Where data was lost, the peer may wait for a timer: an ACK that reports a
 * hole is not timed, nor an answer behind one. If it loses all that it sent in response, its
 * retransmission timeout is in the time. Timestamps that stand still or run backwards time nothing.
 */
#ifndef VCC_RCV_RTT_H
#define VCC_RCV_RTT_H

#include "acceptability.h"
#include "delay.h"

/*
 * Does the segment make the peer send? While the guest owes it another acknowledgement, the peer
 * may wait for that one.
 */
VCC_INLINE bool asks_peer(const struct vcc_flow *f, const struct vcc_segment *s)
{
	bool owes_ack = f->asked == ASKED_ANSWER || f->asked == ASKED_ACK;

	return is_bare(s) && !(s->options & OPT_SACK) && seq_after(s->ack, f->rcv_wup) &&
	       opens_window(f, s) && !owes_ack;
}

/* From-guest: is it the first with a new TSval, where that is watched for? */
VCC_INLINE bool begins_rcv_rtt(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return f->rcv_rtt == RCV_RTT_WATCHED && (s->options & OPT_TIMESTAMPS) &&
	       seq_after(s->tsval, f->rcv_tsval);
}

/* To-guest: is it data that echoes the TSval that is timed, or a later one? */
VCC_INLINE bool ends_rcv_rtt(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return f->rcv_rtt == RCV_RTT_TIMED && s->payload_bytes && (s->options & OPT_TIMESTAMPS) &&
	       !seq_before(s->tsecr, f->rcv_tsval);
}

/* From-guest: a segment, after delay_acked(), before its acknowledgement is tracked. */
VCC_INLINE void rcv_rtt_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s)
{
	if (!p->delays || !(s->options & OPT_TIMESTAMPS) ||
	    (f->rcv_rtt != RCV_RTT_MORE && f->rcv_rtt != RCV_RTT_WATCHED))
		return;
	bool is_new = begins_rcv_rtt(f, s);

	if (is_new || f->rcv_rtt == RCV_RTT_MORE) {
		f->rcv_tsval = s->tsval;
		f->rcv_rtt = RCV_RTT_WATCHED;
	}
	if (is_new && asks_peer(f, s)) {
		f->rcv_rtt = RCV_RTT_TIMED;
		f->rcv_sent_us = (uint32_t)s->now_us;
	}
}

/*
 * To-guest: was the peer's segment full? The guest's MSS option bounds it, and the peer's own hints
 * at what its link takes; but it may announce less than it sends. Its largest segment decides.
 */
VCC_INLINE bool peer_has_more(struct vcc_flow *f, const struct vcc_segment *s)
{
	f->rcv_mss_bytes = (uint16_t)vcc_max(f->rcv_mss_bytes, vcc_min(cut_bytes(s), UINT16_MAX));
	return has_more(s, f->rcv_mss_bytes);
}

/* To-guest: an acceptable segment, after delay_to_guest(). */
VCC_INLINE void rcv_rtt_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	if (!p->delays || !s->payload_bytes)
		return;
	if (ends_rcv_rtt(f, s)) {
		f->rcv_rtt = RCV_RTT_MORE;
		if (segment_end(s) == f->rcv_nxt && !a->fabric_us)
			a->fabric_us =
			    delay_sample(f, &f->fabric_us64, &f->fabric_worst_us,
					 elapsed_us(f->rcv_sent_us, (uint32_t)s->now_us));
	}
	if (peer_has_more(f, s))
		f->rcv_rtt = (uint8_t)vcc_max(f->rcv_rtt, RCV_RTT_MORE);
	else
		f->rcv_rtt = RCV_RTT_NONE;
}

#endif
