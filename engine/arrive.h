/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that comes to this host with its guest. What its handshake agreed on holds to its
 * end; the state of its sender half begins anew, with the window that it had, because this host's
 * path and clock are others.
 *
 * The host before may have gone on after it described the flow, if the guest still ran: then the
 * numbers lag. The guest's next segment tells its own, and the peer's next ACK, at them, how much
 * of them has arrived. Until the guest is heard, a segment to it that is ahead of the flow is one
 * that it refuses: it passes with the window that the guest was shown (to_guest.h).
 */
#ifndef VCC_ARRIVE_H
#define VCC_ARRIVE_H

#include "accept.h"
#include "invariant.h"
#include "judge.h"
#include "report.h"

/* The flags that describe a flow anywhere. */
#define FLOW_TRAVELS                                                                               \
	(FLOW_GUEST_OPENED | FLOW_SYN_SEEN_GUEST | FLOW_SYN_SEEN_PEER | FLOW_ECN_GUEST |           \
	 FLOW_ECN_FABRIC | FLOW_ECN_ASKED | FLOW_ACCECN_GUEST | FLOW_SACK | FLOW_TIMESTAMPS |      \
	 FLOW_WSCALE | FLOW_LEFT_ALONE | FLOW_ECN_FELL_BACK | FLOW_HELLO_OFFERED |                 \
	 FLOW_FIN_GUEST | FLOW_FIN_PEER | FLOW_ECE_LATCHED | FLOW_CWR_DUE | FLOW_FEEDBACK |        \
	 FLOW_FEEDBACK_HEARD | FLOW_REPORT_DUE | FLOW_REPORT_CE | FLOW_PEER_DCTCP |                \
	 FLOW_ECE_HEARD | FLOW_UNHEARD | FLOW_FEEDBACK_FALSE | FLOW_RELEASED)

/*
 * The next report, or the next option of AccECN, is compared with none before it: on the host
 * before, others may have been heard.
 */
VCC_INLINE void marks_arrive(struct vcc_flow *f)
{
	if (f->flags & FLOW_FEEDBACK)
		f->flags |= FLOW_FEEDBACK_LOST;
	f->unreported_bytes = SEQ_WINDOW_MAX;
	f->guessed_bytes = 0;
	f->ece_told = f->snd_nxt;
	f->feedback_ack = f->snd_una;
}

/*
 * Takes over an established flow as the host before has described it; all else of it is zero. It is
 * treated by `p`. Returns 0; -1: it is none, or no flow is like that.
 */
VCC_INLINE int vcc_arrive(struct vcc_flow *f, const struct vcc_params *p, uint64_t now_us)
{
	uint32_t now = (uint32_t)now_us;
	uint32_t cwnd_segs = vcc_min(vcc_max(f->cc.cwnd_segs, 1), CWND_MAX_SEGS);
	uint32_t ssthresh_segs = vcc_max(f->cc.ssthresh_segs, 1);

	if (f->stage != STAGE_ESTABLISHED || !is_underlay(f->underlay))
		return -1;
	f->flags &= FLOW_TRAVELS;
	f->last_seen_ms = (uint32_t)(now_us / 1000);
	f->progress_us = f->validated_us = f->sent_us = now;
	f->round_end = f->recover = f->snd_nxt;
	f->lags = LAGS_GUEST | LAGS_PEER;
	marks_arrive(f);
	cc_init(f->underlay, &f->cc, cwnd_segs);
	f->cc.cwnd_segs = cwnd_segs;
	f->cc.ssthresh_segs = ssthresh_segs;
	if (!flow_invariant(f))
		return -1;
	vcc_judge_anew(f, p);
	return 0;
}

/* From-guest: a segment with an acknowledgement tells what the guest has sent and received. */
VCC_INLINE void catch_up_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t end = segment_end(s);

	if (!(f->lags & LAGS_GUEST) || !(s->flags & TCP_ACK))
		return;
	f->lags &= (uint8_t)~LAGS_GUEST;
	if (!seq_plausible(f->snd_una, end))
		f->snd_una = f->snd_nxt = f->right_edge = s->seq;
	/* What is between was sent before. */
	f->snd_nxt = seq_max(f->snd_nxt, s->seq);
	f->right_edge = seq_max(f->right_edge, f->snd_nxt);
	receive_from(f, s->ack, (uint32_t)s->window << f->wscale_guest);
	f->rcv_nxt = s->ack;
	f->settled = true;
}

/*
 * To-guest: an ACK that the guest accepts. What it acknowledges may have been acknowledged before,
 * so it is no news, nor is the field of AccECN.
 */
VCC_INLINE void catch_up_peer(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (f->lags != LAGS_PEER)
		return;
	f->lags = 0;
	if (seq_after(s->ack, f->snd_una))
		f->snd_una = s->ack;
	f->feedback_ack = f->snd_una;
	f->ace_heard = (uint8_t)ace_of(s->flags);
}

#endif
