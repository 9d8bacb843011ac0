/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What cannot be parsed or judged: it passes, unless a rule polices. If any rule polices the port,
 * TCP that holds_tcp.h finds is dropped in both directions. The connection is unknown, so its own
 * rule cannot decide.
 */
#ifndef VCC_UNPARSED_TCP_H
#define VCC_UNPARSED_TCP_H

#include "holds_tcp.h"
#include "parse.h"
#include "policy.h"

static __always_inline bool polices(const struct vcc_params *p)
{
	return p && p->police && mode_changes(p);
}

/* Does any rule police that may match a connection of this port? */
VCC_APART int port_polices(uint32_t index)
{
	const struct vcc_port *port = port_at(index);
	uint32_t zero = 0;

	if (!port)
		return false;
	if (!port->by_policy)
		return polices(&port->params);
	const struct vcc_policy *now = bpf_map_lookup_elem(&policy, &zero);

	if (!now)
		return false;
	uint32_t edition = now->epoch % EDITIONS;
	uint32_t tenant = edition * PORTS_MAX + index % PORTS_MAX;
	const struct vcc_rule_set *ours = bpf_map_lookup_elem(&tenants, &tenant);
	const struct vcc_rule_set *policing = rule_set(edition, now->polices[edition & 1]);
	uint64_t both = 0;

	if (!ours || !policing)
		return false;
	for (int i = 0; i < RULE_SET_WORDS; i++)
		both |= ours->words[i] & policing->words[i];
	return !!both;
}

/* Does a frame pass that could not be parsed, for the reason `what`? */
static __always_inline bool passes_unread(struct __sk_buff *skb, uint32_t port, uint32_t what)
{
	bool unjudged = what == COUNT_UNJUDGED ||
			(what != COUNT_NOT_TCP && port_polices(port) && holds_tcp(skb));

	count(port, unjudged ? COUNT_UNJUDGED : what);
	return !unjudged;
}

/*
 * Does a segment of a known connection pass untranslated, for the reason `what`: its flow is just
 * being deleted, or it is in another tunnel?
 */
static __noinline bool passes_known(const struct vcc_entry *e, const struct vcc_port *port,
				    uint32_t index, uint32_t what)
{
	bool unjudged = polices(last_treatment(port, &e->flow));

	count(index, unjudged ? COUNT_UNJUDGED : what);
	return !unjudged;
}

#endif
