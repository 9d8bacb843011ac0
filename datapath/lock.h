/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of a flow, held around the engine.
 *
 * bpf_spin_lock disables and enables interrupts, which costs as much as the engine itself (40 of
 * 150 ns per segment, measured). It is not needed: TCX programs and timers run with softirqs
 * disabled, so no other user on the same CPU can interrupt a holder, and every path from lock to
 * unlock is straight.
 */
#ifndef VCC_LOCK_H
#define VCC_LOCK_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "base.h"

/*
 * A lock is held for 50 ns, or some hundred ns with tracing. This many tries take half a
 * millisecond: longer than an interrupt, or than a contended virtual CPU is descheduled. If that is
 * not enough (PREEMPT_RT may preempt a holder), contended_flow.h judges the segment.
 */
#define LOCK_TRIES_MAX (1 << 14)

enum lock_state {
	LOCK_FREE = 0,
	LOCK_HELD,
	LOCK_GONE, /* the flow is being deleted: the lock cannot be taken again */
};

struct lock_wait {
	uint32_t *lock;
	uint32_t found;
};

/* bpf_loop's callback. The verifier would unroll a plain loop. */
static int lock_try(uint32_t index, struct lock_wait *wait)
{
	(void)index;
	wait->found = __sync_val_compare_and_swap(wait->lock, LOCK_FREE, LOCK_HELD);
	return wait->found != LOCK_HELD;
}

/* Returns the state found: LOCK_FREE means that the lock is taken now, any other that it is not. */
VCC_INLINE enum lock_state flow_lock(uint32_t *lock)
{
	uint32_t found = __sync_val_compare_and_swap(lock, LOCK_FREE, LOCK_HELD);

	if (found != LOCK_HELD)
		return (enum lock_state)found;
	struct lock_wait wait = { .lock = lock, .found = LOCK_HELD };

	bpf_loop(LOCK_TRIES_MAX, lock_try, &wait, 0);
	return (enum lock_state)wait.found;
}

/* flow_lock() without waiting. */
VCC_INLINE enum lock_state flow_try_lock(uint32_t *lock)
{
	return (enum lock_state)__sync_val_compare_and_swap(lock, LOCK_FREE, LOCK_HELD);
}

/*
 * The holder's writes must be visible before the lock is free. Before -mcpu=v4, BPF's only store
 * with release semantics is an exchange, a full barrier. On x86 every store has them.
 */
VCC_INLINE void flow_unlock(uint32_t *lock, bool gone)
{
#ifdef __TARGET_ARCH_x86
	__asm__ volatile("" : : : "memory");
	*(volatile uint32_t *)lock = gone ? LOCK_GONE : LOCK_FREE;
#else
	__sync_lock_test_and_set(lock, gone ? LOCK_GONE : LOCK_FREE);
#endif
}

#endif
