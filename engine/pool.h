/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows that share a window (vCC, section 4): what the flows of a pool may have outstanding is one
 * constant, divided among the active ones by their weights. Who becomes active takes the others'
 * share as ACKs bring it in, for no window is ever taken back (law 2); so what a flow holds, the
 * window that it was shown and has not used up, is counted in a ledger, and nobody is shown more
 * than the ledger has left, from its SYN-ACK on. It is shared by flows on several CPUs: each change
 * of it is atomic, and what is to be shown is taken out before it is.
 *
 * A flow that falls idle may still send what it was shown last. A part of the window is kept free
 * for that, and no more than a part, or idle flows would come to hold all of it: so they can
 * overdraw the pool where very many wake up at once.
 */
#ifndef VCC_POOL_H
#define VCC_POOL_H

#include "treat.h"
#include "window.h"

/* With nothing in flight and no segment for so long, a flow is idle. */
#define POOL_IDLE_MS 500u
/* So is one whose guest has given up: Linux never waits longer than 120 s to send again. */
#define POOL_SILENT_MS 150000u
/* An eighth of the window at most is kept free for idle flows. */
#define POOL_RESERVE_SHIFT 3

/* What a pool has given out. */
struct vcc_pool {
	uint32_t held_bytes;
	uint32_t idle_bytes;	  /* what idle flows may still send */
	uint32_t weight;	  /* of its active flows together */
	uint32_t most_held_bytes; /* ever, for the person who looks */
	/* How often held_bytes was more than it may be: by a least window, or one who woke up. */
	uint32_t overdrawn;
};

VCC_INLINE bool pool_has(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->pool_weight && f->stage != STAGE_NONE && f->stage != STAGE_CLOSED &&
	       is_controlled(f) && imposes(f, p);
}

/* What a flow has in flight, and may still send. */
VCC_INLINE uint32_t pool_holds(const struct vcc_flow *f)
{
	if (f->stage != STAGE_ESTABLISHED)
		return 0;
	return seq_distance(f->snd_una, seq_max(f->right_edge, f->snd_nxt));
}

/* What there is to share out. */
VCC_INLINE uint32_t pool_room(const struct vcc_pool *pool, const struct vcc_params *p)
{
	uint32_t idle_bytes = *(const volatile uint32_t *)&pool->idle_bytes;

	return p->pool_bytes - vcc_min(idle_bytes, p->pool_bytes >> POOL_RESERVE_SHIFT);
}

VCC_INLINE uint32_t pool_share(const struct vcc_pool *pool, const struct vcc_flow *f,
			       const struct vcc_params *p)
{
	uint32_t weight = *(const volatile uint32_t *)&pool->weight;

	/* Who has not sent yet begins beside the active ones; who does not send gets no more. */
	if (!(f->shell & SHELL_POOL_ACTIVE)) {
		if (f->stage == STAGE_ESTABLISHED)
			return 0;
		weight += p->pool_weight;
	}
	/* Another flow may be about to add its own. */
	weight = vcc_max(weight, p->pool_weight);
	return (uint32_t)((uint64_t)pool_room(pool, p) * p->pool_weight / weight);
}

/* Takes up to `wanted_bytes` out of what is left; returns how much that was. */
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

/* The ledger counts more for a flow than before. */
VCC_INLINE void pool_charge(struct vcc_pool *pool, uint32_t total_bytes, uint32_t more_bytes)
{
	uint32_t before = __sync_fetch_and_add(&pool->held_bytes, more_bytes);

	if (before + more_bytes > total_bytes)
		__sync_fetch_and_add(&pool->overdrawn, 1);
}

/* The flow is no member any more: it is idle, ends, is judged anew, or its window is not imposed.
 */
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
			  bool sends)
{
	if (f->shell & SHELL_POOL_IDLE)
		pool_leave(pool, f, pool_holds(f), p->pool_weight);
	if (!(f->shell & SHELL_POOL_MEMBER)) {
		f->shell |= SHELL_POOL_MEMBER;
		if (pool_holds(f))
			pool_charge(pool, p->pool_bytes, pool_holds(f));
	}
	if (sends && !(f->shell & SHELL_POOL_ACTIVE)) {
		f->shell |= SHELL_POOL_ACTIVE;
		__sync_fetch_and_add(&pool->weight, p->pool_weight);
	}
}

/*
 * Before the engine: says in the segment what the pool leaves this flow. A flow holds the more the
 * more it is shown, and that happens on its way to the guest only.
 */
VCC_INLINE void pool_begin(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			   bool to_guest, struct vcc_segment *s)
{
	s->pool_bytes = 0;
	s->pool_taken_bytes = pool_holds(f);
	if (!pool_has(f, p)) {
		pool_leave(pool, f, pool_holds(f), p->pool_weight);
		return;
	}
	pool_join(pool, f, p, !to_guest && s->payload_bytes);
	uint32_t share = pool_share(pool, f, p);

	if (to_guest && share > s->pool_taken_bytes)
		s->pool_taken_bytes += pool_take(pool, p, share - s->pool_taken_bytes);
	s->pool_bytes = vcc_max(vcc_min(share, s->pool_taken_bytes), 1);
}

/* After it: the ledger has what the flow holds now. */
VCC_INLINE void pool_end(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			 const struct vcc_segment *s)
{
	if (!(f->shell & SHELL_POOL_MEMBER))
		return;
	if (!pool_has(f, p)) {
		pool_leave(pool, f, s->pool_taken_bytes, p->pool_weight);
		return;
	}
	uint32_t holds = pool_holds(f);

	if (holds > s->pool_taken_bytes)
		pool_charge(pool, p->pool_bytes, holds - s->pool_taken_bytes);
	else if (holds < s->pool_taken_bytes)
		__sync_fetch_and_add(&pool->held_bytes, holds - s->pool_taken_bytes);
	/* Two CPUs may miss each other's maximum by a segment's worth: it is for people. */
	uint32_t held = *(const volatile uint32_t *)&pool->held_bytes;

	if (held > pool->most_held_bytes)
		pool->most_held_bytes = held;
}

/* Time has passed: who sends nothing is idle. */
VCC_INLINE void pool_idle(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			  uint32_t now_ms)
{
	uint32_t patience_ms = flight_bytes(f) ? POOL_SILENT_MS : POOL_IDLE_MS;

	if (!(f->shell & SHELL_POOL_MEMBER) ||
	    (int32_t)(now_ms - f->last_seen_ms) < (int32_t)patience_ms)
		return;
	pool_leave(pool, f, pool_holds(f), p->pool_weight);
	f->shell |= SHELL_POOL_IDLE;
	__sync_fetch_and_add(&pool->idle_bytes, pool_holds(f));
}

/* So much of its share a flow may be shown without having asked for it, and two segments. */
#define POOL_SLACK_SHIFT 4

/*
 * In the engine: what the pool leaves of a window of `granted_bytes`. A flow is shown what it uses,
 * what was just delivered, and a little: who has something to send is at its share after some ACKs,
 * also when its virtual CPU was away and its flight is gone; and who has not keeps a sixteenth of
 * it at most, for what was shown cannot be taken back.
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

/* On a SYN-ACK to the guest: its first flight is the pool's as well. No scale counts yet. */
VCC_INLINE void pool_first_window(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s, struct vcc_action *a)
{
	if (!s->pool_bytes || !imposes(f, p))
		return;
	uint32_t initial_bytes = vcc_max(p->initial_window_segs, 1) * f->mss_bytes;
	uint32_t limit_bytes = pool_limit(f, s, 0, initial_bytes);

	a->window = (uint16_t)vcc_min(s->window, vcc_max(limit_bytes, 2u * f->mss_bytes));
	f->right_edge = s->ack + a->window;
	f->overdraft_until = f->right_edge;
}

#endif
