/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flows of a port: looking up, holding, creating and forgetting flows. Established flows
 * never give way. Half-open flows are limited to a part of the table, in which the oldest gives way
 * to the newest, as in a listener's SYN queue: if the part is full, or if as many handshakes as
 * fill it have begun since. A handshake takes a round trip, so a flood has to fill that part within
 * a round trip to disturb it.
 */
#ifndef VCC_FLOW_TABLE_H
#define VCC_FLOW_TABLE_H

#include "lock.h"
#include "minisock.h"
#include "forget_pace.h"
#include "policy.h"
#include "queues.h"
#include "flow_tag.h"
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

/*
 * With the lock held: is this still the flow that was looked up? The entry may have been reused
 * between lookup and lock.
 */
static __always_inline bool has_key(const struct vcc_entry *e, const struct vcc_key *key,
				    uint64_t tag)
{
	return e->check == tag_check(key, tag);
}

/*
 * The parameters of a flow's treatment: the port's own without a policy, else its rule's. Judges
 * the flow again if the policy's edition has changed. Null: the flow must be forgotten.
 */
static __always_inline struct vcc_params *treatment(struct vcc_port *port, struct vcc_flow *f,
						    const struct vcc_key *key, bool settle)
{
	if (!port->by_policy)
		return &port->params;
	uint8_t epoch = current_epoch();

	if (f->epoch != epoch && judge_anew(f, key, epoch, settle))
		return 0;
	return rule_params(f->epoch, f->rule);
}

/* The state of the flow that was looked up, by its lock; another flow is released. */
static __always_inline enum lock_state held(struct vcc_entry *e, const struct vcc_key *key,
					    uint64_t tag, enum lock_state found)
{
	if (found != LOCK_FREE || has_key(e, key, tag))
		return found;
	flow_unlock(&e->lock, false);
	return LOCK_GONE;
}

/* Locks a looked-up flow. LOCK_FREE: it is held now. LOCK_GONE: it was deleted or replaced. */
static __always_inline enum lock_state hold(struct vcc_entry *e, const struct vcc_key *key,
					    uint64_t tag)
{
	return held(e, key, tag, flow_lock(&e->lock));
}

/* hold() without waiting; without an entry, the flow is gone. LOCK_HELD: another CPU has it. */
static __always_inline enum lock_state try_hold(struct vcc_entry *e, const struct vcc_key *key,
						uint64_t tag)
{
	return e ? held(e, key, tag, flow_try_lock(&e->lock)) : LOCK_GONE;
}

/* hold() that counts a failure. */
static __always_inline bool hold_counted(struct vcc_entry *e, const struct vcc_key *key,
					 uint64_t tag)
{
	enum lock_state found = hold(e, key, tag);

	if (found != LOCK_FREE)
		count(key->port, found == LOCK_GONE ? COUNT_UNKNOWN : COUNT_CONTENDED);
	return found == LOCK_FREE;
}

/* A held flow whose handshake completed, or that is forgotten, is no longer half-open. */
static __always_inline void half_open_leave(struct vcc_entry *e, uint32_t port)
{
	struct vcc_usage *used = usage_of(port);
	struct vcc_place place = {
		.queue = QUEUE_HALF_OPEN,
		.port = (uint16_t)port,
		.at = e->half_open_at,
	};

	if (!e->half_open)
		return;
	e->half_open = false;
	bpf_map_delete_elem(&queued, &place);
	if (used)
		__sync_fetch_and_add(&used->half_open, -1);
}

/* Counts a flow less, which is in no table. */
static __always_inline void give_room_back(struct vcc_usage *used, struct vcc_host_usage *host)
{
	__sync_fetch_and_add(&used->flows, -1);
	__sync_fetch_and_add(&host->flows, -1);
	__sync_fetch_and_add(&host->forgotten, 1);
}

/*
 * Deletes and releases a held flow: it leaves rule, pool, queues and table. If the kernel fails to
 * delete it, it stays and its deadline expires again.
 */
int flow_forget(struct vcc_entry *e, const struct vcc_key *key)
{
	if (!e || !key)
		return -1;
	const struct vcc_port *port = port_at(key->port);
	struct vcc_usage *used = usage_of(key->port);
	struct vcc_host_usage *host = usage_of_host();

	if (!port || !used || !host)
		return -1;
	if (port->by_policy)
		leave_rule(&e->flow);
	half_open_leave(e, key->port);
	struct vcc_place due_at = e->due;
	uint64_t tag = flow_tag_apart(key);

	flow_unlock(&e->lock, true);
	if (bpf_map_delete_elem(&flows, &tag)) {
		flow_unlock(&e->lock, false);
		return -1;
	}
	/* If the key is gone, the timer has just taken it and will not find the flow. */
	bpf_map_delete_elem(&queued, &due_at);
	give_room_back(used, host);
	return 0;
}

struct making_room {
	uint32_t port;
	uint32_t at;	 /* the position that is looked at next */
	uint32_t behind; /* a flow gives way if it is so many positions behind the queue's end */
	bool found;
	uint64_t tag; /* of the flow that was found, and is held */
};

/*
 * bpf_loop's callback: finds the oldest half-open flow, and holds it. One that another CPU is
 * processing is spared, and keeps its place.
 */
static int find_oldest(uint32_t index, struct making_room *room)
{
	(void)index;
	struct vcc_wheel *w = wheel_of(room->port);

	if (!w)
		return 1;
	struct vcc_ends *ends = &w->ends[QUEUE_HALF_OPEN];
	struct vcc_place place = {
		.queue = QUEUE_HALF_OPEN,
		.port = (uint16_t)room->port,
		.at = room->at,
	};

	int32_t behind = (int32_t)(*(volatile uint32_t *)&ends->put - place.at);

	if (behind <= 0 || (uint32_t)behind < room->behind)
		return 1;
	room->at++;
	const struct vcc_key *oldest = bpf_map_lookup_elem(&queued, &place);

	if (!oldest) {
		queue_skip(ends, &place);
		return 0;
	}
	uint64_t tag = flow_tag(oldest);
	struct vcc_entry *e = flow_of(tag);
	enum lock_state state = try_hold(e, oldest, tag);

	if (state == LOCK_HELD)
		return 0;
	if (state == LOCK_FREE && e->half_open && e->half_open_at == place.at) {
		room->tag = tag;
		room->found = true;
		return 1;
	}
	if (state == LOCK_FREE)
		flow_unlock(&e->lock, false);
	/* The flow was deleted or has opened meanwhile. */
	bpf_map_delete_elem(&queued, &place);
	return 0;
}

/* The oldest half-open flow gives way, if there is one. */
static __noinline bool make_room(uint32_t port, uint32_t behind)
{
	struct vcc_wheel *w = wheel_of(port);
	struct making_room room = {
		.port = port,
		.at = w ? ends_first(w, QUEUE_HALF_OPEN) : 0,
		.behind = behind,
	};

	bpf_loop(GIVE_WAY_STEPS, find_oldest, &room, 0);
	/* It is held, so it is the one that was found. */
	struct vcc_entry *e = room.found ? flow_of(room.tag) : 0;

	if (!e)
		return false;
	minisock_leave(&e->flow, &e->key);
	if (flow_forget(e, &e->key))
		return false;
	count(port, COUNT_GAVE_WAY);
	return true;
}

/*
 * A port may hold so many times as many flows as all ports leave free: a dynamic threshold
 * (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998).
 * However many flows some ports create, the others find room.
 */
#define TIMES_FREE 32u

/* Counts a new flow of a port; false if the port or the host has no room for it. */
static __always_inline bool take_room(uint32_t index, const struct vcc_port *port,
				      struct vcc_usage *used)
{
	struct vcc_host_usage *host = usage_of_host();

	if (!host)
		return false;
	uint32_t own = __sync_fetch_and_add(&used->flows, 1);
	uint32_t all = __sync_fetch_and_add(&host->flows, 1);
	uint32_t free = all < constants.flows_max ? constants.flows_max - all : 0;
	bool host_has_room = own < constants.flows_reserved ||
			     (constants.flows_reserved ? own < TIMES_FREE * free : free > 0);

	__sync_fetch_and_add(&host->forgotten, -1);

	if ((own < port->flows_max && host_has_room) || make_room(index, 0))
		return true;
	give_room_back(used, host);
	return false;
}

/*
 * Creates and holds an entry, which is counted and in no queue. Null: there is no room for it, or,
 * with `there`, another CPU has just created it.
 */
static __always_inline struct vcc_entry *entry_create(const struct vcc_key *key,
						      const struct vcc_port *port,
						      struct vcc_usage *used,
						      struct vcc_entry **there)
{
	struct vcc_host_usage *host = usage_of_host();

	*there = 0;
	if (!host || !take_room(key->port, port, used))
		return 0;
	uint64_t tag = flow_tag_apart(key);
	long err = bpf_map_update_elem(&flows, &tag, fresh_entry, BPF_NOEXIST);
	struct vcc_entry *e = flow_of(tag);

	if (err || !e) {
		give_room_back(used, host);
		*there = e;
		return 0;
	}
	e->check = tag_check(key, tag);
	e->key = *key;
	e->due.queue = QUEUES;
	return e;
}

/*
 * Enters a new flow into the half-open queue; the oldest may give way to it. Fails if concurrent
 * CPUs have taken all the room, and the flow must not be created.
 *
 * A handshake that nobody ends would keep the queue's head where it is, and all that complete would
 * leave empty positions behind it, which find_oldest() would have to search. So the queue is no
 * longer than half-open flows can be many.
 */
static __always_inline bool half_open_enter(struct vcc_entry *e, const struct vcc_key *key,
					    const struct vcc_port *port, struct vcc_usage *used)
{
	struct vcc_place place = { .queue = QUEUE_HALF_OPEN, .port = key->port };
	struct vcc_wheel *w = wheel_of(key->port);

	if (!w)
		return false;
	struct vcc_ends *ends = &w->ends[QUEUE_HALF_OPEN];
	uint32_t most = half_open_max(port->flows_max);
	bool is_full = __sync_fetch_and_add(&used->half_open, 1) >= most;

	for (int i = 0; i < HALF_OPEN_SKIPS; i++) {
		struct vcc_place first = place;

		first.at = ends->taken;
		if (first.at != *(volatile uint32_t *)&ends->put &&
		    !bpf_map_lookup_elem(&queued, &first))
			queue_skip(ends, &first);
	}
	bool is_long = *(volatile uint32_t *)&ends->put - ends->taken >= most;
	bool made = (is_full || is_long) && make_room(key->port, is_full ? 0 : most);

	if ((!is_full || made) && !queue_put(ends, key, &place)) {
		e->half_open = true;
		e->half_open_at = place.at;
		return true;
	}
	__sync_fetch_and_add(&used->half_open, -1);
	return false;
}

#endif
