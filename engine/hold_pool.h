/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools (pool.h) at a port that holds segments (hold.h). The window that such a port shows has room
 * for its buffer, and a pool limits what is in the fabric. So the pool accounts for the edge up to
 * which a held flow's segments may leave.
 *
 * PRR, repairs and a new treatment move that edge between two calls of the pool. The shell
 * therefore stores what the pool was charged for the flow, and each call begins with the
 * difference.
 */
#ifndef VCC_HOLD_POOL_H
#define VCC_HOLD_POOL_H

#include "hold_release.h"
#include "pool.h"

/* The flow's flight plus the unused rest of what may leave. */
VCC_INLINE uint32_t hold_pool_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				    const struct vcc_params *p)
{
	if (!is_holding(f, h, p))
		return pool_flow_bytes(f);
	return seq_distance(f->snd_una, seq_max(h->grant_edge, f->snd_nxt));
}

/* Settles the pool's account if the flow holds more or less than it was charged. */
VCC_INLINE void hold_pool_settle(struct vcc_pool *pool, const struct vcc_flow *f,
				 const struct vcc_hold *h, const struct vcc_params *p,
				 uint32_t *charged_bytes)
{
	uint32_t flow_bytes = hold_pool_bytes(f, h, p);
	uint32_t change_bytes = flow_bytes - *charged_bytes;

	if (f->shell & SHELL_POOL_IDLE)
		pool->idle_bytes += change_bytes;
	if (!(f->shell & SHELL_POOL_MEMBER))
		change_bytes = 0;
	if (change_bytes && flow_bytes > *charged_bytes)
		pool_charge(pool, p->pool_bytes, change_bytes);
	else
		pool->held_bytes += change_bytes;
	pool_note_most(pool);
	*charged_bytes = flow_bytes;
}

/* pool_begin() at such a port. */
VCC_INLINE void hold_pool_begin(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_hold *h,
				const struct vcc_params *p, bool to_guest, struct vcc_segment *s,
				uint32_t *charged_bytes)
{
	if (pool_has(f, p))
		hold_pool_settle(pool, f, h, p, charged_bytes);
	pool_reserve(pool, f, p, to_guest, s, *charged_bytes);
	*charged_bytes = s->pool_taken_bytes;
}

/* pool_end() likewise. */
VCC_INLINE void hold_pool_end(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_hold *h,
			      const struct vcc_params *p, const struct vcc_segment *s,
			      uint32_t *charged_bytes)
{
	uint32_t flow_bytes = hold_pool_bytes(f, h, p);

	pool_settle(pool, f, p, s, flow_bytes);
	*charged_bytes = flow_bytes;
}

/* pool_idle() likewise. */
VCC_INLINE void hold_pool_idle(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_hold *h,
			       const struct vcc_params *p, uint32_t now_ms, uint32_t *charged_bytes)
{
	hold_pool_settle(pool, f, h, p, charged_bytes);
	pool_mark_idle(pool, f, p, now_ms, *charged_bytes);
}

/* A flow that comes to the port holds what it was granted elsewhere. */
VCC_INLINE void hold_pool_arrive(struct vcc_pool *pool, struct vcc_flow *f,
				 const struct vcc_hold *h, const struct vcc_params *p,
				 uint32_t *charged_bytes)
{
	*charged_bytes = hold_pool_bytes(f, h, p);
	if (pool_has(f, p))
		pool_join(pool, f, p, flight_bytes(f) || is_held(f, h), *charged_bytes);
	pool_note_most(pool);
}

#endif
