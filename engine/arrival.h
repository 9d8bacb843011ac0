/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that comes to this host with its guest. The results of its handshake hold to its
 * end; the state of its sender half begins anew, with the window that it had, because this host's
 * path and clock are others.
 *
 * The previous host may have continued after it described the flow, if the guest still ran: then
 * the numbers lag. The guest's segments show how much it has sent, and the peer's ACKs how much of
 * that has arrived, until all that was sent before is acknowledged, which changes nothing here.
 * Until the guest is heard, a segment to it that is ahead of the flow is one that it refuses: it
 * passes with the window that the guest was shown (to_guest.h).
 */
#ifndef VCC_ARRIVAL_H
#define VCC_ARRIVAL_H

#include "acceptability.h"
#include "invariant.h"
#include "policy_change.h"
#include "policing.h"
#include "report.h"

/* The flags that describe a flow anywhere. */
#define FLOW_TRAVELS                                                                               \
	(FLOW_GUEST_OPENED | FLOW_SYN_SEEN_GUEST | FLOW_SYN_SEEN_PEER | FLOW_ECN_GUEST |           \
	 FLOW_ECN_FABRIC | FLOW_ECN_ASKED | FLOW_ACCECN_GUEST | FLOW_SACK | FLOW_TIMESTAMPS |      \
	 FLOW_WSCALE | FLOW_LEFT_ALONE | FLOW_ECN_FELL_BACK | FLOW_HELLO_OFFERED |                 \
	 FLOW_FIN_GUEST | FLOW_FIN_PEER | FLOW_WINDOW_SHOWN | FLOW_ECE_LATCHED | FLOW_CWR_DUE |    \
	 FLOW_FEEDBACK | FLOW_FEEDBACK_HEARD | FLOW_REPORT_DUE | FLOW_REPORT_CE |                  \
	 FLOW_PEER_DCTCP | FLOW_ECE_HEARD | FLOW_UNHEARD | FLOW_FEEDBACK_FALSE | FLOW_RELEASED)

/* What is measured against the numbers of the guest's data begins at them. */
VCC_INLINE void numbers_begin(struct vcc_flow *f)
{
	f->round_end = f->recover = f->ece_reported = f->snd_nxt;
	f->feedback_ack = f->overdraft_until = f->snd_una;
}

/*
 * The next report, or the next option of AccECN, is compared with none before it: on the host
 * before, others may have been heard.
 */
VCC_INLINE void marks_begin(struct vcc_flow *f)
{
	if (f->flags & FLOW_FEEDBACK)
		f->flags |= FLOW_FEEDBACK_LOST;
	f->unreported_bytes = SEQ_WINDOW_MAX;
	f->guessed_bytes = 0;
}

/* The window that it had; a reduction that was under way has come to its end (law 6). */
VCC_INLINE void window_begins(struct vcc_flow *f)
{
	struct vcc_cc_state *cc = &f->cc;

	cc->ssthresh_segs = vcc_max(cc->ssthresh_segs, 1);
	cc->cwnd_segs = vcc_min(vcc_max(cc->cwnd_segs, 1), CWND_MAX_SEGS);
	if (f->ca_state != CA_OPEN)
		cc->cwnd_segs = vcc_min(cc->cwnd_segs, cc->ssthresh_segs);
	reduction_restart(f);
	begin_with_window(f, cc->cwnd_segs);
}

/*
 * Takes over an established flow as the previous host has described it; its other fields are zero.
 * It is treated by `p`. Returns 0; -1: it is not established, or no flow can have such a state.
 */
VCC_INLINE int vcc_arrive(struct vcc_flow *f, const struct vcc_params *p, uint64_t now_us)
{
	if (f->stage != STAGE_ESTABLISHED || !is_underlay(f->underlay))
		return -1;
	f->flags &= FLOW_TRAVELS;
	f->last_seen_ms = (uint32_t)(now_us / 1000);
	f->progress_us = f->validated_us = f->sent_us = (uint32_t)now_us;
	f->lags = LAGS_GUEST | LAGS_PEER;
	numbers_begin(f);
	marks_begin(f);
	window_begins(f);
	if (!flow_invariant(f))
		return -1;
	vcc_judge_anew(f, p);
	return 0;
}

/* A flow that has arrived gives way to a later description until its guest is heard. */
VCC_INLINE bool gives_way_to_description(const struct vcc_flow *f)
{
	return f->lags & LAGS_GUEST;
}

/*
 * A flow whose guest has left is silent for this time: longer than the fabric still sends to where
 * the guest was, shorter than a guest needs to leave and to come back.
 */
#define GONE_MS 5000u

/*
 * A description of a flow that has stayed here, and whose guest has been heard: if it is ahead of a
 * silent flow, the guest has been elsewhere and comes back. The flow keeps what it knows, and lags.
 * Returns whether it does.
 */
VCC_INLINE bool vcc_come_back(struct vcc_flow *f, uint32_t snd_una, uint32_t rcv_wup,
			      uint32_t now_ms)
{
	bool is_ahead = seq_after(snd_una, f->snd_una) || seq_after(rcv_wup, f->rcv_wup);

	if (f->stage != STAGE_ESTABLISHED || !is_ahead || now_ms - f->last_seen_ms < GONE_MS)
		return false;
	f->lags = LAGS_GUEST | LAGS_PEER;
	f->settled = false;
	rtt_cancel(f);
	marks_begin(f);
	return true;
}

/* Is `seq` ahead of `at`, by more than sequence numbers are compared by, and no old one? */
VCC_INLINE bool is_far_ahead(const struct vcc_flow *f, uint32_t at, uint32_t seq)
{
	uint32_t oldest_bytes = (uint32_t)UINT16_MAX << f->wscale_shown;

	return seq - at > SEQ_WINDOW_MAX && at - seq > oldest_bytes;
}

/*
 * From-guest: a segment shows what the guest has sent before it. The first one shows what it has
 * received, too, and track_receiver() believes it. Where the flow is policed, only the first is
 * believed, or the guest would move its own edge before the peer's ACK of each flight.
 */
VCC_INLINE void catch_up_guest(struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s)
{
	if (!f->lags || !(s->flags & TCP_ACK))
		return;
	if (!(f->lags & LAGS_GUEST) && is_policed(f, p))
		return;
	if (is_far_ahead(f, f->snd_una, segment_end(s))) {
		f->snd_una = f->snd_nxt = f->right_edge = s->seq;
		f->flags &= ~(uint32_t)FLOW_WINDOW_SHOWN;
		numbers_begin(f);
	} else if (s->seq - f->snd_una <= SEQ_WINDOW_MAX && seq_after(s->seq, f->snd_nxt)) {
		f->snd_nxt = f->recover = s->seq;
		f->flags &= ~(uint32_t)FLOW_WINDOW_SHOWN;
	}
	f->right_edge = seq_max(f->right_edge, f->snd_nxt);
	if (!(f->lags & LAGS_GUEST))
		return;
	f->lags &= (uint8_t)~LAGS_GUEST;
	f->settled = false;
	if (is_far_ahead(f, f->rcv_wup, s->ack)) {
		receive_from(f, s->ack, (uint32_t)s->window << f->wscale_guest);
		f->rcv_nxt = s->ack;
	}
}

/*
 * To-guest: an ACK that the guest accepts. One that advances is no duplicate of the ACK before, and
 * the field of AccECN has nothing to be compared with.
 */
VCC_INLINE void catch_up_peer(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!f->lags)
		return;
	f->ace_heard = (uint8_t)ace_of(s->flags);
	if (seq_after(s->ack, f->snd_una)) {
		track_advance(f, s);
		f->feedback_ack = s->ack;
		f->flags &= ~(uint32_t)FLOW_WINDOW_SHOWN;
	}
	if (f->lags == LAGS_PEER && !seq_before(f->snd_una, f->recover))
		f->lags = 0;
}

#endif
