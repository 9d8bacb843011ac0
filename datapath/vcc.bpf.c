// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel shell of the engine: TCX programs on a guest's port. Parse, flow, engine, rewrite. */
/*
 * Functions of their own are looked at by the verifier once, for all paths that lead to them,
 * instead of once for each.
 */
#define VCC_APART __attribute__((noinline))

#include "lock.h"
#include "events.h"
#include "fack.h"
#include "neighbours.h"
#include "parse.h"
#include "policy.h"
#include "rewrite.h"
#include "unjudged.h"
#include "engine.h"

#define NSEC_PER_MSEC 1000000ull
/*
 * A flow's timer never fires more often: it is for expiry and for timeouts that nothing else
 * tells of, and an armed timer costs what ten packets cost.
 */
#define TICK_MIN_MS 1000u
/* But where it makes segments for the guest, it must be in time. */
#define EMIT_TICK_MIN_MS 1u

/* TCX_NEXT and TCX_DROP of Linux 6.6; a passed segment goes on to foreign programs. */
#define VERDICT_PASS (-1)
#define VERDICT_DROP 2

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * bpf_map_update_elem wants a value; this is every flow's before its first segment. Whoever puts it
 * there holds it, or another CPU might judge what has no rule yet.
 */
static const uint8_t fresh_entry[sizeof(struct vcc_entry)] = {
	[__builtin_offsetof(struct vcc_entry, lock)] = LOCK_HELD,
};

static uint64_t now_us(void)
{
	return bpf_ktime_get_ns() / 1000;
}

VCC_APART int engine_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s, struct vcc_action *a)
{
	if (!f || !p || !s || !a)
		return -1;
	*a = vcc_from_guest(f, p, s);
	return 0;
}

VCC_APART int engine_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *a)
{
	if (!f || !p || !s || !a)
		return -1;
	*a = vcc_to_guest(f, p, s);
	return 0;
}

VCC_APART int engine_deadline(struct vcc_flow *f, const struct vcc_params *p, uint64_t now,
			      struct vcc_action *a)
{
	if (!f || !p || !a)
		return -1;
	*a = vcc_deadline(f, p, now);
	return 0;
}

static __always_inline void timer_start(struct vcc_entry *e, uint64_t in_ms)
{
	bpf_timer_start(&e->timer, in_ms * NSEC_PER_MSEC, 0);
}

/*
 * How the flow is treated. `port` without a policy; with one, by the flow's rule, which is found
 * anew where another edition holds by now. Null: it is no flow of ours any more.
 */
static __always_inline struct vcc_params *treatment(struct vcc_params *port, struct vcc_flow *f,
						    const struct vcc_key *key, bool settle)
{
	if (!constants.by_policy)
		return port;
	uint8_t epoch = current_epoch();

	if (f->epoch != epoch && judge_anew(f, key, epoch, settle))
		return 0;
	return rule_params(f->epoch, f->rule);
}

/* The flow's lock is held: what is due at it by now. */
static __always_inline struct vcc_action tick(struct vcc_params *p, struct vcc_key *key,
					      struct vcc_entry *e)
{
	uint64_t now = now_us();
	struct vcc_action a = { .deadline_ms = TICK_MIN_MS };

	if (!p) {
		a.forget = true;
		return a;
	}
	engine_deadline(&e->flow, p, now, &a);
	if (a.dupacks)
		tell(EVENT_DUPACKS, key, &e->flow, now, a.dupacks);
	if (a.update)
		tell(EVENT_WINDOW, key, &e->flow, now, 0);
	if (p->pool_weight && pool_rest(&e->flow, p, (uint32_t)(now / 1000)) > 0)
		a.deadline_ms = TICK_MIN_MS;
	if (p->emit && a.deadline_ms < TICK_MIN_MS)
		e->flow.shell |= SHELL_TIMER_IS_NEAR;
	else
		e->flow.shell &= (uint8_t)~SHELL_TIMER_IS_NEAR;
	/* Looks in often: who arms the near timer meanwhile is overruled here. */
	if (p->emit)
		a.deadline_ms = vcc_max(vcc_min(a.deadline_ms, TICK_MIN_MS), EMIT_TICK_MIN_MS);
	else
		a.deadline_ms = vcc_max(a.deadline_ms, TICK_MIN_MS);
	return a;
}

static int flow_tick(void *map, struct vcc_key *key, struct vcc_entry *e)
{
	struct vcc_params *port = port_params();
	/* Functions of their own may not be given the map's. */
	struct vcc_key own = *key;
	struct vcc_action a = { .deadline_ms = TICK_MIN_MS };

	if (!port)
		return 0;
	if (flow_lock(&e->lock) == LOCK_FREE) {
		a = tick(treatment(port, &e->flow, &own, false), &own, e);
		if (constants.by_policy && a.forget)
			leave_rule(&e->flow);
		flow_unlock(&e->lock, a.forget);
	}
	if (a.forget)
		bpf_map_delete_elem(map, key);
	else
		timer_start(e, a.deadline_ms);
	return 0;
}

/* Hold the flow; false if it cannot be had. */
static __always_inline bool hold(struct vcc_entry *e)
{
	enum lock_state found = flow_lock(&e->lock);

	if (found == LOCK_FREE)
		return true;
	count(found == LOCK_GONE ? COUNT_UNKNOWN : COUNT_CONTENDED);
	return false;
}

/*
 * A SYN makes a flow, and holds it; null where the port has no room or takes no new ones, or the
 * policy wants none.
 */
static __always_inline struct vcc_entry *flow_create(const struct vcc_key *key, enum direction dir,
						     const struct vcc_params *port)
{
	uint8_t epoch = 0;
	int rule = 0;

	if (port->mode == MODE_DRAIN)
		return 0;
	if (constants.by_policy) {
		epoch = current_epoch();
		rule = judge(key, dir == FROM_GUEST, epoch);
		const struct vcc_params *p = rule < 0 ? 0 : rule_params(epoch, (uint32_t)rule);

		if (!p || p->mode == MODE_IGNORE) {
			count(COUNT_IGNORED);
			return 0;
		}
	}
	long err = bpf_map_update_elem(&flows, key, fresh_entry, BPF_NOEXIST);
	struct vcc_entry *e = bpf_map_lookup_elem(&flows, key);

	if (!e) {
		count(COUNT_TABLE_FULL);
		return 0;
	}
	/* Another CPU was first with a copy of the same SYN. */
	if (err)
		return hold(e) ? e : 0;
	bpf_timer_init(&e->timer, &flows, 1 /* CLOCK_MONOTONIC */);
	bpf_timer_set_callback(&e->timer, flow_tick);
	timer_start(e, TICK_MIN_MS);
	if (constants.by_policy)
		come_under(&e->flow, epoch, (uint32_t)rule);
	return e;
}

/* Another connection has the ports of one that has ended, of which nothing is kept any more. */
static __always_inline bool has_ended(struct vcc_entry *e, const struct vcc_key *key)
{
	if (e->flow.stage != STAGE_CLOSED || !hold(e))
		return false;
	bool ended = e->flow.stage == STAGE_CLOSED;

	if (ended)
		leave_rule(&e->flow);
	flow_unlock(&e->lock, ended);
	if (ended)
		bpf_map_delete_elem(&flows, key);
	return ended;
}

#define CACHE_LINE_BYTES 64

/*
 * Asks for all of a flow at once. Of one among thousands nothing is in the cache, and the lock,
 * which no load overtakes, and then the engine would wait for one line after the other.
 */
static __always_inline void fetch(const struct vcc_entry *e)
{
	const volatile uint32_t *line = (const volatile uint32_t *)&e->flow;
	const uint32_t step = CACHE_LINE_BYTES / sizeof(*line);

	(void)line[0];
	(void)line[step];
	(void)line[2 * step];
	(void)line[sizeof(e->flow) / sizeof(*line) - 1];
}

/* With data under way, a timeout that makes segments for the guest may come soon. */
static __always_inline bool wants_near_timer(struct vcc_flow *f, const struct vcc_params *p,
					     const struct vcc_segment *s)
{
	if (!p->emit || (f->shell & SHELL_TIMER_IS_NEAR) || !s->payload_bytes)
		return false;
	f->shell |= SHELL_TIMER_IS_NEAR;
	return true;
}

static __always_inline int carry_out(struct __sk_buff *skb, enum direction dir,
				     const struct frame *fr, const struct vcc_segment *s,
				     const struct vcc_action *a)
{
	if (a->forged)
		count(COUNT_FORGED);
	if (fr->options.malformed)
		count(COUNT_BAD_OPTIONS);
	if (a->verdict == VCC_CONSUME)
		return VERDICT_DROP;
	if (a->verdict == VCC_DROP) {
		count(a->police ? COUNT_POLICED : COUNT_DROPPED);
		return VERDICT_DROP;
	}
	if (rewrite(skb, dir, fr, s, a)) {
		count(COUNT_REWRITE_FAILED);
		return VERDICT_DROP;
	}
	/* BIG TCP's jumbo option (RFC 2675) has no place in a FACK: the next report will do. */
	if (dir == FROM_GUEST && a->emit == EMIT_FACK && (!fr->ip_length || fack_send(skb)))
		count(COUNT_REPORT_LOST);
	return VERDICT_PASS;
}

/*
 * The flow's lock is held. What the engine makes of the segment. Returns in how many ms the flow is
 * to be looked at; 0: as was planned.
 */
static __always_inline uint32_t decide(struct vcc_entry *e, const struct vcc_params *port,
				       const struct vcc_params *p, enum direction dir,
				       const struct vcc_key *key, struct vcc_segment *s,
				       struct vcc_action *a)
{
	bool pooled = constants.by_policy && p->pool_weight;
	bool member = e->flow.shell & SHELL_POOL_MEMBER, near = false;

	if (pooled)
		pool_enter(&e->flow, p, s, dir == TO_GUEST);
	if (dir == FROM_GUEST) {
		engine_from_guest(&e->flow, p, s, a);
		near = wants_near_timer(&e->flow, p, s);
	} else {
		engine_to_guest(&e->flow, p, s, a);
		if (port->trace && a->verdict == VCC_PASS && (s->flags & TCP_ACK) && is_traced(key))
			tell(EVENT_ACK, key, &e->flow, s->now_us, 0);
	}
	if (pooled)
		pool_exit(&e->flow, p, s);
	if (near)
		return p->emit_after_us / 1000 + 1;
	/* Who emits looks as often. */
	return !member && (e->flow.shell & SHELL_POOL_MEMBER) && !p->emit ? TICK_MIN_MS : 0;
}

/* A SYN makes a flow; but of a peer that signs it, the connection is signed (signed.h). */
static __always_inline bool opens_flow(const struct vcc_segment *s, enum direction dir)
{
	return (s->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN &&
	       (dir == FROM_GUEST || !(s->options & OPT_SIGNED));
}

static __always_inline int translate(struct __sk_buff *skb, enum direction dir)
{
	/* Compared as words where it is traced. */
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_segment s;
	struct frame fr;
	struct vcc_action a = {};
	uint32_t what = parse(skb, dir, &fr, &key, &s);

	if (what != PARSED)
		return passes_unread(skb, what) ? VERDICT_PASS : VERDICT_DROP;
	struct vcc_params *port = port_params();

	if (!port)
		return VERDICT_PASS;
	struct vcc_entry *e = bpf_map_lookup_elem(&flows, &key);
	bool opens = opens_flow(&s, dir);

	if (constants.by_policy && opens && e && has_ended(e, &key))
		e = 0;
	if (e) {
		fetch(e);
		s.now_us = now_us();
		enum lock_state found = flow_lock(&e->lock);

		if (found == LOCK_HELD)
			return passes_contended(e) ? VERDICT_PASS : VERDICT_DROP;
		if (found == LOCK_GONE) {
			count(COUNT_UNKNOWN);
			return VERDICT_PASS;
		}
	} else {
		if (!opens)
			count((s.options & OPT_SIGNED) ? COUNT_SIGNED : COUNT_UNKNOWN);
		else
			e = flow_create(&key, dir, port);
		if (!e)
			return VERDICT_PASS;
		s.now_us = now_us();
	}
	struct vcc_params *p = treatment(port, &e->flow, &key, false);
	uint32_t look_in_ms = 0;

	if (p)
		look_in_ms = decide(e, port, p, dir, &key, &s, &a);
	else
		a.forget = true;
	if (constants.by_policy && a.forget)
		leave_rule(&e->flow);
	flow_unlock(&e->lock, a.forget);

	if (a.forget)
		bpf_map_delete_elem(&flows, &key);
	if (!p)
		return VERDICT_PASS;
	if (look_in_ms && !a.forget)
		timer_start(e, look_in_ms);
	if (p->emit && dir == FROM_GUEST && (s.flags & TCP_SYN))
		neighbour_learn(skb, &key);
	return carry_out(skb, dir, &fr, &s, &a);
}

/* The clone of a segment beside which a report is due. It leaves as a FACK, or not at all. */
static __noinline int make_fack(struct __sk_buff *skb)
{
	/* Compared as words where it is traced. */
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_segment s;
	struct frame fr;

	skb->mark = 0;
	if (parse(skb, FROM_GUEST, &fr, &key, &s) != PARSED)
		return VERDICT_DROP;
	struct vcc_entry *e = bpf_map_lookup_elem(&flows, &key);

	if (!e || !hold(e))
		return VERDICT_DROP;
	struct vcc_feedback counted = e->flow.counted;
	bool capable = ecn_capable(&e->flow, SENT_NOTHING, &s);

	flow_unlock(&e->lock, false);
	if (fack_finish(skb, &fr, &key, &s, &counted, capable ? IP_ECN_ECT_0 : IP_ECN_NOT_ECT)) {
		count(COUNT_REPORT_LOST);
		return VERDICT_DROP;
	}
	return VERDICT_PASS;
}

/* Apart from make_fack, for their stacks together would be too much. */
static __noinline int translate_from_guest(struct __sk_buff *skb)
{
	return translate(skb, FROM_GUEST);
}

SEC("tcx/ingress") int from_guest(struct __sk_buff *skb)
{
	return skb->mark == FACK_MARK ? make_fack(skb) : translate_from_guest(skb);
}

SEC("tcx/egress") int to_guest(struct __sk_buff *skb)
{
	return translate(skb, TO_GUEST);
}

struct sweep {
	bool forget;
	bool settle;
	uint32_t judged;
};

/* bpf_for_each_map_elem's callback: goes on while it is 0. */
static long sweep_one(void *map, struct vcc_key *key, struct vcc_entry *e, struct sweep *sweep)
{
	struct vcc_params *port = port_params();

	if (!port || flow_lock(&e->lock) != LOCK_FREE)
		return 0;
	/* Timers run what they were given when they were made, which may be an older version. */
	bpf_timer_set_callback(&e->timer, flow_tick);
	struct vcc_key own = *key;
	struct vcc_params *p = treatment(port, &e->flow, &own, sweep->settle);
	bool forget = sweep->forget || !p;

	if (forget && constants.by_policy)
		leave_rule(&e->flow);
	flow_unlock(&e->lock, forget);
	sweep->judged++;
	if (forget)
		bpf_map_delete_elem(map, key);
	return 0;
}

/*
 * Attached to nothing, run by user space on a frame of no matter what: every flow comes under the
 * edition that holds, or goes. One that a CPU has in hand is judged by that. Returns how many it
 * saw.
 */
SEC("tcx/ingress") int sweep(struct __sk_buff *skb)
{
	struct sweep sweep = {
		.forget = skb->mark == FORGET_MARK,
		.settle = skb->mark == SETTLE_MARK,
	};

	bpf_for_each_map_elem(&flows, sweep_one, &sweep, 0);
	return (int)sweep.judged;
}

/* The yardstick of `vcc bench`: what it costs to look at a frame and leave it alone. */
static __always_inline int look_only(struct __sk_buff *skb, enum direction dir)
{
	/* Compared as words where it is traced. */
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_segment s;
	struct frame fr;
	uint32_t what = parse(skb, dir, &fr, &key, &s);

	if (what != PARSED)
		count(what);
	/* All that was parsed counts as used, as it is where an engine follows. */
	asm volatile("" : : "r"(&key), "r"(&s), "r"(&fr) : "memory");
	return VERDICT_PASS;
}

SEC("tcx/ingress") int parse_from_guest(struct __sk_buff *skb)
{
	return look_only(skb, FROM_GUEST);
}

SEC("tcx/egress") int parse_to_guest(struct __sk_buff *skb)
{
	return look_only(skb, TO_GUEST);
}
