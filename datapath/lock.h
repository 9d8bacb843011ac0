/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of a flow, held around the engine.
 *
 * The kernel's bpf_spin_lock turns interrupts off and on again, which costs as much as the engine
 * itself (40 of 150 ns a segment, measured). Nothing here needs that: TCX programs and timers run
 * with softirqs off, so a holder is never interrupted by another taker on its own CPU, and every
 * path from lock to unlock is straight.
 */
#ifndef VCC_LOCK_H
#define VCC_LOCK_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "base.h"

/*
 * A holder is done in 50 ns; so many tries take longer than an interrupt does. Where even that is
 * not enough (a kernel with PREEMPT_RT may put a holder aside), the segment passes as it is.
 */
#define LOCK_TRIES_MAX 2048

struct lock_wait {
	uint32_t *lock;
	bool taken;
};

/* bpf_loop's callback: a loop in the program would be walked by the verifier try for try. */
static int lock_try(uint32_t index, struct lock_wait *wait)
{
	(void)index;
	wait->taken = __sync_val_compare_and_swap(wait->lock, 0, 1) == 0;
	return wait->taken;
}

VCC_INLINE bool flow_lock(uint32_t *lock)
{
	if (__sync_val_compare_and_swap(lock, 0, 1) == 0)
		return true;
	struct lock_wait wait = { .lock = lock };

	bpf_loop(LOCK_TRIES_MAX, lock_try, &wait, 0);
	return wait.taken;
}

/* An exchange is a full barrier: what the holder wrote is there before the lock is seen free. */
VCC_INLINE void flow_unlock(uint32_t *lock)
{
	__sync_lock_test_and_set(lock, 0);
}

#endif
