/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Congestion window validation (RFC 7661), as in Linux. A window that the guest does not use says
 * nothing about the path: it does not grow, and after each such RTO it drops halfway to its use.
 * The window already shown stays, because the right edge never moves left (law 2).
 */
#ifndef VCC_CWND_VALIDATION_H
#define VCC_CWND_VALIDATION_H

#include "pacing.h"
#include "sequence_tracking.h"
#include "treatment.h"

#define TSO_WIN_DIVISOR 3u
/* TSO deferral never holds back a whole super-segment. */
#define GSO_MAX_BYTES 65536u

/*
 * Does a flight of used_bytes fill a window? A sender with TSO defers less than a third of the
 * window until the next ACK (Linux: tcp_tso_should_defer, tcp_tso_win_divisor) and counts as
 * window-limited then. Otherwise a small window could never grow: a guest would only ever use 3
 * segments of 4.
 */
VCC_INLINE bool fills_window(const struct vcc_flow *f, uint32_t window_bytes, uint32_t used_bytes,
			     bool tso)
{
	uint32_t held_back_bytes = tso ? vcc_min(window_bytes / TSO_WIN_DIVISOR, GSO_MAX_BYTES) : 0;

	return used_bytes + vcc_max(held_back_bytes, f->mss_bytes) > window_bytes;
}

/* Does the guest fill the underlay's window? */
VCC_INLINE bool window_full(const struct vcc_flow *f, bool tso)
{
	return fills_window(f, f->cc.cwnd_segs * f->mss_bytes, flight_bytes(f), tso);
}

/*
 * Was the guest window-limited during the last round trip? An unused window must not grow (RFC
 * 7661; Linux: tcp_is_cwnd_limited).
 */
VCC_INLINE bool window_limited(const struct vcc_flow *f)
{
	if (f->flags & FLOW_WINDOW_LIMITED)
		return true;
	/* In slow start, the window may grow to twice the largest flight. */
	return f->cc.cwnd_segs < f->cc.ssthresh_segs &&
	       f->cc.cwnd_segs * f->mss_bytes < 2 * f->flight_max_bytes;
}

/*
 * snd_nxt of the modelled sender when it gets an ACK of `acked_bytes`. It has answered each earlier
 * ACK at once, unless it paces its segments. A guest may take ACKs from its ring in batches, so
 * that a whole batch passes the port before the guest answers its first; what they have admitted is
 * as good as sent if the guest fills its window. Less than a segment of it may stay unsent.
 */
VCC_INLINE uint32_t snd_nxt_due(const struct vcc_flow *f, const struct vcc_params *p,
				uint32_t acked_bytes)
{
	uint32_t end = f->snd_una - acked_bytes + f->cc.cwnd_segs * f->mss_bytes;

	if (!acts_by_window(f, p) || paces(f, p) || !(f->flags & FLOW_WINDOW_LIMITED) ||
	    !(f->sends & SENDS_MORE))
		return f->snd_nxt;
	return seq_max(f->snd_nxt, seq_min(f->right_edge, end));
}

/* Segments within this time are one burst. */
#define BURST_US 1000u

/* Records that the guest uses the current window in full. */
VCC_INLINE void cwnd_validated(struct vcc_flow *f, uint32_t now_us)
{
	f->used_max_bytes = 0;
	f->validated_us = now_us;
}

/* Linux's minimum of the RTO; RFC 6298, 2.4, has a second. */
#define IDLE_RTO_MIN_US 200000u

/*
 * The time without use after which a window is no longer valid: an RTO (RFC 5681, 4.1). A shell
 * that holds segments sends for a guest that may be off its core for tens of ms, which says nothing
 * about the path. A small RTO_min is for its repairs.
 */
VCC_INLINE uint32_t idle_rto_us(const struct vcc_flow *f, const struct vcc_params *p)
{
	uint32_t least_us = acts_by_hold(f, p) ? IDLE_RTO_MIN_US : 0;

	return rto_us(f, vcc_max(p->rto_min_us, least_us));
}

/* An ACK may have validated the window long after data was last sent. */
VCC_INLINE int32_t unused_us(const struct vcc_flow *f)
{
	return (int32_t)(f->sent_us - f->validated_us);
}

/* Reduces a window that has not been used for an RTO. Out of line, because it is rare. */
VCC_APART int window_reduce_unused(struct vcc_flow *f, const struct vcc_params *p)
{
	if (!f || !p || unused_us(f) < (int32_t)idle_rto_us(f, p) || !f->mss_bytes)
		return 0;
	uint32_t cwnd_segs = f->cc.cwnd_segs;
	uint32_t used_segs =
	    vcc_max(bytes_to_segs_ceil(f, f->used_max_bytes), vcc_max(p->initial_window_segs, 1));

	cwnd_validated(f, f->sent_us);
	if (f->ca_state != CA_OPEN || used_segs >= cwnd_segs)
		return 0;
	f->cc.ssthresh_segs = vcc_max(f->cc.ssthresh_segs, cwnd_segs / 2 + cwnd_segs / 4);
	f->cc.cwnd_segs = (cwnd_segs + used_segs) / 2;
	VCC_LAW(f->cc.cwnd_segs >= 1 && f->cc.cwnd_segs < cwnd_segs);
	return 0;
}

/*
 * The guest waits for an ACK or for its application (RFC 7661; Linux: tcp_cwnd_application_limited,
 * tcp_current_ssthresh).
 */
VCC_INLINE void application_limited(struct vcc_flow *f, const struct vcc_params *p)
{
	if (!window_limited(f) && unused_us(f) >= (int32_t)rto_least_us(p))
		window_reduce_unused(f, p);
}

/*
 * Records how much of its window the guest uses, when it sends and for a round trip, as Linux's
 * tcp_cwnd_validate. The flight at an ACK would mislead: a batch of ACKs shrinks it, although the
 * guest would use more.
 */
VCC_INLINE void cwnd_validate(struct vcc_flow *f, const struct vcc_params *p, uint32_t now_us,
			      bool tso)
{
	if (elapsed_us(f->sent_us, now_us) >= BURST_US)
		application_limited(f, p);
	bool next_round = !seq_before(f->snd_una, f->round_end);
	bool limited = window_full(f, tso);
	bool more = flight_bytes(f) > f->flight_max_bytes && !(f->flags & FLOW_WINDOW_LIMITED);

	if (next_round || limited || more) {
		f->flags &= ~(uint32_t)FLOW_WINDOW_LIMITED;
		if (limited)
			f->flags |= FLOW_WINDOW_LIMITED;
		f->flight_max_bytes = flight_bytes(f);
		f->round_end = f->snd_nxt;
	}
	f->sent_us = now_us;
	f->used_max_bytes = vcc_max(f->used_max_bytes, flight_bytes(f));
	if (window_limited(f))
		cwnd_validated(f, now_us);
}

#endif
