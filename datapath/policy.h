/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policy lookup: which rule treats a flow (abi.h, struct vcc_policy). */
#ifndef VCC_POLICY_H
#define VCC_POLICY_H

#include "maps.h"
#include "engine.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_policy);
} policy SEC(".maps");

/* The parameters of each rule. */
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

/* Prefix to the index of a rule set. */
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

/* VLAN ID to the index of a rule set; 0: untagged. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *VLAN_IDS);
	__type(key, uint32_t);
	__type(value, uint32_t);
} vlans SEC(".maps");

/* Port index to the set of rules that apply to its tenant. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EDITIONS *PORTS_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_rule_set);
} tenants SEC(".maps");

/* A pool has the same number in all editions. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, POOLS_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_pool);
} pools SEC(".maps");

/* The low 8 bits of the current epoch, as recorded in a flow. */
static __always_inline uint8_t current_epoch(void)
{
	uint32_t zero = 0;
	const volatile struct vcc_policy *now = bpf_map_lookup_elem(&policy, &zero);

	return now ? (uint8_t)now->epoch : 0;
}

/* The index of a rule in `rules` and `rule_totals`. */
static __always_inline uint32_t rule_at(uint8_t epoch, uint32_t rule)
{
	return (epoch % EDITIONS) * RULES_MAX + rule % RULES_MAX;
}

static __always_inline struct vcc_params *rule_params(uint8_t epoch, uint32_t rule)
{
	uint32_t at = rule_at(epoch, rule);

	return bpf_map_lookup_elem(&rules, &at);
}

/* The parameters by which a flow was last treated. Null: there are none. */
static __always_inline const struct vcc_params *last_treatment(const struct vcc_port *port,
							       const struct vcc_flow *f)
{
	return port->by_policy ? rule_params(f->epoch, f->rule) : &port->params;
}

static __always_inline const struct vcc_rule_set *rule_set(uint32_t edition, uint32_t index)
{
	uint32_t at = edition * RULE_SETS_MAX + index % RULE_SETS_MAX;

	return bpf_map_lookup_elem(&rule_sets, &at);
}

/* Count trailing zeros of a word that is not 0: BPF has no instruction for it. */
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

/* The first rule in all sets; negative if there is none, which a valid policy rules out. */
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
	/* Without KEY_INSIDE. */
	uint32_t vlan = edition * VLAN_IDS + key->vlan % VLAN_IDS;
	uint32_t tenant = edition * PORTS_MAX + key->port % PORTS_MAX;

	__builtin_memcpy(peer.peer_addr, key->peer_addr, sizeof(peer.peer_addr));
	const uint32_t *by_prefix = bpf_map_lookup_elem(&prefixes, &peer);
	const struct vcc_port_sets *of_guest_port = bpf_map_lookup_elem(&port_numbers, &guest_port);
	const struct vcc_port_sets *of_peer_port = bpf_map_lookup_elem(&port_numbers, &peer_port);
	const uint32_t *by_vlan = bpf_map_lookup_elem(&vlans, &vlan);

	if (!of_guest_port || !of_peer_port || !by_vlan)
		return -1;
	const uint32_t *roles = now->role[edition & 1];
	/* The verifier knows no bounds of a global function's scalar argument. */
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
		pool_leave(pool, f, pool_flow_bytes(f), p->pool_weight);
}

/* The flow ends or is left alone: removes it from its pool and adds its counters to its rule. */
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
 * Judges a flow of an earlier edition by the current one. Returns 0 if the flow has a rule, 1 if it
 * must be forgotten. A half-open flow keeps its rule until its handshake completes, unless `settle`
 * demands a decision because the earlier edition is about to be overwritten.
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

/* Called before the engine for a flow with a pool; pool_exit() is called after it. */
int pool_enter(struct vcc_flow *f, const struct vcc_params *p, struct vcc_segment *s, bool to_guest)
{
	if (!f || !p || !s)
		return -1;
	struct vcc_pool *pool = pool_of(p);

	if (pool)
		pool_begin(pool, f, p, to_guest, s);
	return 0;
}

/* Called on a deadline. Returns 1 if the flow is still in its pool and needs another deadline. */
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
