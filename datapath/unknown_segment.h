/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a segment of a connection that the port does not know passes
 * (engine/unknown_connection.h). */
#ifndef VCC_DATAPATH_UNKNOWN_SEGMENT_H
#define VCC_DATAPATH_UNKNOWN_SEGMENT_H

#include "parse_tunnel.h"
#include "wheel.h"
#include "program_state.h"

/*
 * Does the connection's rule drop the segment? Either end may have opened the connection, and a
 * rule may leave one of the two alone, so both must drop it.
 */
static __always_inline bool rules_drop(const struct work *w, const struct vcc_port *port,
				       uint32_t now_s)
{
	uint8_t epoch = current_epoch();

	for (int i = 0; i < 2; i++) {
		int rule = judge(&w->key, i, epoch);
		const struct vcc_params *p = rule < 0 ? 0 : rule_params(epoch, (uint32_t)rule);

		if (!p || !drops_unknown(p, &w->segment, port->attached_s, now_s))
			return false;
	}
	return true;
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
		uint32_t now_s = (uint32_t)(now_us() / USEC_PER_SEC);

		may_drop = port->by_policy
			       ? rules_drop(w, port, now_s)
			       : drops_unknown(&port->params, &w->segment, port->attached_s, now_s);
	}
	bool is_signed = w->segment.options & OPT_SIGNED;

	count(index, may_drop ? COUNT_UNKNOWN_DROPPED : is_signed ? COUNT_SIGNED : COUNT_UNKNOWN);
	return !may_drop;
}

#endif
