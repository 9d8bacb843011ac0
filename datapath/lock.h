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
 * A holder is done in 50 ns, or some hundred while it is traced; so many tries take half
 * a millisecond: longer than an interrupt does, or than a virtual CPU stays away that others want
 * too. Where even that is not enough (a kernel with PREEMPT_RT may put a holder aside), the segment
 * passes as it is.
 */
#define LOCK_TRIES_MAX (1 << 14)

enum lock_state {
	LOCK_FREE = 0,
	LOCK_HELD,
	LOCK_GONE, /* the flow is on its way out of the map: nobody takes it again */
};

struct lock_wait {
	uint32_t *lock;
	uint32_t found;
};

/* bpf_loop's callback: a loop in the program would be walked by the verifier try for try. */
static int lock_try(uint32_t index, struct lock_wait *wait)
{
	(void)index;
	wait->found = __sync_val_compare_and_swap(wait->lock, LOCK_FREE, LOCK_HELD);
	return wait->found != LOCK_HELD;
}

/* LOCK_FREE: it was, and is ours now. LOCK_GONE, or LOCK_HELD by another: it is not. */
VCC_INLINE enum lock_state flow_lock(uint32_t *lock)
{
	uint32_t found = __sync_val_compare_and_swap(lock, LOCK_FREE, LOCK_HELD);

	if (found != LOCK_HELD)
		return (enum lock_state)found;
	struct lock_wait wait = { .lock = lock, .found = LOCK_HELD };

	bpf_loop(LOCK_TRIES_MAX, lock_try, &wait, 0);
	return (enum lock_state)wait.found;
}

/* The same, where there is something else to do than to wait for it. */
VCC_INLINE enum lock_state flow_try_lock(uint32_t *lock)
{
	return (enum lock_state)__sync_val_compare_and_swap(lock, LOCK_FREE, LOCK_HELD);
}

/* An exchange is a full barrier: what the holder wrote is there before the lock is seen free. */
VCC_INLINE void flow_unlock(uint32_t *lock, bool gone)
{
	__sync_lock_test_and_set(lock, gone ? LOCK_GONE : LOCK_FREE);
}

#endif
