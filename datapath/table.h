/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow table of a port: looking up, holding, creating and forgetting flows. Established flows
 * never give way. Half-open flows are limited to a part of the table, in which the oldest gives way
 * to the newest, as in a listener's SYN queue. A handshake takes a round trip, so a flood has to
 * fill that part within a round trip to disturb it.
 */
#ifndef VCC_TABLE_H
#define VCC_TABLE_H

#include "lock.h"
#include "policy.h"
#include "queues.h"
#include "engine.h"

/* Positions of the queue that are searched for a flow that can give way. */
#define GIVE_WAY_STEPS 64
/* Empty positions at the queue's head that each new flow clears. */
#define HALF_OPEN_SKIPS 2

/*
 * The initial value of an entry for bpf_map_update_elem. Its lock is held by the creator, so that
 * no other CPU sees a flow without a rule.
 */
static const uint8_t fresh_entry[sizeof(struct vcc_entry)] = {
	[__builtin_offsetof(struct vcc_entry, lock)] = LOCK_HELD,
};

static __always_inline struct vcc_usage *port_usage(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&usage, &zero);
}

/* A hash of the key (FNV's multiplier). Keys that differ in their ports only never collide. */
static __always_inline uint64_t key_tag(const struct vcc_key *key)
{
	const uint64_t *words = (const void *)key;
	uint64_t addresses = words[0];

	_Static_assert(sizeof(*key) == 5 * sizeof(*words), "four words of addresses, one of ports");
	for (int i = 1; i < 4; i++)
		addresses = addresses * 0x100000001b3ull ^ words[i];
	return addresses * 0x100000001b3ull ^ words[4];
}

/*
 * With the lock held: is this still the flow that was looked up? The entry may have been reused
 * between lookup and lock.
 */
static __always_inline bool is_of(const struct vcc_entry *e, const struct vcc_key *key)
{
	return e->tag == key_tag(key);
}

/*
 * The parameters of the flow's treatment: the port's own without a policy, else its rule's. Judges
 * the flow again if the policy's edition has changed. Null: the flow must be forgotten.
 */
static __always_inline struct vcc_params *treatment(struct vcc_params *port, struct vcc_flow *f,
						    const struct vcc_key *key, bool settle)
{
	if (!constants.by_policy)
		return port;
	uint8_t epoch = current_epoch();

	if (f->epoch != epoch && judge_anew(f, key, epoch, settle))
		return 0;
	return rule_params(f->epoch, f->rule);
}

/* Locks a looked-up flow. LOCK_FREE: it is held now. LOCK_GONE: it was deleted or replaced. */
static __always_inline enum lock_state hold(struct vcc_entry *e, const struct vcc_key *key)
{
	enum lock_state found = flow_lock(&e->lock);

	if (found != LOCK_FREE || is_of(e, key))
		return found;
	flow_unlock(&e->lock, false);
	return LOCK_GONE;
}

/* hold() that counts a failure. */
static __always_inline bool hold_counted(struct vcc_entry *e, const struct vcc_key *key)
{
	enum lock_state found = hold(e, key);

	if (found != LOCK_FREE)
		count(found == LOCK_GONE ? COUNT_UNKNOWN : COUNT_CONTENDED);
	return found == LOCK_FREE;
}

/* A held flow whose handshake completed, or that is forgotten, is no longer half-open. */
static __always_inline void half_open_leave(struct vcc_entry *e)
{
	struct vcc_usage *used = port_usage();
	struct vcc_place place = { .queue = QUEUE_HALF_OPEN, .at = e->half_open_at };

	if (!e->half_open)
		return;
	e->half_open = false;
	/* If the key is gone, give_way() has taken it and will see `half_open` cleared. */
	bpf_map_delete_elem(&half_open, &place);
	if (used)
		__sync_fetch_and_add(&used->half_open, -1);
}

/*
 * Deletes and releases a held flow: it leaves rule, pool, queues and table. If the kernel fails to
 * delete it, it stays and its deadline expires again.
 */
int flow_forget(struct vcc_entry *e, const struct vcc_key *key)
{
	struct vcc_usage *used = port_usage();

	if (!e || !key || !used)
		return -1;
	if (constants.by_policy)
		leave_rule(&e->flow);
	half_open_leave(e);
	struct vcc_place due_at = e->due;

	flow_unlock(&e->lock, true);
	if (bpf_map_delete_elem(&flows, key)) {
		flow_unlock(&e->lock, false);
		return -1;
	}
	/* If the key is gone, the timer has just taken it and will not find the flow. */
	bpf_map_delete_elem(&due, &due_at);
	__sync_fetch_and_add(&used->flows, -1);
	return 0;
}

struct making_room {
	bool made;
};

/* bpf_loop's callback: forgets the oldest half-open flow. */
static int give_way(uint32_t index, struct making_room *room)
{
	(void)index;
	struct vcc_ends *ends = queue_ends_of(QUEUE_HALF_OPEN);
	/* key_tag() reads it as words. */
	struct vcc_key key __attribute__((aligned(8)));

	if (!ends)
		return 1;
	struct vcc_place place = { .queue = QUEUE_HALF_OPEN, .at = ends->taken };

	if (place.at == *(volatile uint32_t *)&ends->put)
		return 1;
	if (__sync_val_compare_and_swap(&ends->taken, place.at, place.at + 1) != place.at)
		return 0;
	const struct vcc_key *oldest = bpf_map_lookup_elem(&half_open, &place);

	if (!oldest)
		return 0;
	__builtin_memcpy(&key, oldest, sizeof(key));
	bpf_map_delete_elem(&half_open, &place);
	struct vcc_entry *e = bpf_map_lookup_elem(&flows, &key);

	/* Spare a flow that another CPU is processing; its deadline remains. */
	if (!e || flow_try_lock(&e->lock) != LOCK_FREE)
		return 0;
	if (!is_of(e, &key) || !e->half_open || e->half_open_at != place.at) {
		flow_unlock(&e->lock, false);
		return 0;
	}
	if (flow_forget(e, &key))
		return 0;
	count(COUNT_GAVE_WAY);
	room->made = true;
	return 1;
}

static __always_inline bool make_room(void)
{
	struct making_room room = {};

	bpf_loop(GIVE_WAY_STEPS, give_way, &room, 0);
	return room.made;
}

/* Counts a new flow; false if the table is full. */
static __always_inline bool take_room(struct vcc_usage *used)
{
	if (__sync_fetch_and_add(&used->flows, 1) < constants.flows_max || make_room())
		return true;
	__sync_fetch_and_add(&used->flows, -1);
	return false;
}

/*
 * Enters a new flow into the half-open queue; the oldest may give way to it. Fails if concurrent
 * CPUs have taken all the room, and the flow must not be created.
 */
static __always_inline bool half_open_enter(struct vcc_entry *e, const struct vcc_key *key,
					    struct vcc_usage *used)
{
	struct vcc_place place = { .queue = QUEUE_HALF_OPEN };
	struct vcc_ends *ends = queue_ends_of(QUEUE_HALF_OPEN);
	uint32_t before = __sync_fetch_and_add(&used->half_open, 1);

	if (!ends)
		return false;
	for (int i = 0; i < HALF_OPEN_SKIPS; i++) {
		struct vcc_place first = { .queue = QUEUE_HALF_OPEN, .at = ends->taken };

		if (first.at != *(volatile uint32_t *)&ends->put &&
		    !bpf_map_lookup_elem(&half_open, &first))
			queue_skip(ends, first.at);
	}
	if ((before < half_open_max(constants.flows_max) || make_room()) &&
	    !queue_put(&half_open, key, &place)) {
		e->half_open = true;
		e->half_open_at = place.at;
		return true;
	}
	__sync_fetch_and_add(&used->half_open, -1);
	return false;
}

#endif
