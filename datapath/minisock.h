/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The minisocks of flows that were forgotten (engine/minisock.h). The latest stay at any age: in a
 * table, the least recently used gives way. Connections that were open have a table of a sixteenth
 * of the flows', and those that never were another one, of a quarter of that: a flood of SYNs at
 * one port costs no open connection of another its minisock.
 */
#ifndef VCC_DATAPATH_MINISOCK_H
#define VCC_DATAPATH_MINISOCK_H

#include "policy.h"
#include "flow_tag.h"
#include "engine.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* overridden before loading */
	__type(key, uint64_t);	    /* flow_tag.h */
	__type(value, struct vcc_minisock);
} minisocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384); /* overridden before loading */
	__type(key, uint64_t);	    /* flow_tag.h */
	__type(value, struct vcc_minisock);
} half_open_minisocks SEC(".maps");

/* Its `check` is that of no connection. */
static const struct vcc_minisock no_minisock = {};

/* Identifies a minisock's connection, and its port among those that have had the index. Never 0. */
static __always_inline uint64_t minisock_check(const struct vcc_key *key, uint64_t tag,
					       const struct vcc_port *port)
{
	return (tag_check(key, tag) + ((uint64_t)port->generation << 32)) | 1;
}

/* The minisock of a connection without a flow; null if there is none. */
static __always_inline struct vcc_minisock *minisock_of(const struct vcc_key *key, uint64_t tag,
							const struct vcc_port *port)
{
	struct vcc_host_usage *host = usage_of_host();

	if (!host || !host->has_minisocks)
		return 0;
	uint64_t check = minisock_check(key, tag, port);
	struct vcc_minisock *m = bpf_map_lookup_elem(&minisocks, &tag);

	if (m && m->check == check)
		return m;
	m = bpf_map_lookup_elem(&half_open_minisocks, &tag);
	return m && m->check == check ? m : 0;
}

/* The connection has a flow again. */
static __noinline void minisock_drop(const struct vcc_key *key)
{
	uint64_t tag = flow_tag(key);

	bpf_map_delete_elem(&minisocks, &tag);
	bpf_map_delete_elem(&half_open_minisocks, &tag);
}

/* Puts a minisock into a table. */
static __always_inline int minisock_put(void *table, uint64_t tag, const struct vcc_flow *f,
					uint64_t check)
{
	/* Filled in place, to save stack; `check` comes last. */
	if (bpf_map_update_elem(table, &tag, &no_minisock, BPF_ANY))
		return -1;
	struct vcc_minisock *m = bpf_map_lookup_elem(table, &tag);

	if (!m)
		return -1;
	minisock_keep(m, f);
	*(volatile uint64_t *)&m->check = check;
	return 0;
}

/* A held flow is about to be forgotten. A failure leaves the connection unknown, as without this.
 */
VCC_APART int minisock_leave(const struct vcc_flow *f, const struct vcc_key *key)
{
	struct vcc_host_usage *host = usage_of_host();
	const struct vcc_port *port = key ? port_at(key->port) : 0;

	if (!f || !key || !host || !port)
		return -1;
	const struct vcc_params *p = last_treatment(port, f);

	if (!p || !leaves_minisock(f, p))
		return 0;
	uint64_t tag = flow_tag(key);
	uint64_t check = minisock_check(key, tag, port);
	int err = has_been_open(f) ? minisock_put(&minisocks, tag, f, check)
				   : minisock_put(&half_open_minisocks, tag, f, check);

	host->has_minisocks |= !err;
	return err;
}

#endif
