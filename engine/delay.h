/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two parts of a round trip, as the port sees them: the fabric's, from the guest's data to its
 * acknowledgement, and the guest's, from what it has to answer to its answer. A connection is slow
 * because of the network or because its guest is, and this shows which.
 *
 * A sample is missing rather than wrong. An end may delay the ACK of a single segment (RFC
 * 5681, 4.2) and of what its application does not read, so such an ACK is no sample if it comes
 * late. What an application takes to answer is its end's delay.
 */
#ifndef VCC_DELAY_H
#define VCC_DELAY_H

#include "acceptability.h"
#include "mss.h"

/*
 * An ACK that comes by so much later than usual may be a delayed one. Timers of delayed ACKs are
 * longer: 40 ms in Linux (TCP_DELACK_MIN), 10 ms in smoltcp.
 */
#define LATE_US 5000u

/* What is sent so much later than a timed segment is not sent with it. */
#define APART_US 1000u

/* The longest tick of Linux' clock (CONFIG_HZ is 100 at least). */
#define TICK_MAX_US 10000u

/* A wait of 131 ms has the weight of all that was before. */
#define DELAY_SMOOTH_SHIFT 17
/* Delays are smoothed in 1/64 us. */
#define DELAY_UNIT_SHIFT 6

/*
 * Smooths a delay, weighted by its own length: what a connection waits for at a random moment of
 * its waiting. Weighted by number, a stall between a hundred quick answers would disappear. Returns
 * the sample, or 0 if it is none.
 */
VCC_INLINE uint32_t delay_sample(struct vcc_flow *f, uint32_t *smoothed, uint32_t *worst_us,
				 uint32_t delay_us)
{
	if (!delay_us || delay_us > RTT_MAX_US)
		return 0;
	uint32_t delay = delay_us << DELAY_UNIT_SHIFT;
	uint32_t apart = delay > *smoothed ? delay - *smoothed : *smoothed - delay;
	uint64_t weight = vcc_min(delay_us, 1u << DELAY_SMOOTH_SHIFT);
	/* Rounded up, or it would never quite get there. */
	uint32_t step =
	    (uint32_t)((apart * weight + (1u << DELAY_SMOOTH_SHIFT) - 1) >> DELAY_SMOOTH_SHIFT);

	if (!*smoothed)
		*smoothed = delay;
	else
		*smoothed += delay > *smoothed ? step : -step;
	*worst_us = vcc_max(*worst_us, delay_us);
	f->waits += f->waits < UINT16_MAX;
	return delay_us;
}

/* Is it later than an ACK that is not delayed? */
VCC_INLINE bool is_late(uint32_t smoothed, uint32_t delay_us)
{
	return delay_us > (smoothed >> DELAY_UNIT_SHIFT) + LATE_US;
}

/* Does the segment carry no more than an acknowledgement? */
VCC_INLINE bool is_bare(const struct vcc_segment *s)
{
	return !s->payload_bytes && !(s->flags & (TCP_SYN | TCP_FIN));
}

/* Was the segment full, so that its sender may have more? */
VCC_INLINE bool has_more(const struct vcc_segment *s, uint32_t mss_bytes)
{
	return s->payload_bytes >= mss_bytes && !(s->payload_bytes % cut_bytes(s)) &&
	       !(s->flags & TCP_FIN);
}

/* Does PSH end a write? The last segment that the window admits has it, too (push.h). */
VCC_INLINE bool ends_write(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (s->flags & TCP_PSH) && seq_distance(f->snd_nxt, f->right_edge) >= f->mss_bytes;
}

VCC_INLINE void guest_asked(struct vcc_flow *f, enum vcc_asked what, uint32_t seq,
			    const struct vcc_segment *s)
{
	f->asked = (uint8_t)what;
	f->asked_seq = seq;
	f->asked_us = (uint32_t)s->now_us;
	f->sends &= (uint8_t)~ASKED_AT_TICK;
	if (s->at_tick)
		f->sends |= ASKED_AT_TICK;
}

/*
 * Was the guest asked at the time of a tick, and so lately that the rest of the tick would matter?
 * After two ticks, one is no longer much of the wait.
 */
VCC_INLINE bool is_untimed(const struct vcc_flow *f, uint32_t now_us)
{
	return (f->sends & ASKED_AT_TICK) && elapsed_us(f->asked_us, now_us) < 2 * TICK_MAX_US;
}

/* The guest's answer, or what ends the wait for it. Returns the sample, or 0. */
VCC_INLINE uint32_t guest_answered(struct vcc_flow *f, uint32_t now_us, bool may_be_delayed)
{
	uint32_t delay_us = elapsed_us(f->asked_us, now_us);

	f->asked = ASKED_NOTHING;
	if (is_untimed(f, now_us))
		return 0;
	if (may_be_delayed && is_late(f->guest_us64, delay_us))
		return 0;
	return delay_sample(f, &f->guest_us64, &f->guest_worst_us, delay_us);
}

/*
 * From-guest: new data. If the peer delays the ACK of a timed segment until this data comes, the
 * guest has kept it waiting.
 */
VCC_INLINE void fabric_asked(struct vcc_flow *f, const struct vcc_segment *s, uint32_t end)
{
	if (end == f->rtt_seq) {
		f->sends &= (uint8_t)~SENDS_LATE;
	} else if (!(f->sends & SENDS_LATE) &&
		   elapsed_us(f->rtt_sent_us, (uint32_t)s->now_us) > APART_US) {
		f->sends |= SENDS_LATE;
		f->late_seq = s->seq;
	}
}

/*
 * Does the ACK leave out a full segment that was sent with the timed one? A peer that delays ACKs
 * acknowledges both (RFC 5681, 4.2), unless it has lost the second.
 */
VCC_INLINE bool leaves_out_segment(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t sent_with_it = (f->sends & SENDS_LATE) ? f->late_seq : f->snd_nxt;

	return !f->dupacks && !(s->options & OPT_SACK) &&
	       !seq_after(s->ack + f->mss_bytes, sent_with_it);
}

/* And does it come after the usual RTT, so that the second is not lost? */
VCC_INLINE bool is_prompt(const struct vcc_flow *f, const struct vcc_segment *s, uint32_t rtt_us)
{
	return leaves_out_segment(f, s) && rtt_us <= (f->srtt_us8 >> 3) + LATE_US;
}

/* To-guest: an acknowledgement whose RTT was measured (rtt.h). Returns the sample, or 0. */
VCC_INLINE uint32_t fabric_answered(struct vcc_flow *f, const struct vcc_segment *s,
				    const struct ack_news *news)
{
	if ((f->sends & SENDS_LATE) && seq_after(s->ack, f->late_seq))
		return 0;
	bool responds = !is_bare(s) && (f->flags & FLOW_GUEST_OPENED);

	if (!responds && news->acked_bytes <= f->mss_bytes && !is_prompt(f, s, news->rtt_us) &&
	    is_late(f->fabric_us64, news->rtt_us))
		return 0;
	return delay_sample(f, &f->fabric_us64, &f->fabric_worst_us, news->rtt_us);
}

/*
 * Does the ACK admit a segment of a guest that has one ready? `edge`: as the guest is shown it.
 * During a reduction its own window admits every second segment (RFC 6937), and it may wait for
 * more duplicate ACKs (RFC 5681, 3.2).
 */
VCC_INLINE bool admits_data(const struct vcc_flow *f, const struct vcc_segment *s,
			    const struct ack_news *news, uint32_t edge)
{
	bool reduces = f->ca_state != CA_OPEN || f->dupacks ||
		       ((s->flags & TCP_ECE) && !f->accecn) || (s->options & OPT_SACK);
	uint32_t least_bytes = reduces ? 2u * f->mss_bytes : 1;

	return news->acked_bytes >= least_bytes && (f->sends & SENDS_MORE) &&
	       !seq_after(f->snd_nxt + f->mss_bytes, edge);
}

/* What was measured before the flow's treatment switched it off says nothing about now. */
VCC_INLINE void delays_forget(struct vcc_flow *f)
{
	f->asked = ASKED_NOTHING;
	f->waits = 0;
	f->needless = 0;
	f->fabric_us64 = f->fabric_worst_us = 0;
	f->guest_us64 = f->guest_worst_us = 0;
	f->rcv_rtt = RCV_RTT_NONE;
	f->sends &= SENDS_FRAGMENTS;
}

/* To-guest: an acceptable segment, with the edge of the window that the guest is shown. */
VCC_INLINE void delay_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, const struct ack_news *news,
			       uint32_t edge, struct vcc_action *a)
{
	uint32_t end = segment_end(s);

	if (!p->delays) {
		delays_forget(f);
		return;
	}
	a->fabric_us = news->rtt_us;
	/* It has not answered by now: it may be off its core, and the wait is worth timing. */
	if (f->asked && !s->at_tick && is_untimed(f, (uint32_t)s->now_us))
		guest_asked(f, (enum vcc_asked)f->asked, f->asked_seq, s);
	/* Behind a hole, what the guest acknowledges is up to the peer. */
	if (s->payload_bytes && end == f->rcv_nxt && seq_after(end, f->rcv_wup)) {
		bool at_once = seq_distance(f->rcv_wup, end) >= 2u * f->mss_bytes;

		if (at_once && f->asked != ASKED_ACK)
			guest_asked(f, ASKED_ACK, end, s);
		else if (f->asked == ASKED_NOTHING)
			guest_asked(f, ASKED_ANSWER, end, s);
	} else if (s->payload_bytes && f->asked == ASKED_ANSWER) {
		/* Out of order: a delayed ACK is sent at once (RFC 5681, 4.2). */
		guest_asked(f, ASKED_ACK, f->asked_seq, s);
	} else if (f->asked == ASKED_NOTHING && admits_data(f, s, news, edge)) {
		guest_asked(f, ASKED_DATA, f->snd_nxt, s);
		/* The port's own wait is not the guest's. */
		f->asked_us += a->delay_us;
	}
}

/* From-guest: its acknowledgement, before it is tracked. */
VCC_INLINE void delay_acked(struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, struct vcc_action *a)
{
	bool responds = !is_bare(s) && !(f->flags & FLOW_GUEST_OPENED);

	if (!p->delays || !(s->flags & TCP_ACK) ||
	    (f->asked != ASKED_ANSWER && f->asked != ASKED_ACK))
		return;
	if (!seq_before(s->ack, f->asked_seq)) {
		a->guest_us =
		    guest_answered(f, (uint32_t)s->now_us,
				   !responds && (f->asked == ASKED_ANSWER || !opens_window(f, s)));
	} else if (is_bare(s) && s->ack == f->rcv_wup) {
		/* A duplicate ACK: the peer has to fill a hole first. */
		f->asked = ASKED_NOTHING;
	}
}

/* From-guest: its data, after it is tracked. */
VCC_INLINE void delay_sent(struct vcc_flow *f, const struct vcc_params *p,
			   const struct vcc_segment *s, enum vcc_sent sent, struct vcc_action *a)
{
	uint32_t end = segment_end(s);

	if (!p->delays || end == s->seq)
		return;
	/* A timer may bring a retransmission: then the guest did not wait for its turn. */
	if (f->asked == ASKED_DATA && (sent == SENT_AGAIN || sent == SENT_TAIL_AGAIN))
		f->asked = ASKED_NOTHING;
	if (f->asked == ASKED_DATA)
		a->guest_us = guest_answered(f, (uint32_t)s->now_us, false);
	if (sent == SENT_NEW || sent == SENT_PARTLY_NEW) {
		fabric_asked(f, s, end);
		f->sends &= (uint8_t)~SENDS_MORE;
		if (has_more(s, f->mss_bytes) && !ends_write(f, s))
			f->sends |= SENDS_MORE;
		return;
	}
	/*
	 * All of it was acknowledged to the guest. A keep-alive (RFC 9293, 3.8.4) and some stacks'
	 * probe of a closed window (3.8.6.1) begin one below snd_una.
	 */
	if (!seq_after(end, f->snd_una) && s->seq + 1 != f->snd_una)
		f->needless++;
}

#endif
