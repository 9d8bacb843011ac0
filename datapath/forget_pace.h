/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pace at which flows are forgotten. The kernel collects the entries that are deleted from a
 * map during a grace period, of 256 ms because call_rcu_tasks_trace() is lazy, and then moves all
 * of them in one interrupt, at 0.15 us each: they are in no cache any more. It may interrupt a
 * timer that has held the CPU for SHIFT_US. So timers and sweeps, which forget many flows, forget
 * few at a time. What a segment forgets was created by another.
 *
 * The limit is a virtual scheduling algorithm (ITU-T I.371, GCRA). Entries that new flows take are
 * not freed, so each new flow admits one more: the pace limits how fast flows become fewer, and
 * not how fast connections come and go.
 */
#ifndef VCC_FORGET_PACE_H
#define VCC_FORGET_PACE_H

#include "maps.h"

#define FORGETS_PER_MS 10u
/* So many at once, after a rest. */
#define FORGETS_BURST (4 * FORGETS_PER_MS)

static __always_inline bool may_forget(uint64_t now_us)
{
	struct vcc_host_usage *host = usage_of_host();
	uint64_t paced = now_us * FORGETS_PER_MS / 1000;

	if (!host)
		return true;
	uint64_t forgotten = *(volatile uint64_t *)&host->forgotten;
	int64_t ahead = (int64_t)(forgotten - paced);

	/* A rest is not saved up. If this fails, another CPU counts, and clears the rest soon. */
	if (ahead < 0)
		__sync_val_compare_and_swap(&host->forgotten, forgotten, paced);
	return ahead < (int64_t)FORGETS_BURST;
}

#endif
