/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rate for all connections of a guest together, because a cap of each does not limit their
 * number. What exceeds it is dropped: for the engine, it is lost right behind the port.
 *
 * A token bucket (RFC 2697), kept as the time at which it is full again (ITU-T I.371, virtual
 * scheduling): one number, which CPUs change at once. Rules with different rates share a port's
 * bucket: each byte costs the time that it takes at its rule's rate.
 */
#ifndef VCC_GUEST_RATE_H
#define VCC_GUEST_RATE_H

#include "policing.h"

/* The bucket has what the rate brings in this time, and at least a super-segment. */
#define GUEST_RATE_BURST_NS    4000000u
#define GUEST_RATE_BURST_BYTES 65536u

/* The time that bytes take at a rate. */
VCC_INLINE uint64_t guest_rate_ns(uint32_t bytes, uint32_t bytes_per_ms)
{
	return bytes * 1000000ull / bytes_per_ms;
}

/* The debt at which the bucket is empty, in time. */
VCC_INLINE uint64_t guest_rate_burst_ns(uint32_t bytes_per_ms)
{
	uint64_t burst_ns = guest_rate_ns(GUEST_RATE_BURST_BYTES, bytes_per_ms);

	return burst_ns < GUEST_RATE_BURST_NS ? GUEST_RATE_BURST_NS : burst_ns;
}

/*
 * Takes a segment from the bucket that is full again at `full_ns`, if anything is left. A
 * super-segment cannot be cut, so one that finds too little leaves a debt.
 */
VCC_INLINE bool guest_rate_take(uint64_t *full_ns, uint32_t bytes_per_ms, uint32_t bytes,
				uint64_t now_ns)
{
	uint64_t cost_ns = guest_rate_ns(bytes, bytes_per_ms);
	uint64_t burst_ns = guest_rate_burst_ns(bytes_per_ms);
	uint64_t before = *(const volatile uint64_t *)full_ns;

	/* It has been full for a while. If another CPU is sooner, it has set this already. */
	if ((int64_t)(before - now_ns) < 0)
		__sync_val_compare_and_swap(full_ns, before, now_ns);
	before = __sync_fetch_and_add(full_ns, cost_ns);
	if ((int64_t)(before - now_ns) < (int64_t)burst_ns)
		return true;
	__sync_fetch_and_add(full_ns, -cost_ns);
	return false;
}

/*
 * Does the rate bind the connection's data? Under `hold` as well, although police() has nothing to
 * judge there: nothing leaves beyond the window (law 14).
 */
VCC_INLINE bool is_rate_capped(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->guest_rate_cap_bytes_per_ms && p->police && is_controlled(f) && imposes(f, p);
}

/*
 * The rate that binds data of a connection that the port does not know, in bytes a ms; 0: none.
 * Such data passes during the grace of its port, or under on_unknown = "pass"
 * (unknown_connection.h).
 */
VCC_INLINE uint32_t unknown_rate_bytes_per_ms(const struct vcc_params *p)
{
	return p->police && p->mode == MODE_ENFORCE ? p->guest_rate_cap_bytes_per_ms : 0;
}

/* Called after the engine, of a segment from the guest that passes: does it exceed the rate? */
VCC_INLINE bool exceeds_guest_rate(uint64_t *full_ns, const struct vcc_flow *f,
				   const struct vcc_params *p, const struct vcc_segment *s,
				   const struct vcc_action *a)
{
	if (!s->payload_bytes || a->verdict != VCC_PASS || !is_rate_capped(f, p))
		return false;
	return !guest_rate_take(full_ns, p->guest_rate_cap_bytes_per_ms, s->payload_bytes,
				s->now_us * 1000);
}

/*
 * When the bucket has something left for data that the rate binds, in us; 0: now. A shell that
 * holds segments keeps them until then instead of dropping them.
 */
VCC_INLINE uint64_t guest_rate_due_us(uint64_t full_ns, uint32_t bytes_per_ms, uint64_t now_us)
{
	uint64_t burst_ns = guest_rate_burst_ns(bytes_per_ms);
	int64_t debt_ns = (int64_t)(full_ns - now_us * 1000);

	if (debt_ns < (int64_t)burst_ns)
		return 0;
	return now_us + ((uint64_t)debt_ns - burst_ns) / 1000 + 1;
}

#endif
