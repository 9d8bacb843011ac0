/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A segment of a connection whose flow was forgotten revives it (engine/minisock.h). */
#ifndef VCC_REVIVAL_H
#define VCC_REVIVAL_H

#include "minisock.h"
#include "timers.h"
#include "wheel.h"

VCC_APART int engine_revive(struct vcc_flow *f, const struct vcc_minisock *m,
			    const struct vcc_params *p, uint64_t now)
{
	return f && m && p ? vcc_revive(f, m, p, now) : -1;
}

/* Restores a held, new flow from its minisock, under the policy's rule for it. */
static __always_inline int revive_under_policy(struct vcc_entry *e, const struct vcc_minisock *m,
					       const struct vcc_key *key, uint64_t now)
{
	uint8_t epoch = current_epoch();
	int rule = judge(key, m->flags & FLOW_GUEST_OPENED, epoch);
	struct vcc_params *p = rule < 0 ? 0 : rule_params(epoch, (uint32_t)rule);

	if (!p || engine_revive(&e->flow, m, p, now))
		return -1;
	come_under(&e->flow, epoch, (uint32_t)rule);
	return 0;
}

/*
 * Creates and holds the flow of a connection that has a minisock. Returns 0, or -1: it has none, or
 * there is no room for it. The minisock stays until there is a flow, for segments on other CPUs.
 */
VCC_APART int flow_revive(const struct vcc_key *key)
{
	if (!key)
		return -1;
	uint32_t index = key->port;
	struct vcc_port *port = port_at(index);
	struct vcc_usage *used = usage_of(index);
	uint64_t tag = flow_tag_apart(key);
	struct vcc_minisock_set *set = minisock_set_of(tag);
	uint64_t now = now_us();
	struct vcc_entry *there;

	if (!port || !used || !set)
		return -1;
	uint64_t check = minisock_check(key, tag, port);
	uint32_t way = minisock_way(tag, check);

	const struct vcc_minisock *m = minisock_at(set, way);

	if (!m)
		return -1;
	timer_check(index, (uint32_t)(now / 1000));
	struct vcc_entry *e = entry_create(key, port, used, &there);

	if (!e)
		return -1;
	int err = port->by_policy ? revive_under_policy(e, m, key, now)
				  : engine_revive(&e->flow, m, &port->params, now);

	/* If another CPU has taken the way meanwhile, what was read may be a mixture. */
	if (err || file(e, key, (uint32_t)(now / 1000), LOOK_MIN_MS, true) ||
	    (!is_open(&e->flow) && !half_open_enter(e, key, port, used)) ||
	    !minisock_becomes(set, way, check, 0)) {
		flow_forget(e, key);
		return -1;
	}
	count(index, COUNT_REVIVED);
	return 0;
}

#endif
