/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The induction hypothesis of vCC's theorems (appendix A): how the engine's window relates to that
 * of the guest behind it.
 */
#ifndef VCC_THEOREM_H
#define VCC_THEOREM_H

#include "guest.h"

/* Is the reduction one that an idle period has left without a say on the window (prr.h)? */
static bool is_restarted(const struct vcc_flow *f)
{
	return f->ca_state == CA_CWR && !f->prr_prior_segs;
}

/* The fast recovery is not complete (RFC 6582, 3.2 step 3). */
static bool is_recovering(const struct vcc_flow *f)
{
	return f->ca_state == CA_RECOVERY && seq_before(f->snd_una, f->recover);
}

/* Lemma 1, first half: the window; and, where it is the same, what has been collected. */
static bool windows_ordered(const struct vcc_flow *f, const struct guest *g)
{
	return f->cc.cwnd_segs < g->cwnd_segs || (f->cc.cwnd_segs == g->cwnd_segs &&
						  f->cc.credit_bytes <= g->credit_segs * MSS_BYTES);
}

/*
 * Lemma 1, second half, of what holds: a mark sets the engine's ssthresh to half of a window that
 * the guest's own ssthresh may be far below.
 */
static bool thresholds_ordered(const struct vcc_flow *f, const struct guest *g)
{
	uint32_t ssthresh_segs = f->cc.ssthresh_segs;

	if (f->ca_state == CA_OPEN || is_restarted(f))
		return ssthresh_segs <= vcc_max(g->ssthresh_segs, g->cwnd_segs);
	if (f->ca_state == CA_CWR)
		return ssthresh_segs <= g->cwnd_segs &&
		       (f->underlay == UNDERLAY_dctcp ||
			ssthresh_segs <= vcc_max(g->cwnd_segs / 2, MIN_SSTHRESH_SEGS));
	return ssthresh_segs <= g->ssthresh_segs &&
	       (f->ca_state == CA_LOSS || ssthresh_segs <= g->cwnd_segs);
}

/* Lemma 3: the same recovery, up to the same number; and the same duplicates. */
static bool recoveries_equal(const struct vcc_flow *f, const struct guest *g)
{
	bool for_mark = f->ca_state == CA_OPEN || f->ca_state == CA_CWR;

	if (g->in_recovery != is_recovering(f) || g->repairs == for_mark)
		return false;
	if (g->repairs && g->recover != f->recover)
		return false;
	if (f->ca_state != CA_OPEN && (seq_distance(f->snd_una, f->recover) > flight_bytes(f) ||
				       seq_after(f->snd_una, f->recover)))
		return false;
	if (is_restarted(f) && f->snd_una != f->recover)
		return false;
	if (for_mark && (f->dupacks >= DUPACK_THRESHOLD || (f->dupacks && !flight_bytes(f))))
		return false;
	if ((for_mark || g->in_recovery) && g->dupacks != f->dupacks)
		return false;
	/* The segments that duplicates reported inflate the guest's window by as much. */
	return !g->in_recovery || g->cwnd_segs >= g->ssthresh_segs + f->dupacks;
}

/* What these need: the engine's window in states in which it does not grow, and its credit. */
static bool window_is_kept(const struct vcc_flow *f, const struct guest *g)
{
	bool reduced = f->ca_state == CA_RECOVERY || (f->ca_state == CA_CWR && !is_restarted(f));
	bool in_slow_start = f->cc.cwnd_segs < f->cc.ssthresh_segs;
	uint32_t credit_max = in_slow_start ? 0 : (f->cc.cwnd_segs - 1) * MSS_BYTES;

	if (reduced && (f->cc.cwnd_segs > f->cc.ssthresh_segs || f->cc.credit_bytes))
		return false;
	if (f->ca_state == CA_RECOVERY && !f->prr_prior_segs)
		return false;
	if (g->ssthresh_segs < MIN_SSTHRESH_SEGS)
		return false;
	/* Below two segments are only a guest after a timeout. */
	if (f->ca_state != CA_LOSS && g->cwnd_segs < 2)
		return false;
	return f->cc.credit_bytes <= credit_max;
}

static void claim_hypothesis(const struct vcc_flow *f, const struct guest *g)
{
	CLAIM(windows_ordered(f, g), "lemma 1: the engine's window is not above the guest's");
	CLAIM(thresholds_ordered(f, g), "lemma 1: nor does its slow start end above");
	CLAIM(recoveries_equal(f, g), "lemma 3: both recover at once, up to the same number");
	CLAIM(window_is_kept(f, g), "what the lemmas need of the window");
}

/* Parameters of the paper's senders: no PRR, no undo; and none of what the operator may add. */
static struct vcc_params papers_params(void)
{
	struct vcc_params p = any_params();

	p.mode = MODE_ENFORCE;
	p.act = ACT_WINDOW;
	p.prr = p.undo = p.emit = p.police = 0;
	p.pool_weight = 0;
	p.window_cap_bytes = p.rate_cap_bytes_per_ms = 0;
	__CPROVER_assume(p.window_floor_segs >= 1 && p.window_floor_segs <= MIN_SSTHRESH_SEGS &&
			 p.initial_window_segs >= 2);
	return p;
}

/* Segments are whole, up to the largest window of sequence numbers. */
static uint32_t any_segs(void)
{
	uint32_t segs = (uint32_t)nondet_u64();

	__CPROVER_assume(segs <= SEQ_WINDOW_MAX / MSS_BYTES);
	return segs;
}

/* The engine's state and the guest's before an event, by the hypothesis. */
static struct vcc_flow related_flow(const struct guest *g)
{
	struct vcc_flow f = nondet_flow();

	f.stage = STAGE_ESTABLISHED;
	f.underlay = UNDERLAY;
	f.mss_bytes = f.mss_max_bytes = MSS_BYTES;
	/* No run of equal segments is about to show another size. */
	f.short_run = 0;
	f.resent = RESENT_NOTHING;
	f.settled = true;
	/* This host has seen all of its segments (arrival.h). */
	f.lags = 0;
	f.flags &= ~(FLOW_SACK | FLOW_RELEASED | FLOW_LEFT_ALONE);
	f.flags |= FLOW_WINDOW_SHOWN;
	f.snd_nxt = f.snd_una + any_segs() * MSS_BYTES;
	f.prr_out_bytes = any_segs() * MSS_BYTES;
	f.prr_delivered_bytes = any_segs() * MSS_BYTES;
	f.cc.credit_bytes = any_segs() * MSS_BYTES;
	__CPROVER_assume(flow_invariant(&f) && (1u << f.wscale_shown) <= MSS_BYTES &&
			 f.window_received && f.window_shown);
	/* The application uses its window, or pauses (RFC 7661); its RTO is made of samples. */
	__CPROVER_assume(f.validated_us == f.sent_us && f.srtt_us8 <= RTT_MAX_US << 3 &&
			 f.rttvar_us4 <= RTT_MAX_US << 2);
	__CPROVER_assume(windows_ordered(&f, g) && thresholds_ordered(&f, g) &&
			 recoveries_equal(&f, g) && window_is_kept(&f, g));
	return f;
}

#endif
