/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hooks of a congestion control, after Linux's tcp_congestion_ops, over the state that the
 * engine infers. A file NAME.h defines, for some prefix P:
 *
 *	P_init(cc, initial_window_segs)
 *	P_on_feedback(cc, ack)		every ACK and report: the marked bytes
 *	P_on_ack(cc, ack)		may grow cwnd; not called during a reduction
 *	P_on_congestion(cc, cause, p)	sets ssthresh_segs; prr.h moves cwnd there
 *	P_on_timeout(cc)		sets ssthresh_segs and cwnd_segs (RFC 5681, 3.1)
 *	P_on_idle(cc, initial_window_segs)	sets the restart window (RFC 5681, 4.1)
 *	P_on_mss(cc, from_bytes, to_bytes)	the segment size changed; cwnd and ssthresh are
 *				converted already, private counts of segments are not
 *
 * and ends, outside of its include guard, with VCC_CC(id, "name", "about", traits, P): its name in
 * policies and commands, one line for the documentation, and all that the rest of vcc knows of it.
 * cc->path is what the engine has measured of the path (path.h): read it, do not write it.
 * cwnd_segs must stay at least 1. Integers only, and no unbounded loops. The functions of an
 * underlay that is loaded at run time are VCC_INLINE.
 */
#ifndef VCC_CC_HOOKS_H
#define VCC_CC_HOOKS_H

#include "../base.h"
#include "../vcc.h"

/*
 * The version of the hooks and of what they are given, for underlays that are compiled apart
 * (loaded.h): raise it with every change that one of these sizes does not show.
 */
#define CC_HOOKS_VERSION 3

/* ssthresh_segs before the first congestion. */
#define SSTHRESH_INFINITE 0x7fffffffu

/* Far above any window that the field can express; keeps cwnd_segs * mss_bytes within 32 bits. */
#define CWND_MAX_SEGS 65535u

enum vcc_cc_trait {
	CC_CONTROLS = 1,    /* its window is enforced on the guest */
	CC_ECN = 2,	    /* it negotiates ECN on the fabric */
	CC_ECT_ALL = 4,	    /* it sends retransmissions and ACKs as ECT too (RFC 8311, 4.3) */
	CC_PRIORITY = 8,    /* it heeds beta_1024 (AC/DC, 3.4) */
	CC_ALPHA = 16,	    /* own[CC_OWN_ALPHA] is DCTCP's alpha (RFC 8257, 3.3) */
	CC_TARGET = 32,	    /* it heeds path.target_us */
	CC_DELAY = 64,	    /* it is led by path.rtt_us */
	CC_FRACTIONS = 128, /* its window may be any part of a segment (fractional_window.h) */
};

/* With CC_ALPHA: the index in vcc_cc_state.own, and an alpha of 1. */
#define CC_OWN_ALPHA 0
#define CC_ALPHA_ONE 1024u

enum vcc_congestion {
	CONGESTION_ECN,	 /* marks with a byte count */
	CONGESTION_ECHO, /* a latched ECE: marks without a count (RFC 3168) */
	CONGESTION_LOSS,
};

struct vcc_cc_ack {
	uint32_t acked_bytes;	 /* newly acknowledged, without bytes delivered before (prr.h) */
	uint32_t reported_bytes; /* newly reported as received, marked or not */
	uint32_t marked_bytes;	 /* marked bytes among them */
	uint32_t srtt_us;	 /* SRTT (RFC 6298), or 0 before the first sample */
	uint32_t mss_bytes;
	uint32_t now_us;
	uint32_t snd_una; /* after this ACK */
	uint32_t snd_nxt;
	bool window_limited; /* the guest used its whole window (RFC 7661) */
	bool timed;	     /* it brings a sample of the RTT: cc->path is new */
	bool fractional;     /* the window may be any fraction of a segment (fractional_window.h) */
	uint8_t reserved;    /* 0: it is passed byte by byte (loaded.h) */
};

#endif
