/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a congestion control implements, after Linux's tcp_congestion_ops, over the state that
 * the engine infers. A file NAME.h defines, for some prefix P,
 *
 *	P_init(cc, initial_window_segs)
 *	P_on_feedback(cc, ack)		every ACK and report: how much was marked
 *	P_on_ack(cc, ack)		cwnd may grow; not called while a reduction is under way
 *	P_on_congestion(cc, cause, p)	set ssthresh_segs; how cwnd gets there is prr.h's matter
 *	P_on_timeout(cc)		set ssthresh_segs and cwnd_segs (RFC 5681, 3.1)
 *	P_on_idle(cc, initial_window_segs)	the restart window (RFC 5681, 4.1)
 *	P_on_mss(cc, from_bytes, to_bytes)	a segment has another size, cwnd and ssthresh were
 *				counted anew: what else it counts in segments is its own matter
 *
 * and ends, outside of its include guard, with VCC_CC(id, "name", traits, P).
 * cwnd_segs must stay at least 1. Integers only, no loops that are not bounded.
 */
#ifndef VCC_CC_HOOKS_H
#define VCC_CC_HOOKS_H

#include "../base.h"
#include "../vcc.h"

/* ssthresh_segs before the first congestion. */
#define SSTHRESH_INFINITE 0x7fffffffu

/* Far above what a window field can say; keeps cwnd_segs * mss_bytes within 32 bits. */
#define CWND_MAX_SEGS 65535u

enum vcc_cc_trait {
	CC_CONTROLS = 1, /* its window is enforced on the guest */
	CC_ECN = 2,	 /* it wants ECN on the fabric */
	CC_ECT_ALL = 4,	 /* and all that it sends ECT, retransmissions and ACKs (RFC 8311, 4.3) */
};

enum vcc_congestion {
	CONGESTION_ECN,	 /* marks, told byte for byte */
	CONGESTION_ECHO, /* a latched ECE: there were marks, nobody knows how many (RFC 3168) */
	CONGESTION_LOSS,
};

struct vcc_cc_ack {
	uint32_t acked_bytes;	 /* newly acknowledged by this ACK, and not delivered long before */
	uint32_t reported_bytes; /* newly known to have arrived, marked or not */
	uint32_t marked_bytes;	 /* of these, those that met congestion */
	uint32_t srtt_us;	 /* smoothed (RFC 6298), or 0 before the first sample */
	uint32_t mss_bytes;
	uint32_t now_us;
	uint32_t snd_una; /* after this ACK */
	uint32_t snd_nxt;
	bool window_limited; /* the guest used what it was given (RFC 7661) */
};

#endif
