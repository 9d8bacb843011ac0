/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* By which rule of a policy a flow is treated: abi.h says how one is found. */
#ifndef VCC_POLICY_H
#define VCC_POLICY_H

#include "maps.h"
#include "engine.h"

/* Set anew before loading: what is never run is not even verified. */
const volatile struct vcc_port_constants constants SEC(".rodata.port") = { .flows_max = 65536 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_policy);
} policy SEC(".maps");

/* How the flows of each rule are treated. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *RULES_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_params);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *RULES_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_rule_totals);
} rule_totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *RULE_SETS_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_rule_set);
} rule_sets SEC(".maps");

/* To the index of a set. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, EDITIONS *PREFIXES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_prefix);
	__type(value, uint32_t);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *PORT_NUMBERS);
	__type(key, uint32_t);
	__type(value, struct vcc_port_sets);
} port_numbers SEC(".maps");

/* By the VLAN's id, to the index of a set; 0: no tag. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *VLAN_IDS);
	__type(key, uint32_t);
	__type(value, uint32_t);
} vlans SEC(".maps");

/* By the port's index, the set itself: the rules for its tenant. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *PORTS_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_rule_set);
} tenants SEC(".maps");

/* Their numbers are the same in all editions. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, POOLS_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_pool);
} pools SEC(".maps");

/* The lowest 8 bits of the number of the edition that holds: what a flow remembers. */
static __always_inline uint8_t current_epoch(void)
{
	uint32_t zero = 0;
	const volatile struct vcc_policy *now = bpf_map_lookup_elem(&policy, &zero);

	return now ? (uint8_t)now->epoch : 0;
}

/* Where a rule stands in the maps of rules. */
static __always_inline uint32_t rule_at(uint8_t epoch, uint32_t rule)
{
	return (epoch % EDITIONS) * RULES_MAX + rule % RULES_MAX;
}

static __always_inline struct vcc_params *rule_params(uint8_t epoch, uint32_t rule)
{
	uint32_t at = rule_at(epoch, rule);

	return bpf_map_lookup_elem(&rules, &at);
}

static __always_inline const struct vcc_rule_set *rule_set(uint32_t edition, uint32_t index)
{
	uint32_t at = edition * RULE_SETS_MAX + index % RULE_SETS_MAX;

	return bpf_map_lookup_elem(&rule_sets, &at);
}

/* Of a word that is not 0. BPF has no instruction for it, and its compilers no other way. */
static __always_inline int lowest_bit(uint64_t word)
{
	int at = 0;

	for (int half = 32; half; half /= 2) {
		if (word << (64 - half))
			continue;
		word >>= half;
		at += half;
	}
	return at;
}

/* The first rule in all sets; negative where there is none, which no policy leaves. */
int judge(const struct vcc_key *key, bool guest_opened, uint32_t epoch)
{
	uint32_t zero = 0, edition = epoch % EDITIONS;
	const struct vcc_policy *now = bpf_map_lookup_elem(&policy, &zero);

	if (!key || !now)
		return -1;
	struct vcc_prefix peer = {
		.length_bits = PREFIX_EDITION_BITS + 8 * sizeof(peer.peer_addr),
		.edition = (uint8_t)edition,
	};
	uint32_t guest_port = edition * PORT_NUMBERS + bpf_ntohs(key->guest_port);
	uint32_t peer_port = edition * PORT_NUMBERS + bpf_ntohs(key->peer_port);
	uint32_t vlan = edition * VLAN_IDS + key->vlan % VLAN_IDS;
	uint32_t tenant = edition * PORTS_MAX + constants.index % PORTS_MAX;

	__builtin_memcpy(peer.peer_addr, key->peer_addr, sizeof(peer.peer_addr));
	const uint32_t *by_prefix = bpf_map_lookup_elem(&prefixes, &peer);
	const struct vcc_port_sets *of_guest_port = bpf_map_lookup_elem(&port_numbers, &guest_port);
	const struct vcc_port_sets *of_peer_port = bpf_map_lookup_elem(&port_numbers, &peer_port);
	const uint32_t *by_vlan = bpf_map_lookup_elem(&vlans, &vlan);

	if (!of_guest_port || !of_peer_port || !by_vlan)
		return -1;
	const uint32_t *roles = now->role[edition & 1];
	/* All that the verifier knows of an argument is that it is a number. */
	uint64_t by_role = vcc_opaque(!guest_opened);
	const struct vcc_rule_set *a =
	    rule_set(edition, by_prefix ? *by_prefix : now->any_prefix[edition & 1]);
	const struct vcc_rule_set *b = rule_set(edition, of_guest_port->as_guest_port);
	const struct vcc_rule_set *c = rule_set(edition, of_peer_port->as_peer_port);
	const struct vcc_rule_set *d = rule_set(edition, *by_vlan);
	const struct vcc_rule_set *e = rule_set(edition, roles[by_role & 1]);
	const struct vcc_rule_set *f = bpf_map_lookup_elem(&tenants, &tenant);

	if (!a || !b || !c || !d || !e || !f)
		return -1;
	for (int i = 0; i < RULE_SET_WORDS; i++) {
		uint64_t word = a->words[i] & b->words[i] & c->words[i] & d->words[i] &
				e->words[i] & f->words[i];

		if (word)
			return i * 64 + lowest_bit(word);
	}
	return -1;
}

static __always_inline struct vcc_pool *pool_of(const struct vcc_params *p)
{
	uint32_t at = p->pool % POOLS_MAX;

	return bpf_map_lookup_elem(&pools, &at);
}

static __always_inline struct vcc_rule_totals *totals_of(const struct vcc_flow *f)
{
	uint32_t at = rule_at(f->epoch, f->rule);

	return bpf_map_lookup_elem(&rule_totals, &at);
}

static __always_inline void come_under(struct vcc_flow *f, uint8_t epoch, uint32_t rule)
{
	f->epoch = epoch;
	f->rule = (uint16_t)rule;
	struct vcc_rule_totals *totals = totals_of(f);

	if (totals)
		__sync_fetch_and_add(&totals->connections, 1);
}

static __always_inline void leave_pool(struct vcc_flow *f, const struct vcc_params *p)
{
	struct vcc_pool *pool = pool_of(p);

	if (pool)
		pool_leave(pool, f, pool_holds(f), p->pool_weight);
}

/* It ends, or is left alone from now on: neither its pool nor its rule sees more of it. */
int leave_rule(struct vcc_flow *f)
{
	if (!f)
		return -1;
	struct vcc_params *p = rule_params(f->epoch, f->rule);
	struct vcc_rule_totals *totals = totals_of(f);

	if (!p || !totals)
		return -1;
	leave_pool(f, p);
	__sync_fetch_and_add(&totals->marks, f->marks);
	__sync_fetch_and_add(&totals->reductions, f->reductions);
	__sync_fetch_and_add(&totals->retransmissions, f->retransmissions);
	__sync_fetch_and_add(&totals->drops, f->drops);
	return 0;
}

/*
 * A flow of the edition before is judged by the one that holds. 0: its rule is settled; 1: nothing
 * is to be done with it any more. A handshake ends as it began, unless it is to be settled, for the
 * edition before is about to be written over.
 */
int judge_anew(struct vcc_flow *f, const struct vcc_key *key, uint32_t epoch, bool settle)
{
	if (!f || !key)
		return 1;
	uint8_t behind = (uint8_t)epoch - f->epoch;
	struct vcc_params *before = rule_params(f->epoch, f->rule);

	if (f->stage < STAGE_ESTABLISHED && behind == 1 && !settle)
		return 0;
	int rule = judge(key, f->flags & FLOW_GUEST_OPENED, epoch);
	struct vcc_params *p = rule < 0 ? 0 : rule_params((uint8_t)epoch, (uint32_t)rule);

	if (!p || !before)
		return 1;
	if (p->mode == MODE_IGNORE && !is_kept(f))
		return 1;
	bool same_pool = p->pool_weight == before->pool_weight && p->pool == before->pool;

	if (!same_pool)
		leave_pool(f, before);
	come_under(f, (uint8_t)epoch, (uint32_t)rule);
	vcc_judge_anew(f, p);
	return 0;
}

/* Before and behind the engine, where the flow shares a window. */
int pool_enter(struct vcc_flow *f, const struct vcc_params *p, struct vcc_segment *s, bool to_guest)
{
	if (!f || !p || !s)
		return -1;
	struct vcc_pool *pool = pool_of(p);

	if (pool)
		pool_begin(pool, f, p, to_guest, s);
	return 0;
}

/* Time has passed: 1 where the flow is still in its pool, and is to be looked at again. */
int pool_rest(struct vcc_flow *f, const struct vcc_params *p, uint32_t now_ms)
{
	if (!f || !p)
		return -1;
	struct vcc_pool *pool = pool_of(p);

	if (pool)
		pool_idle(pool, f, p, now_ms);
	return !!(f->shell & SHELL_POOL_MEMBER);
}

int pool_exit(struct vcc_flow *f, const struct vcc_params *p, const struct vcc_segment *s)
{
	if (!f || !p || !s)
		return -1;
	struct vcc_pool *pool = pool_of(p);

	if (pool)
		pool_end(pool, f, p, s);
	return 0;
}

#endif
