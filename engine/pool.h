/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools: flows that share a window (vCC, section 4). The outstanding data of a pool's flows is
 * limited to a constant, divided among the active flows by weight. A shown window is never taken
 * back (law 2), so a new active flow gains its share as ACKs shrink the others' windows. The pool
 * accounts for each flow's held bytes, its flight plus the unused rest of its window, and no flow
 * is shown more than the pool has left, from its SYN-ACK on. Flows on several CPUs share the pool:
 * changes are atomic, and bytes are taken before they are shown.
 *
 * An idle flow may still send the window it was shown last. A reserve is kept free for idle flows,
 * limited so that they cannot occupy the whole pool. The pool can therefore be overdrawn when many
 * idle flows resume at once.
 */
#ifndef VCC_POOL_H
#define VCC_POOL_H

#include "window_cap.h"

/* A flow without data in flight is idle after this time without a segment. */
#define POOL_IDLE_MS 500u
/* A flow with data in flight is idle after this time: Linux's RTO is at most 120 s. */
#define POOL_SILENT_MS 150000u
/* The reserve for idle flows is at most 1/8 of the pool. */
#define POOL_RESERVE_SHIFT 3

/* Without padding, as struct vcc_params. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* A pool's account. */
struct vcc_pool {
	uint32_t held_bytes;
	uint32_t idle_bytes;	  /* windows that idle flows still hold */
	uint32_t weight;	  /* sum of the active flows' weights */
	uint32_t most_held_bytes; /* maximum of held_bytes, as a statistic */
	/*
	 * How often a charge exceeded the pool: for a minimum window, a flow that resumed or came
	 * with more than was left, or a guest that sent more than it was shown.
	 */
	uint32_t overdrawn;
};

#pragma GCC diagnostic pop

VCC_INLINE bool pool_has(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->pool_weight && f->stage != STAGE_NONE && f->stage != STAGE_CLOSED &&
	       is_controlled(f) && imposes(f, p);
}

/* The flow's flight plus the unused rest of its window. */
VCC_INLINE uint32_t pool_flow_bytes(const struct vcc_flow *f)
{
	if (f->stage != STAGE_ESTABLISHED)
		return 0;
	return seq_distance(f->snd_una, seq_max(f->right_edge, f->snd_nxt));
}

/* The pool's size without the reserve for idle flows. */
VCC_INLINE uint32_t pool_room(const struct vcc_pool *pool, const struct vcc_params *p)
{
	uint32_t idle_bytes = *(const volatile uint32_t *)&pool->idle_bytes;

	return p->pool_bytes - vcc_min(idle_bytes, p->pool_bytes >> POOL_RESERVE_SHIFT);
}

VCC_INLINE uint32_t pool_share(const struct vcc_pool *pool, const struct vcc_flow *f,
			       const struct vcc_params *p)
{
	uint32_t weight = *(const volatile uint32_t *)&pool->weight;

	/* A flow in its handshake counts as active; an inactive established one has no share. */
	if (!(f->shell & SHELL_POOL_ACTIVE)) {
		if (f->stage == STAGE_ESTABLISHED)
			return 0;
		weight += p->pool_weight;
	}
	/* Another CPU may not have added this flow's weight yet. */
	weight = vcc_max(weight, p->pool_weight);
	return (uint32_t)((uint64_t)pool_room(pool, p) * p->pool_weight / weight);
}

/* Takes up to `wanted_bytes` from the pool's free bytes. Returns the bytes taken. */
VCC_INLINE uint32_t pool_take(struct vcc_pool *pool, const struct vcc_params *p,
			      uint32_t wanted_bytes)
{
	uint32_t before = __sync_fetch_and_add(&pool->held_bytes, wanted_bytes);
	uint32_t left = vcc_sub_floor0(pool_room(pool, p), before);

	if (wanted_bytes <= left)
		return wanted_bytes;
	__sync_fetch_and_add(&pool->held_bytes, left - wanted_bytes);
	return left;
}

/* Charges the pool with more held bytes, even beyond its size. */
VCC_INLINE void pool_charge(struct vcc_pool *pool, uint32_t total_bytes, uint32_t more_bytes)
{
	uint32_t before = __sync_fetch_and_add(&pool->held_bytes, more_bytes);

	if (before + more_bytes > total_bytes)
		__sync_fetch_and_add(&pool->overdrawn, 1);
}

/*
 * Called once a flow's charge has changed. Not atomic, so concurrent CPUs may miss a maximum by a
 * segment.
 */
VCC_INLINE void pool_note_most(struct vcc_pool *pool)
{
	uint32_t held_bytes = *(const volatile uint32_t *)&pool->held_bytes;

	if (held_bytes > pool->most_held_bytes)
		pool->most_held_bytes = held_bytes;
}

/* Removes the flow from the pool's account: idle, closed, or under another treatment. */
VCC_INLINE void pool_leave(struct vcc_pool *pool, struct vcc_flow *f, uint32_t held_bytes,
			   uint16_t weight)
{
	if (f->shell & SHELL_POOL_MEMBER)
		__sync_fetch_and_add(&pool->held_bytes, -held_bytes);
	if (f->shell & SHELL_POOL_IDLE)
		__sync_fetch_and_add(&pool->idle_bytes, -held_bytes);
	if (f->shell & SHELL_POOL_ACTIVE)
		__sync_fetch_and_add(&pool->weight, -(uint32_t)weight);
	f->shell &= (uint8_t)~SHELL_POOL;
}

VCC_INLINE void pool_join(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			  bool sends, uint32_t flow_bytes)
{
	if (f->shell & SHELL_POOL_IDLE)
		pool_leave(pool, f, flow_bytes, p->pool_weight);
	if (!(f->shell & SHELL_POOL_MEMBER)) {
		f->shell |= SHELL_POOL_MEMBER;
		if (flow_bytes)
			pool_charge(pool, p->pool_bytes, flow_bytes);
	}
	if (sends && !(f->shell & SHELL_POOL_ACTIVE)) {
		f->shell |= SHELL_POOL_ACTIVE;
		__sync_fetch_and_add(&pool->weight, p->pool_weight);
	}
}

/*
 * Before the engine: takes what the flow's share has beyond `flow_bytes`, and writes the flow's
 * limit into the segment.
 */
VCC_INLINE void pool_reserve(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			     bool to_guest, struct vcc_segment *s, uint32_t flow_bytes)
{
	s->pool_bytes = 0;
	s->pool_taken_bytes = flow_bytes;
	if (!pool_has(f, p)) {
		pool_leave(pool, f, flow_bytes, p->pool_weight);
		return;
	}
	pool_join(pool, f, p, !to_guest && s->payload_bytes, flow_bytes);
	uint32_t share = pool_share(pool, f, p);

	if (to_guest && share > s->pool_taken_bytes)
		s->pool_taken_bytes += pool_take(pool, p, share - s->pool_taken_bytes);
	s->pool_bytes = vcc_max(vcc_min(share, s->pool_taken_bytes), 1);
}

/*
 * Called before the engine: writes the flow's limit into the segment. Only a segment to the guest
 * can enlarge the window, so only there bytes are taken from the pool.
 */
VCC_INLINE void pool_begin(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			   bool to_guest, struct vcc_segment *s)
{
	pool_reserve(pool, f, p, to_guest, s, pool_flow_bytes(f));
}

/* After the engine: charges what the flow has taken and uses, and returns the rest. */
VCC_INLINE void pool_settle(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, uint32_t flow_bytes)
{
	if (!(f->shell & SHELL_POOL_MEMBER))
		return;
	if (!pool_has(f, p)) {
		pool_leave(pool, f, s->pool_taken_bytes, p->pool_weight);
		return;
	}
	if (flow_bytes > s->pool_taken_bytes)
		pool_charge(pool, p->pool_bytes, flow_bytes - s->pool_taken_bytes);
	else if (flow_bytes < s->pool_taken_bytes)
		__sync_fetch_and_add(&pool->held_bytes, flow_bytes - s->pool_taken_bytes);
	pool_note_most(pool);
}

/* Called after the engine: settles the pool's account with the flow's held bytes. */
VCC_INLINE void pool_end(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			 const struct vcc_segment *s)
{
	pool_settle(pool, f, p, s, pool_flow_bytes(f));
}

/* Marks the flow as idle, if it has been silent. */
VCC_INLINE void pool_mark_idle(struct vcc_pool *pool, struct vcc_flow *f,
			       const struct vcc_params *p, uint32_t now_ms, uint32_t flow_bytes)
{
	uint32_t patience_ms = flight_bytes(f) ? POOL_SILENT_MS : POOL_IDLE_MS;

	if (!(f->shell & SHELL_POOL_MEMBER) ||
	    (int32_t)(now_ms - f->last_seen_ms) < (int32_t)patience_ms)
		return;
	pool_leave(pool, f, flow_bytes, p->pool_weight);
	f->shell |= SHELL_POOL_IDLE;
	__sync_fetch_and_add(&pool->idle_bytes, flow_bytes);
}

/* Called on a deadline: marks a silent flow as idle. */
VCC_INLINE void pool_idle(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			  uint32_t now_ms)
{
	pool_mark_idle(pool, f, p, now_ms, pool_flow_bytes(f));
}

/* A flow may be shown 1/16 of its share, or two segments, beyond its use. */
#define POOL_SLACK_SHIFT 4

/*
 * Called in the engine: limits a window of `granted_bytes` to the pool's. A flow is shown its
 * flight, the bytes just delivered, and a little more. A flow with data to send reaches its share
 * within a few ACKs, even after its virtual CPU was descheduled and its flight has drained. A flow
 * without keeps at most 1/16 of its share, because a shown window cannot be taken back.
 */
VCC_INLINE uint32_t pool_limit(const struct vcc_flow *f, const struct vcc_segment *s,
			       uint32_t delivered_bytes, uint32_t granted_bytes)
{
	if (!s->pool_bytes)
		return granted_bytes;
	uint32_t slack_bytes = vcc_max(s->pool_bytes >> POOL_SLACK_SHIFT, 2u * f->mss_bytes);
	uint32_t used_bytes =
	    flight_bytes(f) + vcc_min(delivered_bytes, SEQ_WINDOW_MAX) + slack_bytes;
	uint32_t limit_bytes = vcc_min(s->pool_bytes, used_bytes);

	return vcc_min(granted_bytes, segs_within(f, limit_bytes) * f->mss_bytes);
}

/*
 * Called for a SYN-ACK to the guest, whose window is unscaled: limits the first flight too, where
 * the treatment polices, caps or pools.
 */
VCC_INLINE void show_first_window(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s, struct vcc_action *a)
{
	/* A shell that holds segments may show more than may leave (hold_pool.h). */
	bool pooled = s->pool_bytes && acts_by_window(f, p);

	if (!pooled && !binds_first_flight(f, p))
		return;
	uint32_t first_bytes = first_flight_bytes(f, p, f->mss_bytes);

	if (pooled)
		first_bytes = vcc_max(pool_limit(f, s, 0, first_bytes), 2u * f->mss_bytes);
	a->window = (uint16_t)vcc_min(s->window, first_bytes);
	f->overdraft_until = s->ack + a->window;
	/* What the pool has given is held. */
	if (pooled)
		f->right_edge = f->overdraft_until;
}

#endif
