// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel shell of the engine: TCX programs on a guest's port. Parse, flow, engine, rewrite. */
#include "lock.h"
#include "parse.h"
#include "rewrite.h"
#include "engine.h"

#define NSEC_PER_MSEC 1000000ull
/*
 * A flow's timer never fires more often: it is for expiry and for timeouts that nothing else
 * tells of, and an armed timer costs what ten packets cost.
 */
#define TICK_MIN_MS 1000u

/* TCX_NEXT and TCX_DROP of Linux 6.6; a passed segment goes on to foreign programs. */
#define VERDICT_PASS (-1)
#define VERDICT_DROP 2

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* bpf_map_update_elem wants a value; this is every flow's before its first segment. */
static const uint8_t empty_entry[sizeof(struct vcc_entry)];

static uint64_t now_us(void)
{
	return bpf_ktime_get_ns() / 1000;
}

static int flow_tick(void *map, struct vcc_key *key, struct vcc_entry *e)
{
	struct vcc_params *p = port_params();
	uint64_t now = now_us();

	if (!p)
		return 0;
	struct vcc_action a = { .deadline_ms = TICK_MIN_MS };

	if (flow_lock(&e->lock)) {
		a = vcc_deadline(&e->flow, p, now);
		e->forgotten = a.forget;
		flow_unlock(&e->lock);
	}
	if (a.forget)
		bpf_map_delete_elem(map, key);
	else
		bpf_timer_start(&e->timer, vcc_max(a.deadline_ms, TICK_MIN_MS) * NSEC_PER_MSEC, 0);
	return 0;
}

/* A SYN makes a flow; null where the port has no room, or takes no new ones. */
static __always_inline struct vcc_entry *flow_create(const struct vcc_key *key,
						     const struct vcc_params *p)
{
	if (p->mode == MODE_DRAIN)
		return 0;
	long err = bpf_map_update_elem(&flows, key, empty_entry, BPF_NOEXIST);
	struct vcc_entry *e = bpf_map_lookup_elem(&flows, key);

	/* Another CPU may have been first with a copy of the same SYN. */
	if (!e)
		count(COUNT_TABLE_FULL);
	if (!e || err)
		return e;
	bpf_timer_init(&e->timer, &flows, 1 /* CLOCK_MONOTONIC */);
	bpf_timer_set_callback(&e->timer, flow_tick);
	bpf_timer_start(&e->timer, TICK_MIN_MS * NSEC_PER_MSEC, 0);
	return e;
}

static __always_inline int translate(struct __sk_buff *skb, enum direction dir)
{
	struct vcc_key key;
	struct vcc_segment s;
	struct frame fr;
	struct vcc_action a;
	uint32_t what = parse(skb, dir, &fr, &key, &s);

	if (what != PARSED) {
		count(what);
		return VERDICT_PASS;
	}
	struct vcc_params *p = port_params();

	if (!p)
		return VERDICT_PASS;
	struct vcc_entry *e = bpf_map_lookup_elem(&flows, &key);

	if (!e) {
		if ((s.flags & (TCP_SYN | TCP_ACK)) != TCP_SYN) {
			count(COUNT_UNKNOWN);
			return VERDICT_PASS;
		}
		e = flow_create(&key, p);
		if (!e)
			return VERDICT_PASS;
	}
	s.now_us = now_us();
	if (!flow_lock(&e->lock)) {
		count(COUNT_CONTENDED);
		return VERDICT_PASS;
	}
	if (e->forgotten) {
		flow_unlock(&e->lock);
		count(COUNT_UNKNOWN);
		return VERDICT_PASS;
	}
	a = dir == FROM_GUEST ? vcc_from_guest(&e->flow, p, &s) : vcc_to_guest(&e->flow, p, &s);
	e->forgotten = a.forget;
	flow_unlock(&e->lock);

	if (a.forget)
		bpf_map_delete_elem(&flows, &key);
	if (a.verdict == VCC_DROP) {
		count(COUNT_DROPPED);
		return VERDICT_DROP;
	}
	if (rewrite(skb, dir, &fr, &s, &a)) {
		count(COUNT_REWRITE_FAILED);
		return VERDICT_DROP;
	}
	return VERDICT_PASS;
}

SEC("tcx/ingress") int from_guest(struct __sk_buff *skb)
{
	return translate(skb, FROM_GUEST);
}

SEC("tcx/egress") int to_guest(struct __sk_buff *skb)
{
	return translate(skb, TO_GUEST);
}

/* The yardstick of `vcc bench datapath`: what it costs to look at a frame and leave it alone. */
SEC("tcx/ingress") int parse_only(struct __sk_buff *skb)
{
	struct vcc_key key;
	struct vcc_segment s;
	struct frame fr;
	uint32_t what = parse(skb, FROM_GUEST, &fr, &key, &s);

	if (what != PARSED)
		count(what);
	/* All that was parsed counts as used, as it is where an engine follows. */
	asm volatile("" : : "r"(&key), "r"(&s), "r"(&fr) : "memory");
	return VERDICT_PASS;
}
