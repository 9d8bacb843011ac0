/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guest of vCC's theorems (appendix A.2 and A.5): NewReno without ECN and without SACK, in
 * whole segments. Where the paper says nothing, it does as Linux (docs/proofs.md).
 */
#ifndef VCC_GUEST_H
#define VCC_GUEST_H

#include "check.h"

/* One size of segments: an arbitrary one makes products of two unknowns, which no solver likes. */
#define MSS_BYTES 1440u
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

/* Equations 6 and 10, of the window instead of the flight. */
static void guest_halve(struct guest *g)
{
	g->ssthresh_segs = vcc_max(g->cwnd_segs / 2, MIN_SSTHRESH_SEGS);
	g->credit_segs = 0;
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
