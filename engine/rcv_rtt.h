/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric's delay where the guest receives: from its ACK to the data that the peer sends in
 * response, told by timestamps (RFC 7323, 4; Linux: tcp_rcv_rtt_measure_ts).
 *
 * Only the first segment with a new TSval is timed: an earlier one with the same may be what the
 * peer echoes. The ACK must admit data, and the peer must have had more to send, or the time would
 * be its application's. If the peer lost all that it sent then, its retransmission timeout is in
 * the time. Timestamps that stand still or run backwards time nothing.
 */
#ifndef VCC_RCV_RTT_H
#define VCC_RCV_RTT_H

#include "accept.h"
#include "delay.h"

/* From-guest: a segment, before its acknowledgement is tracked. */
VCC_INLINE void rcv_rtt_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				   const struct vcc_segment *s)
{
	if (!p->delays || !(s->options & OPT_TIMESTAMPS) || f->rcv_rtt == RCV_RTT_TIMED)
		return;
	bool is_new = f->rcv_rtt == RCV_RTT_WATCHED && seq_after(s->tsval, f->rcv_tsval);

	if (is_new || f->rcv_rtt == RCV_RTT_NONE) {
		f->rcv_tsval = s->tsval;
		f->rcv_rtt = RCV_RTT_WATCHED;
	}
	if (is_new && f->peer_has_more && is_bare(s) && seq_after(s->ack, f->rcv_wup) &&
	    opens_window(f, s)) {
		f->rcv_rtt = RCV_RTT_TIMED;
		f->rcv_sent_us = (uint32_t)s->now_us;
	}
}

/* To-guest: an acceptable segment, after delay_to_guest(). */
VCC_INLINE void rcv_rtt_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s, struct vcc_action *a)
{
	if (!p->delays || !s->payload_bytes)
		return;
	if (f->rcv_rtt == RCV_RTT_TIMED && (s->options & OPT_TIMESTAMPS) &&
	    !seq_before(s->tsecr, f->rcv_tsval)) {
		f->rcv_rtt = RCV_RTT_NONE;
		if (!a->fabric_us)
			a->fabric_us =
			    delay_sample(f, &f->fabric_us64, &f->fabric_worst_us,
					 elapsed_us(f->rcv_sent_us, (uint32_t)s->now_us));
	}
	f->peer_has_more = has_more(f, s);
	if (!f->peer_has_more)
		f->rcv_rtt = RCV_RTT_NONE;
}

#endif
