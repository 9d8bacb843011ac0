/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Accurate ECN (RFC 9768) between vcc and a peer, in the name of a guest that has not agreed on it:
 * the handshake, and the receiver half, which reports to the peer what its segments met. The sender
 * half, which reads the peer's counters, is in marks.h.
 *
 * An AccECN end counts the marked packets that it receives (r.cep) and sends the count's last three
 * bits, the ACE field, in place of AE, CWR and ECE on every segment without SYN (3.2.2); and it may
 * send the marked bytes in an option (3.2.3), whose layout feedback.h shares. An older end answers
 * a request for AccECN as one for classic ECN (3.1.2).
 *
 * vcc's SYN or SYN-ACK leaves as Not-ECT (RFC 3168, 6.1.1), all later segments as ECT(0), those
 * without data too (RFC 8311, 4.3), as in Linux.
 */
#ifndef VCC_ACCECN_H
#define VCC_ACCECN_H

#include "acceptability.h"
#include "report.h"

#define ACE_SHIFT 6u
#define ACE_MASK  7u
_Static_assert(ACE_MASK << ACE_SHIFT == TCP_ECN_BITS, "ACE is AE, CWR and ECE (3.2.2)");
/* The bit of the field that CWR holds. */
#define ACE_CWR 2u
/* The packet counters' initial value (3.2.1), which a path that clears the bits changes. */
#define ACE_INITIAL 5u
/* The handshake's code for a SYN or SYN-ACK that arrived as Not-ECT (table 3). */
#define ACE_NOT_ECT 2u

/* The third SYN-ACK leaves after 1 s and 2 s (RFC 6298, 2.1 and 5.5). */
#define SYNACK_PATIENCE_US 2500000u

/* In syn_flags alone: the SYN requests AccECN, by the peer or in the guest's name. */
#define SYN_ACCECN_ASKED (1u << 13)

VCC_INLINE uint32_t ace_of(uint16_t flags)
{
	return (flags & TCP_ECN_BITS) >> ACE_SHIFT;
}

VCC_INLINE uint16_t with_ace(uint16_t flags, uint32_t ace)
{
	return (uint16_t)((flags & ~TCP_ECN_BITS) | (ace & ACE_MASK) << ACE_SHIFT);
}

/* The handshake's code for the ECN field of the other end's SYN or SYN-ACK (tables 2 and 3). */
VCC_INLINE uint32_t ace_of_ip_ecn(uint32_t ip_ecn)
{
	switch (ip_ecn) {
	case IP_ECN_ECT_1:
		return 3;
	case IP_ECN_ECT_0:
		return 4;
	case IP_ECN_CE:
		return 6;
	default:
		return ACE_NOT_ECT;
	}
}

/* Does vcc ask for AccECN and accept it, where the guest has not? */
VCC_INLINE bool brings_accecn(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->accecn && brings_ecn(f, p);
}

/* Both ends agree on AccECN. `ip_ecn`: how the peer's SYN or SYN-ACK arrived. */
VCC_INLINE void accecn_agree(struct vcc_flow *f, uint8_t ip_ecn)
{
	f->flags |= FLOW_ECN_FABRIC;
	f->flags &= ~(uint32_t)FLOW_ACCECN_GUEST;
	f->accecn = ACCECN_AGREED;
	f->syn_ip_ecn = ip_ecn;
}

/*
 * Initialises the counters when both SYNs have passed. `ace`: what the peer reported about vcc's
 * SYN or SYN-ACK, which left as Not-ECT. If it arrived as anything else, the path changes the
 * field: send no ECT (3.2.2.3). An option whose first field is zero has been cleared, because no
 * ECT counter begins there (3.2.3.2.3). Out of line, because a SYN's path has no stack to spare.
 */
VCC_APART int accecn_start(struct vcc_flow *f, const struct vcc_segment *s, uint32_t ace)
{
	if (!f || !s)
		return -1;
	bool opened = f->flags & FLOW_GUEST_OPENED;

	feedback_start(f);
	f->flags |= FLOW_REPORT_DUE;
	f->ace_heard = ACE_INITIAL + (!opened && ace == ace_of_ip_ecn(IP_ECN_CE));
	f->unreported_bytes = 0;
	f->guessed_bytes = 0;
	f->ack_segs64 = 0;
	if (!ace)
		f->flags |= FLOW_UNHEARD;
	else if (ace != ACE_NOT_ECT)
		f->flags |= FLOW_ECN_FELL_BACK;
	if ((s->options & (OPT_PACK | OPT_ACCECN_CE)) && !s->feedback.ect0_bytes)
		f->accecn |= ACCECN_OPTION_FALSE;
	return 0;
}

/*
 * To-guest: the SYN-ACK that accepts AccECN. 5 is reserved, and reports nothing about the path
 * (3.1.3). A mark on a SYN-ACK is counted, one on a SYN is not (3.2.2.2).
 */
VCC_INLINE void accecn_start_accepted(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t ace = ace_of(s->flags);

	f->ace_counted = ACE_INITIAL + (s->ip_ecn == IP_ECN_CE);
	accecn_start(f, s, ace == ACE_INITIAL ? ACE_NOT_ECT : ace);
}

/*
 * To-guest: the ACK that completes a passive open reports how the SYN-ACK arrived. With data the
 * field is the counter, and 1, 5 and 7 are reserved; zero comes from a path that clears it (3.2.2.1
 * and 3.2.2.4).
 */
VCC_INLINE void accecn_start_answered(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t ace = ace_of(s->flags);
	bool reserved = ace == 1 || ace == 5 || ace == 7;

	f->accecn |= ACCECN_HEARD | ACCECN_SETTLES;
	if (ace && (reserved || segment_end(s) != s->seq))
		ace = ACE_NOT_ECT;
	accecn_start(f, s, ace);
}

/* The guest's first SYN-ACK accepts AccECN, and tests whether the path lets the option through. */
VCC_INLINE void accecn_offer(const struct vcc_flow *f, const struct vcc_segment *s,
			     struct vcc_action *a)
{
	if (!f->accecn || s->option_room_bytes < OPT_PACK_BYTES)
		return;
	a->emit = EMIT_PACK;
	a->feedback = (struct vcc_feedback){ .ect0_bytes = COUNTER_ECT0_INITIAL };
}

/* The packets of a segment. */
VCC_INLINE uint32_t packets(const struct vcc_segment *s)
{
	return s->seg_bytes ? (s->payload_bytes + s->seg_bytes - 1) / s->seg_bytes : 1;
}

/*
 * To-guest: counts the marks of a segment, with or without data (3.2.2). Out of line, because the
 * caller has no stack to spare.
 */
VCC_APART int accecn_count(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!f || !s)
		return -1;
	if (s->ip_ecn == IP_ECN_CE)
		f->ace_counted += (uint8_t)packets(s);
	if (!s->payload_bytes)
		return 0;
	f->accecn &= (uint8_t)~ACCECN_ANSWERS; /* the guest's next ACK is theirs */
	if (s->ip_ecn == IP_ECN_ECT_1)
		f->accecn |= ACCECN_ECT_1;
	else
		feedback_count(f, s);
	return 0;
}

/*
 * From-guest: the segment carries the counter; the ACK of a SYN-ACK reports how that arrived
 * (3.2.2.1).
 *
 * Segmentation of a super-segment clears CWR in all but the first (RFC 3168, 6.1.2; Linux:
 * tcp_gso_segment), so a value with that bit would seem to run back. There the counter advances to
 * the next value without that bit, which reports up to two marks too many.
 */
VCC_INLINE void accecn_write(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a)
{
	bool splits = s->seg_bytes && s->payload_bytes > s->seg_bytes;
	bool answers = (f->accecn & ACCECN_ANSWERS) && segment_end(s) == s->seq;

	f->accecn &= (uint8_t)~ACCECN_ANSWERS;
	if (answers) {
		a->flags = with_ace(a->flags, ace_of_ip_ecn(f->syn_ip_ecn));
		return;
	}
	if (splits && (f->ace_counted & ACE_CWR))
		f->ace_counted = (uint8_t)((f->ace_counted | 3) + 1);
	a->flags = with_ace(a->flags, f->ace_counted);
}

/*
 * From-guest: a segment without data carries the option if the byte counters have moved. Its form
 * has no room for ECT(1), which must not be left out (3.2.3.3): without the option ACE is enough.
 */
VCC_INLINE void accecn_report(struct vcc_flow *f, const struct vcc_segment *s, struct vcc_action *a)
{
	if (!(f->flags & FLOW_REPORT_DUE) || (f->accecn & ACCECN_ECT_1) ||
	    segment_end(s) != s->seq || s->option_room_bytes < OPT_PACK_BYTES)
		return;
	a->emit = EMIT_PACK;
	report_counters(f, a);
}

#endif
