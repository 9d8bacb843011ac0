/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guest of vCC's theorems (appendix A.2 and A.5): NewReno without ECN and without SACK, in
 * whole segments. Where the paper says nothing, it does as Linux (docs/proofs.md).
 */
#ifndef VCC_GUEST_H
#define VCC_GUEST_H

#include "check.h"

/*
 * One size of segments: an arbitrary one makes products of two unknowns, which no solver likes, and
 * with one that is no power of two they take ten times as long.
 */
#define MSS_BYTES 1024u
/* A window's bytes stay far below 2^32. */
#define GUEST_WINDOW_MAX  (2 * CWND_MAX_SEGS)
#define MIN_SSTHRESH_SEGS 2u

struct guest {
	uint32_t cwnd_segs;
	uint32_t credit_segs;
	uint32_t ssthresh_segs;
	uint32_t recover; /* one past the highest number sent when it was set (RFC 6582) */
	uint32_t dupacks;
	bool in_recovery;
	bool repairs; /* ACKs have not covered more than recover */
};

struct guest nondet_guest(void);

static struct guest any_guest(void)
{
	struct guest g = nondet_guest();

	/* To the checker, an arbitrary _Bool may be neither. */
	g.in_recovery = nondet_bool();
	g.repairs = nondet_bool();
	__CPROVER_assume(g.cwnd_segs <= GUEST_WINDOW_MAX && g.credit_segs <= GUEST_WINDOW_MAX &&
			 g.ssthresh_segs <= SSTHRESH_INFINITE && g.dupacks < UINT16_MAX);
	return g;
}

/* Equations 3 and 4. */
static void guest_grow(struct guest *g, uint32_t acked_segs)
{
	uint32_t in_slow_start =
	    vcc_min(acked_segs, vcc_sub_floor0(g->ssthresh_segs, g->cwnd_segs));

	g->cwnd_segs += in_slow_start;
	g->credit_segs += acked_segs - in_slow_start;
	if (g->cwnd_segs >= g->ssthresh_segs && g->credit_segs >= g->cwnd_segs) {
		g->credit_segs -= g->cwnd_segs;
		g->cwnd_segs++;
	}
}

/* Equations 6 and 10, of the window instead of the flight. */
static void guest_halve(struct guest *g)
{
	g->ssthresh_segs = vcc_max(g->cwnd_segs / 2, MIN_SSTHRESH_SEGS);
	g->credit_segs = 0;
}

/* An ACK of acked_segs more, up to `ack`. */
static void guest_on_ack(struct guest *g, uint32_t ack, uint32_t acked_segs)
{
	uint32_t uncounted_segs = acked_segs;

	if (g->repairs && seq_after(ack, g->recover))
		g->repairs = false;
	/* Duplicates have counted what left the network beyond the hole. */
	if (g->dupacks)
		uncounted_segs = vcc_max(vcc_sub_floor0(acked_segs, g->dupacks), 1);
	if (g->in_recovery && seq_before(ack, g->recover)) { /* a partial ACK: equation 5 */
		g->cwnd_segs++;
		g->dupacks = vcc_sub_floor0(g->dupacks, acked_segs - 1);
		return;
	}
	g->dupacks = 0;
	if (!g->in_recovery) {
		guest_grow(g, acked_segs);
		return;
	}
	g->in_recovery = false; /* a full ACK: equation 8 */
	g->cwnd_segs = g->ssthresh_segs;
	if (!g->repairs)
		guest_grow(g, uncounted_segs);
}

/* A duplicate ACK (RFC 5681, 3.2; RFC 6582, 3.2). */
static void guest_on_duplicate(struct guest *g, uint32_t snd_nxt)
{
	g->dupacks++;
	if (g->in_recovery) {
		g->cwnd_segs++;
	} else if (g->dupacks == 3 && !g->repairs) {
		guest_halve(g);
		g->cwnd_segs = g->ssthresh_segs + 3; /* equation 7 */
		g->recover = snd_nxt;
		g->in_recovery = true;
		g->repairs = true;
	}
}

/* ssthresh is reduced once for a window of data (RFC 5681, 3.1). */
static void guest_on_timeout(struct guest *g, uint32_t snd_una, uint32_t snd_nxt)
{
	if (!g->repairs || !seq_before(snd_una, g->recover))
		guest_halve(g);
	g->cwnd_segs = 1; /* equation 9 */
	g->credit_segs = 0;
	g->recover = snd_nxt;
	g->in_recovery = false;
	g->repairs = true;
	g->dupacks = 0;
}

/* Equations 11 and 12. */
static void guest_on_idle(struct guest *g, uint32_t initial_segs)
{
	g->cwnd_segs = vcc_min(g->cwnd_segs, initial_segs);
	g->credit_segs = 0;
}

#endif
