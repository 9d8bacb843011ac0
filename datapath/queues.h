/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues of flow keys: the timer wheel's slots, and the order in which half-open flows give way. A
 * queue is a range of numbered positions in a hash map. A flow records its position, so it can
 * leave the middle of a queue. Queues are lock-free: an atomic counter assigns positions.
 *
 * A bpf_timer per flow would not work: timers are allocated from a cache that runs empty after some
 * hundred allocations in a row (Linux 6.18), and a flow without a timer would stay forever.
 */
#ifndef VCC_QUEUES_H
#define VCC_QUEUES_H

#include <linux/errno.h>

#include "maps.h"

/* Attempts to get a position that the consumer has not passed yet. */
#define PUT_TRIES_MAX 4

static __always_inline struct vcc_ends *ends_of(struct vcc_wheel *w, uint32_t queue)
{
	uint64_t at = queue;

	/* Keep it in one register: the verifier bounds the one compared, not the one added. */
	asm volatile("" : "+r"(at));
	return at < QUEUES ? &w->ends[at] : 0;
}

/* The first position of a queue. */
static __always_inline uint32_t ends_first(struct vcc_wheel *w, uint32_t queue)
{
	struct vcc_ends *ends = ends_of(w, queue);

	return ends ? ends->taken : 0;
}

/* A load that no earlier store of this CPU is reordered behind. */
static __always_inline uint32_t load_after_stores(uint32_t *value)
{
	return __sync_fetch_and_add(value, 0);
}

/*
 * Appends a held flow to a queue and returns its position in `place`. A consumer skips a position
 * that is assigned but still empty, so a producer that was too late takes another one. Returns 0 or
 * an error; after an error the flow is in no queue.
 */
static __always_inline long queue_put(struct vcc_ends *ends, const struct vcc_key *key,
				      struct vcc_place *place)
{
	for (int i = 0; i < PUT_TRIES_MAX; i++) {
		place->at = __sync_fetch_and_add(&ends->put, 1);
		long err = bpf_map_update_elem(&queued, place, key, BPF_NOEXIST);

		if (err)
			return err;
		if ((int32_t)(load_after_stores(&ends->taken) - place->at) <= 0)
			return 0;
		/* If the key is gone, the consumer found it in time. */
		err = bpf_map_delete_elem(&queued, place);
		if (err)
			return err == -ENOENT ? 0 : err;
	}
	return -EAGAIN;
}

/*
 * Skips an empty position at the queue's head. A producer may have filled it meanwhile, and have
 * seen that it was not passed yet: then the head returns to it. It does not if another consumer has
 * advanced from there; only the half-open queue has several, and its flows have deadlines, too.
 */
static __always_inline void queue_skip(struct vcc_ends *ends, const struct vcc_place *place)
{
	if (__sync_val_compare_and_swap(&ends->taken, place->at, place->at + 1) == place->at &&
	    bpf_map_lookup_elem(&queued, place))
		__sync_val_compare_and_swap(&ends->taken, place->at + 1, place->at);
}

#endif
