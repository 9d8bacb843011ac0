/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long a flow is kept after its last segment, and by when a shell has to look at it
 * (vcc_deadline). A segment can bring that time forward: a connection closes, or one that was idle
 * has data in flight again. So the shell asks after each segment, not only when it looks.
 */
#ifndef VCC_EXPIRY_H
#define VCC_EXPIRY_H

#include "treat.h"
#include "track.h"

/* A SYN that the guest does not answer, as in a flood, holds no place for long. */
#define UNANSWERED_SYN_MS 10000u
/* What has closed makes room the sooner where the table is more than half full. */
#define CROWDED_CLOSED_MS 1000u
/*
 * A flow is not looked at more often than this: it is for its end, and for timeouts that nothing
 * else tells of. But segments that are made for the guest are due to the millisecond.
 */
#define LOOK_MIN_MS	 1000u
#define EMIT_LOOK_MIN_MS 1u

VCC_INLINE uint32_t idle_limit_ms(const struct vcc_flow *f, const struct vcc_params *p)
{
	if (f->stage == STAGE_ESTABLISHED)
		return p->established_idle_ms;
	if (f->stage == STAGE_SYN_RECEIVED && !(f->flags & FLOW_SYN_SEEN_GUEST))
		return vcc_min(p->handshake_idle_ms, UNANSWERED_SYN_MS);
	return f->stage == STAGE_CLOSED ? p->closed_idle_ms : p->handshake_idle_ms;
}

/* Does the flow give way to a newer one where there is no room? */
VCC_INLINE bool is_half_open(const struct vcc_flow *f)
{
	return f->stage < STAGE_ESTABLISHED;
}

/* In how many ms to look, where something is due in `due_ms`. */
VCC_INLINE uint32_t look_in_ms(const struct vcc_params *p, uint32_t due_ms)
{
	return vcc_max(due_ms, p->emit ? EMIT_LOOK_MIN_MS : LOOK_MIN_MS);
}

/*
 * After a segment: no later than in so many ms the flow has to be looked at. One that would be
 * looked at later than in look_in_ms() of that is to be filed anew; nearer ones are worth no
 * filing.
 */
VCC_INLINE uint32_t look_within_ms(const struct vcc_flow *f, const struct vcc_params *p)
{
	uint32_t within_ms = idle_limit_ms(f, p);

	if (f->shell & SHELL_POOL_MEMBER)
		within_ms = vcc_min(within_ms, LOOK_MIN_MS);
	if (f->stage == STAGE_ESTABLISHED && flight_bytes(f) && is_managed(f))
		within_ms = vcc_min(within_ms, p->emit ? p->emit_after_us / 1000 + 1 : LOOK_MIN_MS);
	return within_ms;
}

/* Is a flow that has closed forgotten before its time, because others need its place? */
VCC_INLINE bool gives_way(const struct vcc_flow *f, uint32_t now_ms, uint32_t flows,
			  uint32_t flows_max)
{
	return f->stage == STAGE_CLOSED && flows > flows_max / 2 &&
	       (int32_t)(now_ms - f->last_seen_ms) >= (int32_t)CROWDED_CLOSED_MS;
}

/* So many flows in their handshake fit a table; the rest of it is for who has finished his. */
VCC_INLINE uint32_t half_open_max(uint32_t flows_max)
{
	return vcc_max(flows_max / 4, 1);
}

#endif
