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

/* Creates and holds the flow of a minisock. Returns 0; -1: there is no room for it. */
static __always_inline int flow_create_from(const struct vcc_minisock *m, const struct vcc_key *key)
{
	uint32_t index = key->port;
	struct vcc_port *port = port_at(index);
	struct vcc_usage *used = usage_of(index);
	uint64_t now = now_us();
	struct vcc_entry *there;

	if (!port || !used)
		return -1;
	timer_check(index, (uint32_t)(now / 1000));
	struct vcc_entry *e = entry_create(key, port, used, &there);

	if (!e)
		return -1;
	int err = port->by_policy ? revive_under_policy(e, m, key, now)
				  : engine_revive(&e->flow, m, &port->params, now);

	if (err || file(e, key, (uint32_t)(now / 1000), LOOK_MIN_MS, true) ||
	    (!is_open(&e->flow) && !half_open_enter(e, key, port, used))) {
		flow_forget(e, key);
		return -1;
	}
	count(index, COUNT_REVIVED);
	return 0;
}

/*
 * Creates and holds the flow of a connection that has a minisock. Returns 0, or -1: it has none, or
 * there is no room for it.
 */
VCC_APART int flow_revive(const struct vcc_key *key)
{
	const struct vcc_port *port = key ? port_at(key->port) : 0;

	if (!key || !port)
		return -1;
	uint64_t tag = flow_tag_apart(key);
	uint64_t check = minisock_check(key, tag, port);
	struct vcc_minisock_set *set = minisock_set_of(tag);
	uint32_t way = set ? minisock_take(set, tag, check) : MINISOCK_WAYS;

	if (!set || way >= MINISOCK_WAYS)
		return -1;
	int err = flow_create_from(&set->minisocks[way], key);

	minisock_becomes(set, way, MINISOCK_BUSY, err ? check : 0);
	return err;
}

#endif
