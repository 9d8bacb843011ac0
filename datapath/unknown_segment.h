/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a segment of a connection that the port does not know passes
 * (engine/unknown_connection.h). */
#ifndef VCC_DATAPATH_UNKNOWN_SEGMENT_H
#define VCC_DATAPATH_UNKNOWN_SEGMENT_H

#include "guest_rate.h"
#include "parse_tunnel.h"
#include "wheel.h"
#include "program_state.h"

/* What happens to data of an unknown connection. */
struct unknown_data {
	uint32_t bytes_per_ms; /* the rate that binds it; 0: none */
	bool is_dropped;
};

static __always_inline struct unknown_data treat_unknown(const struct vcc_params *p,
							 const struct work *w,
							 const struct vcc_port *port,
							 uint32_t now_s)
{
	return (struct unknown_data){
		.bytes_per_ms = unknown_rate_bytes_per_ms(p),
		.is_dropped = drops_unknown(p, &w->segment, port->attached_s, now_s),
	};
}

/*
 * By the connection's rule. Either end may have opened the connection, and a rule may leave one of
 * the two alone, so what both do is done.
 */
static __always_inline struct unknown_data
treat_by_rules(const struct work *w, const struct vcc_port *port, uint32_t now_s)
{
	struct unknown_data both = { .bytes_per_ms = 0, .is_dropped = true };
	uint8_t epoch = current_epoch();

	for (int i = 0; i < 2; i++) {
		int rule = judge(&w->key, i, epoch);
		const struct vcc_params *p = rule < 0 ? 0 : rule_params(epoch, (uint32_t)rule);

		if (!p)
			return (struct unknown_data){};
		struct unknown_data by = treat_unknown(p, w, port, now_s);

		both.is_dropped &= by.is_dropped;
		if (!i || !by.bytes_per_ms)
			both.bytes_per_ms = by.bytes_per_ms;
		else if (both.bytes_per_ms)
			both.bytes_per_ms = vcc_max(both.bytes_per_ms, by.bytes_per_ms);
	}
	return both;
}

/* Does data of the guest's exceed the rate of all its connections? */
static __noinline bool exceeds_rate(uint32_t index, uint32_t bytes_per_ms, uint32_t bytes,
				    uint64_t now)
{
	struct vcc_usage *used = usage_of(index);

	return used && bytes_per_ms &&
	       !guest_rate_take(&used->rate_full_ns, bytes_per_ms, bytes, now * 1000);
}

/* Counts a segment of an unknown connection. Returns whether it passes. */
VCC_APART int passes_unknown(const struct work *w, uint32_t dir)
{
	if (!w)
		return true;
	uint32_t index = w->key.port;
	const struct vcc_port *port = port_at(index);
	/* A port that drains has not taken the new connections. */
	bool may_drop = port && dir == FROM_GUEST && w->segment.payload_bytes &&
			port->params.mode != MODE_DRAIN;

	if (may_drop && is_inside(&w->frame))
		may_drop = looks_into(index, outer_of_cpu());
	if (may_drop) {
		uint64_t now = now_us();
		uint32_t now_s = (uint32_t)(now / USEC_PER_SEC);
		struct unknown_data by = port->by_policy
					     ? treat_by_rules(w, port, now_s)
					     : treat_unknown(&port->params, w, port, now_s);

		may_drop = by.is_dropped ||
			   exceeds_rate(index, by.bytes_per_ms, w->segment.payload_bytes, now);
	}
	bool is_signed = w->segment.options & OPT_SIGNED;

	count(index, may_drop ? COUNT_UNKNOWN_DROPPED : is_signed ? COUNT_SIGNED : COUNT_UNKNOWN);
	return !may_drop;
}

#endif
