/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Feedback, receiver half: counts marked payload and reports it to the sender (feedback.h). */
#ifndef VCC_REPORT_H
#define VCC_REPORT_H

#include "ecn.h"

#define COUNTER_MASK 0xffffffu
/* Initial value of the ECT(0) counter (RFC 9768, 3.2.1). */
#define COUNTER_ECT0_INITIAL 1u
/* A report beside data is due every two segments, as an ACK (RFC 9293, 3.8.6.3), or at a mark. */
#define REPORT_SEGS 2u

/* Initialises the counters when both SYNs have passed. */
VCC_INLINE void feedback_start(struct vcc_flow *f)
{
	f->counted = (struct vcc_feedback){ .ect0_bytes = COUNTER_ECT0_INITIAL };
	f->heard = f->counted;
	f->feedback_ack = f->snd_una;
}

/* Is the peer a native DCTCP sender that expects DCTCP's echo? */
VCC_INLINE bool echoes_dctcp(const struct vcc_flow *f)
{
	return ecn_is_ours(f) && !f->accecn &&
	       (f->flags & (FLOW_PEER_DCTCP | FLOW_FEEDBACK)) == FLOW_PEER_DCTCP;
}

/* To-guest: counts received payload. */
VCC_INLINE void feedback_count(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!s->payload_bytes || s->ip_ecn == IP_ECN_NOT_ECT)
		return;
	f->flags |= FLOW_REPORT_DUE;
	f->uncounted_bytes += s->payload_bytes;
	if (s->ip_ecn == IP_ECN_CE) {
		f->counted.ce_bytes = (f->counted.ce_bytes + s->payload_bytes) & COUNTER_MASK;
		f->flags |= FLOW_REPORT_CE;
	} else {
		f->counted.ect0_bytes = (f->counted.ect0_bytes + s->payload_bytes) & COUNTER_MASK;
	}
}

VCC_INLINE void report_counters(struct vcc_flow *f, struct vcc_action *a)
{
	a->feedback = f->counted;
	f->flags &= ~(uint32_t)(FLOW_REPORT_DUE | FLOW_REPORT_CE);
	f->uncounted_bytes = 0;
}

/* From-guest: the guest's segment carries a due report, or the report goes beside it. */
VCC_INLINE void feedback_report(struct vcc_flow *f, const struct vcc_segment *s,
				struct vcc_action *a)
{
	bool pure = !s->payload_bytes && !(s->flags & (TCP_SYN | TCP_FIN | TCP_RST));

	if (!(f->flags & FLOW_REPORT_DUE) || !(s->flags & TCP_ACK) || (s->flags & TCP_RST))
		return;
	if (!pure && !(f->flags & FLOW_REPORT_CE) &&
	    f->uncounted_bytes < REPORT_SEGS * f->mss_bytes)
		return;
	a->emit = pure && s->option_room_bytes >= OPT_PACK_BYTES ? EMIT_PACK : EMIT_FACK;
	report_counters(f, a);
}

/*
 * Receiver half for a native DCTCP sender (RFC 8257, 3.2; vCC, A.7), which counts all bytes of an
 * ACK with ECE as marked. The RFC's receiver sends an immediate ACK whenever CE changes. vcc
 * invents no ACKs (law 9); it sets ECE when that brings the echoed bytes closer to the marked
 * bytes. ce_bytes holds the difference, as a signed number of 24 bits.
 */
VCC_INLINE void dctcp_echo(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a)
{
	if (!(s->flags & TCP_ACK) || (s->flags & TCP_RST))
		return;
	int32_t news_bytes = (int32_t)vcc_min(f->uncounted_bytes, COUNTER_MASK / 2);
	int32_t owed_bytes = (int32_t)(f->counted.ce_bytes << 8) >> 8;

	a->flags &= (uint16_t)~TCP_ECE;
	if (news_bytes && 2 * owed_bytes >= news_bytes) {
		a->flags |= TCP_ECE;
		f->counted.ce_bytes = (uint32_t)(owed_bytes - news_bytes) & COUNTER_MASK;
	}
	f->uncounted_bytes = 0;
}

#endif
