// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine's kernel shell. Parse, look up, engine, rewrite. The programs serve all ports of a
 * host: each port's own program (port.bpf.c) calls them with its index.
 */
/* The verifier checks a global function once, instead of at every call site. */
#define VCC_APART __attribute__((noinline))
/* Underlays may be loaded at run time. */
#define VCC_LOADED static inline __attribute__((always_inline))

#include "tail_calls.h"
#include "events.h"
#include "fack.h"
#include "fack_tunnel.h"
#include "departure.h"
#include "fast_path.h"
#include "fragment.h"
#include "parse_tunnel.h"
#include "neighbours.h"
#include "parse.h"
#include "policy.h"
#include "rewrite.h"
#include "revival.h"
#include "rewrite_tunnel.h"
#include "flow_arrival.h"
#include "sweep.h"
#include "flow_table.h"
#include "timers.h"
#include "underlays.h"
#include "unparsed_tcp.h"
#include "unknown_segment.h"
#include "program_state.h"
#include "engine.h"
#include "guest_rate.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

VCC_APART int engine_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				const struct vcc_segment *s, struct vcc_action *a)
{
	if (!f || !p || !s || !a)
		return -1;
	vcc_from_guest(f, p, s, a);
	return 0;
}

VCC_APART int engine_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			      const struct vcc_segment *s, struct vcc_action *restrict a)
{
	if (!f || !p || !s || !a)
		return -1;
	vcc_to_guest(f, p, s, a);
	return 0;
}

/* contended_flow.h for both directions. */
VCC_APART int engine_unheld(const struct vcc_flow *f, const struct vcc_params *p,
			    const struct vcc_segment *s, struct vcc_action *a, uint32_t dir)
{
	if (!f || !p || !s || !a)
		return -1;
	if (dir == FROM_GUEST)
		unheld_from_guest(f, p, s, a);
	else
		unheld_to_guest(f, p, s, a);
	return 0;
}

/*
 * The table is full: `drop` becomes the rule's on_full, and a SYN that passes stays untranslated.
 * If data of its connection would be dropped, so is the SYN. Returns null.
 */
static __always_inline struct vcc_entry *flow_refuse(const struct vcc_params *p, uint32_t port,
						     bool *drop)
{
	*drop = p->on_full == ON_FULL_DROP || rejects_unknown(p);
	count(port, *drop ? COUNT_REFUSED : COUNT_TABLE_FULL);
	return 0;
}

/*
 * Creates and holds a flow for a SYN. Null if the table is full, the port drains, or the policy
 * ignores the connection; `drop` then says whether to drop the SYN.
 */
static __noinline struct vcc_entry *flow_create(const struct vcc_key *key, enum direction dir,
						const struct vcc_port *port, bool *drop)
{
	const struct vcc_params *p = &port->params;
	struct vcc_usage *used = usage_of(key->port);
	uint32_t now_ms = (uint32_t)(now_us() / 1000);
	uint8_t epoch = 0;
	int rule = 0;

	if (p->mode == MODE_DRAIN || !used)
		return 0;
	if (port->by_policy) {
		epoch = current_epoch();
		rule = judge(key, dir == FROM_GUEST, epoch);
		p = rule < 0 ? 0 : rule_params(epoch, (uint32_t)rule);

		if (!p || p->mode == MODE_IGNORE) {
			count(key->port, COUNT_IGNORED);
			return 0;
		}
	}
	timer_check(key->port, now_ms);
	struct vcc_entry *there;
	struct vcc_entry *e = entry_create(key, port, used, &there);

	/* Another CPU has created the flow for a duplicate of the SYN. */
	if (there)
		return hold_counted(there, key, flow_tag_apart(key)) ? there : 0;
	if (!e)
		return flow_refuse(p, key->port, drop);
	if (port->by_policy)
		come_under(&e->flow, epoch, (uint32_t)rule);
	if (file(e, key, now_ms, LOOK_MIN_MS, true)) {
		count(key->port, COUNT_UNTIMED);
		flow_forget(e, key);
		return flow_refuse(p, key->port, drop);
	}
	if (!half_open_enter(e, key, port, used)) {
		flow_forget(e, key);
		return flow_refuse(p, key->port, drop);
	}
	return e;
}

/* Forgets a closed flow whose addresses and ports a new connection reuses. */
static __noinline bool has_ended(struct vcc_entry *e, const struct vcc_key *key, uint64_t tag)
{
	if (e->flow.stage != STAGE_CLOSED || hold(e, key, tag) != LOCK_FREE)
		return false;
	if (e->flow.stage == STAGE_CLOSED)
		return !flow_forget(e, key);
	flow_unlock(&e->lock, false);
	return false;
}

static __always_inline int carry_out(struct __sk_buff *skb, enum direction dir, uint32_t port,
				     const struct frame *fr, const struct vcc_segment *s,
				     const struct vcc_action *a)
{
	if (a->forged)
		count(port, COUNT_FORGED);
	if (a->one_direction)
		count(port, COUNT_ONE_DIRECTION);
	if (fr->options.malformed)
		count(port, COUNT_BAD_OPTIONS);
	if (a->verdict == VCC_CONSUME)
		return VERDICT_DROP;
	if (a->verdict == VCC_DROP) {
		count(port, a->police == POLICED_UNKNOWN ? COUNT_UNKNOWN_DROPPED
			    : a->police			 ? COUNT_POLICED
							 : COUNT_DROPPED);
		return VERDICT_DROP;
	}
	if (is_inside(fr) ? rewrite_inside(skb, fr, s, a, dir) : rewrite(skb, dir, fr, s, a)) {
		count(port, COUNT_REWRITE_FAILED);
		return VERDICT_DROP;
	}
	if (dir == FROM_GUEST && a->emit == EMIT_FACK)
		send_report(skb, fr, port);
	if (dir == TO_GUEST && a->delay_us)
		depart_after(skb, a->delay_us);
	return VERDICT_PASS;
}

/*
 * Drops what exceeds the rate of all the guest's connections, of which `f` is one. A function of
 * its own, to save stack.
 */
static __noinline bool cap_guest_rate(const struct vcc_flow *f, const struct vcc_params *p,
				      uint32_t port, const struct vcc_segment *s,
				      struct vcc_action *a)
{
	struct vcc_usage *used = usage_of(port);

	if (!used || !exceeds_guest_rate(&used->rate_full_ns, f, p, s, a))
		return false;
	drop_policed(a);
	return true;
}

/* Runs the engine on a held flow. */
static __always_inline void decide(struct vcc_entry *e, const struct vcc_port *port,
				   const struct vcc_params *p, enum direction dir,
				   const struct vcc_key *key, struct vcc_segment *s,
				   struct vcc_action *a)
{
	bool pooled = port->by_policy && p->pool_weight;

	if (pooled)
		pool_enter(&e->flow, p, s, dir == TO_GUEST);
	if (dir == FROM_GUEST) {
		engine_from_guest(&e->flow, p, s, a);
		if (p->guest_rate_cap_bytes_per_ms && cap_guest_rate(&e->flow, p, key->port, s, a))
			count_policed(&e->flow);
	} else {
		engine_to_guest(&e->flow, p, s, a);
		if (port->params.trace && a->verdict == VCC_PASS && (s->flags & TCP_ACK) &&
		    is_traced(port, key))
			send_event(EVENT_ACK, key, &e->flow, s->now_us, 0);
	}
	if (pooled)
		pool_exit(&e->flow, p, s);
}

/* Releases a held flow after a segment, or forgets it. */
static __always_inline void settle(struct vcc_entry *e, const struct vcc_params *p,
				   const struct vcc_key *key, uint32_t now_ms, bool forget)
{
	if (forget || !p) {
		flow_forget(e, key);
		return;
	}
	if (e->half_open && is_open(&e->flow))
		half_open_leave(e, key->port);
	release(e, p, key, now_ms);
}

/*
 * Does the SYN create a flow? Not a signed SYN from the peer (signed_connection.h), nor one in a
 * tunnel that the port no longer looks into.
 */
static __always_inline bool opens_flow(const struct vcc_segment *s, const struct frame *fr,
				       uint32_t port, enum direction dir)
{
	return (s->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN &&
	       (dir == FROM_GUEST || !(s->options & OPT_SIGNED)) &&
	       (!is_inside(fr) || looks_into(port, outer_of_cpu()));
}

/* Parses a frame, or the segment in the tunnel that it is of, and takes the flow's tag. */
static __always_inline uint32_t parse_any(struct __sk_buff *skb, enum direction dir, uint32_t index,
					  struct work *w)
{
	uint32_t what = parse(skb, dir, index, &w->frame, &w->key, &w->segment);

	/* A tunnel may be behind extension headers, too, and none is read behind so many. */
	if (what == COUNT_NOT_TCP || what == COUNT_DEEP) {
		uint32_t inside = (uint32_t)parse_inside(skb, dir, &w->frame, &w->key, &w->segment);

		if (what == COUNT_NOT_TCP || inside == COUNT_UNJUDGED)
			what = inside;
	}
	if (what == PARSED)
		w->tag = flow_tag_apart(&w->key);
	return what;
}

/*
 * A segment of a flow that another CPU did not release. Out of line, or the verifier would follow
 * each of its ends to the end of the program.
 */
static __noinline int translate_unheld(struct __sk_buff *skb, enum direction dir, struct work *w,
				       const struct vcc_port *port, const struct vcc_entry *e)
{
	const struct vcc_params *p =
	    port->by_policy ? rule_params(e->flow.epoch, e->flow.rule) : &port->params;
	uint32_t index = w->key.port;

	count(index, COUNT_CONTENDED);
	if (!p)
		return VERDICT_PASS;
	engine_unheld(&e->flow, p, &w->segment, &w->action, dir);
	if (dir == FROM_GUEST && p->guest_rate_cap_bytes_per_ms)
		cap_guest_rate(&e->flow, p, index, &w->segment, &w->action);
	return carry_out(skb, dir, index, &w->frame, &w->segment, &w->action);
}

static __always_inline int translate(struct __sk_buff *skb, enum direction dir)
{
	struct work *w = work_of_cpu();
	uint32_t index = skb->cb[CB_PORT];

	if (!w)
		return VERDICT_PASS;
	struct vcc_segment *s = &w->segment;
	struct vcc_action *a = &w->action;
	uint32_t what = w->is_parsed ? PARSED : parse_any(skb, dir, index, w);

	if (what != PARSED) {
		if (!passes_unread(skb, index, what))
			return VERDICT_DROP;
		if (what == COUNT_FRAGMENT && dir == FROM_GUEST)
			fragment_from_guest(skb, w);
		return VERDICT_PASS;
	}
	struct vcc_port *port = port_at(index);

	if (!port)
		return VERDICT_PASS;
	struct vcc_entry *e = flow_of(w->tag);
	bool opens = opens_flow(s, &w->frame, index, dir);
	bool drop = false, is_new = false;

	if (port->by_policy && opens && e && has_ended(e, &w->key, w->tag))
		e = 0;
	if (e) {
		fetch(e, ENTRY_LINES);
		if (!s->now_us)
			s->now_us = now_us();
		enum lock_state found = hold(e, &w->key, w->tag);

		if (found == LOCK_HELD)
			return translate_unheld(skb, dir, w, port, e);
		/* The flow of a SYN is not created beside one that is just being deleted. */
		if (found == LOCK_GONE && opens)
			return passes_known(e, port, index, COUNT_CONTENDED) ? VERDICT_PASS
									     : VERDICT_DROP;
		if (found == LOCK_GONE)
			return passes_unknown(w, dir) ? VERDICT_PASS : VERDICT_DROP;
	} else {
		if (dir == FROM_GUEST && (s->flags & TCP_SYN))
			minisock_supersede(&w->key, s);
		if (opens)
			e = flow_create(&w->key, dir, port, &drop);
		else if (!(s->flags & TCP_RST) && !flow_revive(&w->key))
			e = flow_of(w->tag);
		else
			drop = !passes_unknown(w, dir);
		if (!e)
			return drop ? VERDICT_DROP : VERDICT_PASS;
		is_new = true;
		s->now_us = now_us();
	}
	if (is_inside(&w->frame) && !is_in_its_tunnel(e, s, dir, is_new)) {
		flow_unlock(&e->lock, false);
		return passes_known(e, port, index, COUNT_OTHER_TUNNEL) ? VERDICT_PASS
									: VERDICT_DROP;
	}
	struct vcc_params *p = treatment(port, &e->flow, &w->key, false);

	*a = (struct vcc_action){};
	if (p)
		decide(e, port, p, dir, &w->key, s, a);
	settle(e, p, &w->key, (uint32_t)(s->now_us / 1000), a->forget);
	if (!p)
		return VERDICT_PASS;
	if (has_delays(a))
		count_delays(index, a->fabric_us, a->guest_us);
	if (p->emit && dir == FROM_GUEST && (s->flags & TCP_SYN) && !is_inside(&w->frame))
		neighbour_learn(skb, &w->key);
	return carry_out(skb, dir, index, &w->frame, s, a);
}

/* Turns the clone of a segment into a FACK; drops it on failure. */
static __always_inline int make_fack(struct __sk_buff *skb)
{
	struct work *w = work_of_cpu();

	skb->mark = 0;
	if (!w || parse_any(skb, FROM_GUEST, skb->cb[CB_PORT], w) != PARSED)
		return VERDICT_DROP;
	struct vcc_entry *e = flow_of(w->tag);

	if (!e || !hold_counted(e, &w->key, w->tag))
		return VERDICT_DROP;
	struct vcc_feedback *counted = &w->action.feedback;

	*counted = e->flow.counted;
	bool capable = ecn_capable(&e->flow, SENT_NOTHING, &w->segment);

	flow_unlock(&e->lock, false);
	uint8_t ip_ecn = capable ? IP_ECN_ECT_0 : IP_ECN_NOT_ECT;
	long err;

	if (is_inside(&w->frame)) {
		w->segment.ip_ecn = ip_ecn;
		err = fack_finish_inside(skb, &w->frame, &w->key, &w->segment, counted);
	} else {
		err = fack_finish(skb, &w->frame, &w->key, &w->segment, counted, ip_ecn);
	}
	if (err) {
		count(w->key.port, COUNT_REPORT_LOST);
		return VERDICT_DROP;
	}
	return VERDICT_PASS;
}

SEC("tcx/ingress") int fast_from_guest(struct __sk_buff *skb)
{
	if (skb->mark == FACK_MARK) {
		bpf_tail_call_static(skb, &call_from_guest, CALL_FACK);
		return VERDICT_DROP;
	}
	struct work *w = work_of_cpu();
	int verdict = w ? translate_fast(skb, FROM_GUEST, w) : VERDICT_PASS;

	if (verdict == HAND_ON) {
		bpf_tail_call_static(skb, &call_from_guest, CALL_WHOLE);
		return VERDICT_PASS;
	}
	return verdict;
}

SEC("tcx/egress") int fast_to_guest(struct __sk_buff *skb)
{
	struct work *w = work_of_cpu();
	int verdict = w ? translate_fast(skb, TO_GUEST, w) : VERDICT_PASS;

	if (verdict == HAND_ON) {
		bpf_tail_call_static(skb, &call_to_guest, CALL_WHOLE);
		return VERDICT_PASS;
	}
	return verdict;
}

SEC("tcx/ingress") int rewrite_from_guest(struct __sk_buff *skb)
{
	return rewrite_work(skb, FROM_GUEST);
}

SEC("tcx/egress") int rewrite_to_guest(struct __sk_buff *skb)
{
	return rewrite_work(skb, TO_GUEST);
}

SEC("tcx/ingress") int all_from_guest(struct __sk_buff *skb)
{
	count_handed_on(skb->cb[CB_PORT], FROM_GUEST);
	return translate(skb, FROM_GUEST);
}

SEC("tcx/ingress") int fack_from_guest(struct __sk_buff *skb)
{
	return make_fack(skb);
}

SEC("tcx/egress") int all_to_guest(struct __sk_buff *skb)
{
	count_handed_on(skb->cb[CB_PORT], TO_GUEST);
	return translate(skb, TO_GUEST);
}

/*
 * Run by user space with BPF_PROG_TEST_RUN on an arbitrary frame, never attached. Judges flows of
 * the port by the current edition, and forgets those that it releases, from the queue and position
 * in skb->cb on, where it leaves those for the next run; the end is at QUEUES. Returns the number
 * of flows judged, or counted with COUNT_MARK. With OPEN_MARK, RENEW_MARK, CLOSE_MARK and those of
 * arrivals, returns 0 or an error.
 */
SEC("tcx/ingress") int sweep(struct __sk_buff *skb)
{
	struct sweep sweep = {
		.port = skb->cb[CB_PORT],
		.turn = skb->cb[CB_SWEEP_QUEUE],
		.at = skb->cb[CB_SWEEP_AT],
		.what = skb->mark,
		.underlays = skb->cb[CB_SWEEP_UNDERLAYS],
		.end_us = now_us() + SWEEP_US,
	};

	if (skb->mark == OPEN_MARK || skb->mark == RENEW_MARK)
		return (int)wheel_open(sweep.port, skb->mark == OPEN_MARK);
	if (skb->mark == CLOSE_MARK)
		return (int)wheel_close(sweep.port);
	if (skb->mark == ARRIVE_MARK || skb->mark == STAY_MARK || skb->mark == INSTEAD_MARK)
		return flow_arrive(skb, sweep.port);
	sweep_begin(&sweep);
	bpf_loop(SWEEP_STEPS, sweep_step, &sweep, 0);
	skb->cb[CB_SWEEP_QUEUE] = sweep.turn;
	skb->cb[CB_SWEEP_AT] = sweep.at;
	return (int)sweep.judged;
}

/* Run by user space where there are no timers: what the timer with the number in cb[CB_PORT] does.
 */
SEC("tcx/ingress") int turn(struct __sk_buff *skb)
{
	uint32_t number = skb->cb[CB_PORT];
	struct vcc_timer *t = bpf_map_lookup_elem(&timers, &number);

	return t ? timer_run(&timers, &number, t) : -ENOENT;
}

/* Baseline of `vcc-lab bench`: only parses the frame. */
static __always_inline int parse_only(struct __sk_buff *skb, enum direction dir)
{
	/* key_tag() and is_traced() read it as words. */
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_segment s;
	struct frame fr;
	uint32_t what = parse(skb, dir, skb->cb[CB_PORT], &fr, &key, &s);

	if (what != PARSED)
		count(skb->cb[CB_PORT], what);
	/* Keep the compiler from removing the parsing as dead code. */
	asm volatile("" : : "r"(&key), "r"(&s), "r"(&fr) : "memory");
	return VERDICT_PASS;
}

SEC("tcx/ingress") int parse_from_guest(struct __sk_buff *skb)
{
	return parse_only(skb, FROM_GUEST);
}

SEC("tcx/egress") int parse_to_guest(struct __sk_buff *skb)
{
	return parse_only(skb, TO_GUEST);
}
