/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time that all timers of a CPU may take before others have it: timers that are due together
 * run one after another, in one softirq. They take turns: one that has run waits for those that had
 * to wait.
 */
#ifndef VCC_TIMER_BUDGET_H
#define VCC_TIMER_BUDGET_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "base.h"
#include "maps.h"

/* The timers' time; a flow in no cache takes some us beyond it. */
#define SHIFT_US 400u
/* The time without timers after it. */
#define SHIFT_REST_US 400u
/* More than this is caused by the machine: interrupts, or another guest of its own host. */
#define HELD_MAX_US 1000u
/* A run is at least as long, or it would not be worth its start. */
#define SHIFT_RUN_MIN_US 20u
/* A timer that had to wait, and did not fire again within this time, fires on another CPU now. */
#define SHIFT_OLD_US 10000u

/* Timers are bits, by their number. */
struct shift {
	uint64_t end_us;  /* of the last run */
	uint64_t waiting; /* they had to wait, and have not run since */
	uint64_t served;  /* they have run while others had to wait */
	uint64_t spent_us;
};

_Static_assert(TIMERS <= 64, "a bit per timer");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct shift);
} shifts SEC(".maps");

static __always_inline struct shift *shift_of_cpu(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&shifts, &zero);
}

/* Returns the time for which a timer may run; 0: it has to wait. */
static __always_inline uint32_t shift_begin(struct shift *s, uint32_t timer, uint64_t now)
{
	uint64_t bit = 1ull << (timer & 63), rested_us = now - s->end_us;

	if (rested_us >= SHIFT_REST_US)
		s->spent_us = 0;
	if (rested_us >= SHIFT_OLD_US)
		s->waiting = 0;
	if (!(s->waiting & ~s->served))
		s->served = 0;
	if ((s->served & bit) || s->spent_us + SHIFT_RUN_MIN_US > SHIFT_US) {
		s->waiting |= bit;
		return 0;
	}
	s->waiting &= ~bit;
	s->served |= bit;
	return (uint32_t)(SHIFT_US - s->spent_us);
}

/* Returns for how long timers have held the CPU. */
static __always_inline uint32_t shift_end(struct shift *s, uint64_t now, uint32_t took_us)
{
	s->spent_us += took_us;
	s->end_us = now;
	return (uint32_t)s->spent_us;
}

#endif
