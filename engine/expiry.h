/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Idle timeouts, and the deadline by which a shell must call vcc_deadline(). A segment can bring
 * the deadline forward: a connection closes, or an idle one has data in flight again. The shell
 * therefore asks look_within_ms() after each segment.
 */
#ifndef VCC_EXPIRY_H
#define VCC_EXPIRY_H

#include "treatment.h"
#include "sequence_tracking.h"

/* Timeout of a peer's SYN that the guest does not answer, as in a SYN flood. */
#define UNANSWERED_SYN_MS 10000u
/* Timeout of a closed flow in a crowded table. */
#define CROWDED_CLOSED_MS 1000u
/*
 * Minimum interval between two calls of vcc_deadline() for a flow. Expiry and retransmission
 * timeouts tolerate a second; segments emitted to the guest (emit.h) are due to the millisecond.
 */
#define LOOK_MIN_MS	 1000u
#define EMIT_LOOK_MIN_MS 1u

VCC_INLINE uint32_t idle_limit_ms(const struct vcc_flow *f, const struct vcc_params *p)
{
	if (f->stage == STAGE_ESTABLISHED) {
		/* The end that closed may be gone, and the other may never close. */
		bool closing = f->flags & (FLOW_FIN_GUEST | FLOW_FIN_PEER);

		/* A connection that has come with its guest may have ended before. */
		if (closing || (f->lags & LAGS_GUEST))
			return vcc_min(p->idle_half_closed_ms, p->idle_established_ms);
		return p->idle_established_ms;
	}
	if (f->stage == STAGE_SYN_RECEIVED && !(f->flags & FLOW_SYN_SEEN_GUEST))
		return vcc_min(p->idle_handshake_ms, UNANSWERED_SYN_MS);
	return f->stage == STAGE_CLOSED ? p->idle_closed_ms : p->idle_handshake_ms;
}

/*
 * Has the handshake completed? Until then, the flow gives way to a newer one in a full table: also
 * one that was refused, or a scan would fill the table with its leftovers.
 */
VCC_INLINE bool is_open(const struct vcc_flow *f)
{
	return f->stage == STAGE_ESTABLISHED;
}

/* Time until the next call of vcc_deadline() for an event due in `due_ms`. */
VCC_INLINE uint32_t look_in_ms(const struct vcc_params *p, uint32_t due_ms)
{
	return vcc_max(due_ms, p->emit ? EMIT_LOOK_MIN_MS : LOOK_MIN_MS);
}

/*
 * After a segment: vcc_deadline() is due within this time. The shell reschedules a flow only if its
 * current deadline is later than look_in_ms() of the result.
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

/* Is the table so full that closed flows give way early? */
VCC_INLINE bool is_crowded(uint32_t flows, uint32_t flows_max)
{
	return flows > flows_max / 2;
}

/* Limit of flows in a table that were never open; the rest is reserved for established ones. */
VCC_INLINE uint32_t half_open_max(uint32_t flows_max)
{
	return vcc_max(flows_max / 4, 1);
}

#endif
