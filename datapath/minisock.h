/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The minisocks of flows that were forgotten (engine/minisock.h), in a set-associative table: each
 * set keeps its latest, at any age. In a full set, the port that has most there gives up its
 * oldest, as the longest queue does in a shared buffer (Suter, Lakshman, Stiliadis, Choudhury,
 * "Design considerations for supporting TCP with per-flow queueing", 1998): a port that opens and
 * ends many connections takes the minisocks of its own earlier ones. Connections that never were
 * open have ways of their own, so a flood of SYNs costs no open connection its minisock.
 */
#ifndef VCC_DATAPATH_MINISOCK_H
#define VCC_DATAPATH_MINISOCK_H

#include "policy.h"
#include "flow_tag.h"
#include "engine.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* overridden before loading */
	__type(key, uint32_t);
	__type(value, struct vcc_minisock_set);
} minisocks SEC(".maps");

/* The check of a way that a CPU fills. minisock_check() is odd. */
#define MINISOCK_BUSY 2ull
/* Other CPUs may take the way that was chosen. */
#define MINISOCK_TRIES 4

/* Identifies a minisock's connection, and its port among those that have had the index. Never 0. */
static __always_inline uint64_t minisock_check(const struct vcc_key *key, uint64_t tag,
					       const struct vcc_port *port)
{
	return (tag_check(key, tag) + ((uint64_t)port->generation << 32)) | 1;
}

/*
 * A connection's set. Tags of successive ports are an arithmetic progression, of which many may
 * share the high bits: MurmurHash3's finalizer spreads them.
 */
static __always_inline struct vcc_minisock_set *minisock_set_of(uint64_t tag)
{
	uint64_t mixed = (tag ^ tag >> 33) * 0xff51afd7ed558ccdull;
	uint32_t at = (uint32_t)(mixed >> 40) & (constants.minisock_sets - 1);

	return bpf_map_lookup_elem(&minisocks, &at);
}

/* The way of a connection in its set; MINISOCK_WAYS: it has none. */
VCC_APART uint32_t minisock_way(uint64_t tag, uint64_t check)
{
	const struct vcc_minisock_set *set = minisock_set_of(tag);
	uint32_t way = MINISOCK_WAYS;

	if (!set)
		return way;
	for (uint32_t i = 0; i < MINISOCK_WAYS; i++)
		if (*(volatile const uint64_t *)&set->checks[i] == check)
			way = i;
	return way;
}

/* The minisock of a way; null if it is none. */
static __always_inline struct vcc_minisock *minisock_at(struct vcc_minisock_set *set, uint32_t way)
{
	if (way >= MINISOCK_WAYS)
		return 0;
	/* Computed earlier, the offset would have no bound that the verifier knows. */
	asm volatile("" : "+r"(way));
	return &set->minisocks[way];
}

/* Does a connection without a flow have a minisock? */
static __always_inline bool has_minisock(const struct vcc_key *key, uint64_t tag,
					 const struct vcc_port *port)
{
	struct vcc_host_usage *host = usage_of_host();

	return host && host->has_minisocks &&
	       minisock_way(tag, minisock_check(key, tag, port)) < MINISOCK_WAYS;
}

/* Moves a way from a check to another; false if it has another check by now. Orders memory. */
static __always_inline bool minisock_becomes(struct vcc_minisock_set *set, uint32_t way,
					     uint64_t from, uint64_t to)
{
	return __sync_val_compare_and_swap(&set->checks[way], from, to) == from;
}

/* 1 or 0, without a branch: the verifier would follow each of them. */
static __always_inline uint32_t is_same_port(uint16_t one, uint16_t other)
{
	return ((uint32_t)(one ^ other) - 1) >> 31;
}

/* The way among `ways` from `first` that gives way to a new minisock of the port. */
static __always_inline uint32_t minisock_victim(const struct vcc_minisock_set *set, uint32_t first,
						uint32_t ways, uint16_t port)
{
	uint32_t victim = MINISOCK_WAYS;
	uint64_t highest = 0;

#pragma clang loop unroll(disable)
	for (uint32_t i = first; i < first + ways; i++) {
		uint64_t check = *(volatile const uint64_t *)&set->checks[i];
		/* The new one is its port's, too. */
		uint64_t of_port = is_same_port(set->ports[i], port);

#pragma clang loop unroll(disable)
		for (uint32_t j = first; j < first + ways; j++)
			of_port += is_same_port(set->ports[i], set->ports[j]);
		uint64_t rank = of_port << 32 | (set->left - set->left_at[i]);

		if (!check)
			return i;
		if (check != MINISOCK_BUSY && rank > highest) {
			highest = rank;
			victim = i;
		}
	}
	return victim;
}

/* Drops the minisock of an earlier connection with this check. */
static __always_inline void minisock_drop(struct vcc_minisock_set *set, uint64_t check)
{
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < MINISOCK_WAYS; i++)
		if (*(volatile uint64_t *)&set->checks[i] == check)
			minisock_becomes(set, i, check, 0);
}

/* The same for a connection that leaves none. */
VCC_APART int minisock_end(uint64_t tag, uint64_t check)
{
	struct vcc_host_usage *host = usage_of_host();
	struct vcc_minisock_set *set = host && host->has_minisocks ? minisock_set_of(tag) : 0;

	if (set)
		minisock_drop(set, check);
	return 0;
}

/*
 * The same for one that leaves its own. Returns the way that gives way to it; MINISOCK_WAYS: other
 * CPUs have all of its kind.
 */
VCC_APART uint32_t minisock_room(uint64_t tag, uint64_t check, bool was_open)
{
	struct vcc_minisock_set *set = minisock_set_of(tag);
	uint16_t port = tag & TAG_PORT_MASK;

	if (!set)
		return MINISOCK_WAYS;
	minisock_drop(set, check);
	return was_open ? minisock_victim(set, 0, MINISOCK_OPEN_WAYS, port)
			: minisock_victim(set, MINISOCK_OPEN_WAYS, MINISOCK_HALF_OPEN_WAYS, port);
}

/*
 * A held flow is about to be forgotten. A failure leaves the connection unknown, as without this.
 */
VCC_APART int minisock_leave(const struct vcc_flow *f, const struct vcc_key *key)
{
	const struct vcc_port *port = key ? port_at(key->port) : 0;

	if (!f || !key || !port)
		return -1;
	const struct vcc_params *p = last_treatment(port, f);

	if (!p)
		return 0;
	uint64_t tag = flow_tag_apart(key);
	uint64_t check = minisock_check(key, tag, port);

	/* An earlier connection between the same ends may have left one. */
	if (!leaves_minisock(f, p))
		return minisock_end(tag, check);
	struct vcc_minisock_set *set = minisock_set_of(tag);

	for (int i = 0; set && i < MINISOCK_TRIES; i++) {
		uint32_t way = minisock_room(tag, check, has_been_open(f));
		struct vcc_minisock *m = minisock_at(set, way);
		uint64_t found = m ? *(volatile uint64_t *)&set->checks[way] : MINISOCK_BUSY;

		if (!m || found == MINISOCK_BUSY ||
		    !minisock_becomes(set, way, found, MINISOCK_BUSY))
			continue;
		set->ports[way] = tag & TAG_PORT_MASK;
		set->left_at[way] = __sync_fetch_and_add(&set->left, 1);
		minisock_keep(m, f);
		minisock_becomes(set, way, MINISOCK_BUSY, check);
		struct vcc_host_usage *host = usage_of_host();

		if (host)
			host->has_minisocks = true;
		return 0;
	}
	return -1;
}

/*
 * From-guest: drops the minisock of the connection that a SYN supersedes. The SYN's own may get no
 * flow, as at a port that drains, and must not revive the earlier one.
 */
VCC_APART int minisock_supersede(const struct vcc_key *key, const struct vcc_segment *s)
{
	struct vcc_host_usage *host = usage_of_host();
	const struct vcc_port *port = key ? port_at(key->port) : 0;

	if (!s || !port || !host || !host->has_minisocks)
		return 0;
	uint64_t tag = flow_tag_apart(key);
	uint64_t check = minisock_check(key, tag, port);
	uint32_t way = minisock_way(tag, check);
	struct vcc_minisock_set *set = minisock_set_of(tag);
	const struct vcc_minisock *m = set ? minisock_at(set, way) : 0;

	if (m && is_superseded(m, s))
		minisock_becomes(set, way, check, 0);
	return 0;
}

#endif
