/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program of the usual segment: of an established connection, new data or an ACK of new data,
 * with no options but timestamps or a report, and nothing was lost or marked (header_prediction.h).
 * It hands all other segments, unchanged, to the whole engine behind it. The whole engine would do
 * the same with those that it takes.
 *
 * A tail call begins a new stack, so both programs have all of it.
 */
#ifndef VCC_FAST_PATH_H
#define VCC_FAST_PATH_H

#include "events.h"
#include "fack.h"
#include "rewrite.h"
#include "gro_list.h"
#include "guest_rate.h"
#include "fast_parse.h"
#include "wheel.h"
#include "program_state.h"
#include "engine.h"
#include "verdicts.h"

/* Not a verdict: the whole engine's program takes the segment. */
#define HAND_ON 1

#define CACHE_LINE_BYTES 64
#define ENTRY_LINES	 ((sizeof(struct vcc_entry) + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES)
/* What the usual segments of a sending and of a receiving guest touch (struct vcc_flow). */
#define SENDER_LINES   4
#define RECEIVER_LINES 5
_Static_assert(__builtin_offsetof(struct vcc_entry, flow) == -FLOW_LINE_AT(0),
	       "the flow's lines are the entry's");

/*
 * Prefetches the first lines of an entry, that of the lock included: an atomic operation waits for
 * the loads before it, and then misses alone. One entry among thousands is not cached, and without
 * this the lock and then the engine would miss one cache line after the other.
 */
static __always_inline void fetch(const struct vcc_entry *e, uint32_t lines)
{
	const volatile uint32_t *words = (const volatile uint32_t *)e;

	for (uint32_t line = 0; line < lines; line++)
		(void)words[line * CACHE_LINE_BYTES / sizeof(*words)];
}

/* Out of line, or the verifier would follow each bucket separately to the end of the program. */
VCC_APART int count_delays(uint32_t port, uint32_t fabric_us, uint32_t guest_us)
{
	struct vcc_counts *n = bpf_map_lookup_elem(&counts, &port);

	if (!n)
		return -1;
	histogram_count(&n->delays.fabric, fabric_us);
	histogram_count(&n->delays.guest, guest_us);
	return 0;
}

/* May the port drop segments of an unknown connection (unknown_segment.h)? */
static __always_inline bool may_reject_unknown(const struct vcc_port *port)
{
	return port->by_policy || rejects_unknown(&port->params) ||
	       unknown_rate_bytes_per_ms(&port->params);
}

/* Sends a FACK beside a segment from the guest. */
static __always_inline void send_report(struct __sk_buff *skb, const struct frame *fr,
					uint32_t port)
{
	/* A FACK cannot carry BIG TCP's jumbo option (RFC 2675); the next report replaces it. */
	if (!fr->ip_length || fack_send(skb))
		count(port, COUNT_REPORT_LOST);
}

/*
 * Leaves a segment whose options change to CALL_REWRITE, which has a stack of its own. It returns
 * only if the kernel refuses that call, and the segment must be dropped.
 */
static __always_inline void rewrite_apart(struct __sk_buff *skb, enum direction dir)
{
	if (dir == FROM_GUEST)
		bpf_tail_call_static(skb, &call_from_guest, CALL_REWRITE);
	else
		bpf_tail_call_static(skb, &call_to_guest, CALL_REWRITE);
}

/* The program behind CALL_REWRITE. */
static __always_inline int rewrite_work(struct __sk_buff *skb, enum direction dir)
{
	struct work *w = work_of_cpu();

	if (w && !rewrite_with_options(skb, &w->frame, &w->segment, &w->action, dir))
		return VERDICT_PASS;
	count(skb->cb[CB_PORT], COUNT_REWRITE_FAILED);
	return VERDICT_DROP;
}

/* The parameters of a held flow; null where the policy has changed, or there is none. */
static __always_inline const struct vcc_params *fast_treatment(const struct vcc_port *port,
							       const struct vcc_flow *f)
{
	if (!port->by_policy)
		return &port->params;
	return f->epoch == current_epoch() ? rule_params(f->epoch, f->rule) : 0;
}

/*
 * The time of the last tick, unless the segment needs the exact one (clock.h). Jiffies are a word
 * of memory, and the clock is read once a tick. A CPU that is late to count ticks (NO_HZ) makes one
 * longer.
 */
static __always_inline void set_time(struct work *w, enum direction dir, const struct vcc_flow *f,
				     const struct vcc_params *p)
{
	struct vcc_segment *s = &w->segment;
	uint64_t tick = bpf_jiffies64();

	if (w->tick != tick) {
		w->tick = tick;
		w->tick_us = now_us();
	}
	s->now_us = w->tick_us;
	s->at_tick = true;
	if (dir == FROM_GUEST ? needs_time_from_guest(f, p, s) : needs_time_to_guest(f, p, s)) {
		s->now_us = now_us();
		s->at_tick = false;
	}
}

/* Returns a verdict, or HAND_ON: the whole engine's program finds the results so far in `w`. */
static __always_inline int translate_fast(struct __sk_buff *skb, enum direction dir, struct work *w)
{
	uint32_t index = skb->cb[CB_PORT];

	if (train_join(skb)) {
		count(index, COUNT_REWRITE_FAILED);
		return VERDICT_DROP;
	}
	w->is_parsed = parse_fast(skb, dir, index, &w->frame, &w->key, &w->segment);
	if (!w->is_parsed)
		return HAND_ON;
	const struct frame *fr = &w->frame;
	struct vcc_segment *s = &w->segment;
	struct vcc_action *a = &w->action;
	const struct vcc_port *port = port_at(index);
	uint64_t tag = flow_tag(&w->key);
	struct vcc_entry *e = flow_of(tag);

	w->tag = tag;
	if (!port)
		return VERDICT_PASS;
	/* The whole engine revives the flow, or finds the rule that drops the segment. */
	if (!e && (has_minisock(&w->key, tag, port) ||
		   (dir == FROM_GUEST && s->payload_bytes && may_reject_unknown(port))))
		return HAND_ON;
	/* Its SYN did not pass this port. */
	if (!e) {
		count(index, COUNT_UNKNOWN);
		return VERDICT_PASS;
	}
	if (dir == TO_GUEST && port->params.trace)
		return HAND_ON;
	if ((dir == TO_GUEST) == !s->payload_bytes)
		fetch(e, SENDER_LINES);
	else
		fetch(e, RECEIVER_LINES);
	/* The whole engine waits for a lock, and handles an entry that has been deleted. */
	if (try_hold(e, &w->key, tag) != LOCK_FREE)
		return HAND_ON;
	struct vcc_flow *f = &e->flow;
	const struct vcc_params *p = fast_treatment(port, f);

	if (!p || !(dir == FROM_GUEST ? is_predicted_from_guest(f, p, s)
				      : is_predicted_to_guest(f, p, s))) {
		flow_unlock(&e->lock, false);
		return HAND_ON;
	}
	set_time(w, dir, f, p);
	if (dir == FROM_GUEST)
		predicted_from_guest(f, p, s, a);
	else
		predicted_to_guest(f, p, s, a);
	release(e, p, &w->key, (uint32_t)(s->now_us / 1000));
	if (has_delays(a))
		count_delays(index, a->fabric_us, a->guest_us);
	bool apart = a->strip || a->emit == EMIT_PACK;

	if (apart)
		rewrite_apart(skb, dir);
	if (apart || rewrite_fields(skb, dir, fr, s, a)) {
		count(index, COUNT_REWRITE_FAILED);
		return VERDICT_DROP;
	}
	if (dir == FROM_GUEST && a->emit == EMIT_FACK)
		send_report(skb, fr, index);
	return VERDICT_PASS;
}

#endif
