/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues of flows, by their keys: who is to be looked at when, and who gives way first. A queue is
 * a row of numbered places in a hash map; a flow remembers its place, and so can leave a queue from
 * its middle. No lock: places are given out by an atomic counter.
 *
 * bpf_timer for each flow is no way: its memory comes from an allocator that runs dry after some
 * hundred timers made at once (Linux 6.18), and a flow without a timer would stay for ever.
 */
#ifndef VCC_QUEUES_H
#define VCC_QUEUES_H

#include <linux/errno.h>

#include "maps.h"

/* So often a place is tried that the taker has just passed. */
#define PUT_TRIES_MAX 4

static __always_inline struct vcc_ends *queue_ends_of(uint32_t queue)
{
	return bpf_map_lookup_elem(&queue_ends, &queue);
}

/* A load that no earlier store of this CPU is reordered behind. */
static __always_inline uint32_t load_after_stores(uint32_t *value)
{
	return __sync_fetch_and_add(value, 0);
}

/*
 * Puts a flow at the end of a queue, and says where. A taker that finds no key at a place that was
 * given out goes on, and never comes back: so who was too late takes another. Returns 0, or the
 * map's error: the flow stands nowhere.
 */
static __always_inline long queue_put(void *map, const struct vcc_key *key, struct vcc_place *place)
{
	struct vcc_ends *ends = queue_ends_of(place->queue);

	if (!ends)
		return -ENOENT;
	for (int i = 0; i < PUT_TRIES_MAX; i++) {
		place->at = __sync_fetch_and_add(&ends->put, 1);
		long err = bpf_map_update_elem(map, place, key, BPF_NOEXIST);

		if (err)
			return err;
		if ((int32_t)(load_after_stores(&ends->taken) - place->at) <= 0)
			return 0;
		/* If it is not there any more, the taker has found it after all. */
		if (bpf_map_delete_elem(map, place))
			return 0;
	}
	return -EAGAIN;
}

/* Nothing at this place: the queue begins behind it, if it begins there. */
static __always_inline void queue_skip(struct vcc_ends *ends, uint32_t at)
{
	__sync_val_compare_and_swap(&ends->taken, at, at + 1);
}

#endif
