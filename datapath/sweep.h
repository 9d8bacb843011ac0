/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Visits all flows of a port, a part in each run, so that none holds a CPU for long. It follows the
 * port's queues: first that of half-open flows, where a flow keeps its place until its handshake
 * has completed; then the wheel's slots, and the flows that have ended. A flow that moves to
 * another slot meanwhile has just been judged by what moved it.
 */
#ifndef VCC_SWEEP_H
#define VCC_SWEEP_H

#include "wheel.h"

/* Limits per run. */
#define SWEEP_STEPS  2048
#define SWEEP_VISITS 128u
#define SWEEP_US     400u

struct sweep {
	uint32_t port;
	uint32_t turn; /* the queues in their order; QUEUES: the end */
	uint32_t at;
	uint32_t visits;
	uint32_t judged;
	uint32_t what;	    /* enum vcc_mark */
	uint32_t underlays; /* with MOVE_MARK */
	uint64_t end_us;
};

enum visited {
	VISIT_MISSED,
	VISIT_HELD,  /* a CPU holds the flow */
	VISIT_LATER, /* the flow must be forgotten, but not now (forget_pace.h) */
	VISIT_JUDGED,
	VISIT_FORGOTTEN,
};

/* Visits the flow at a position. The caller does not hold it. */
VCC_APART int sweep_visit(const struct vcc_key *found, uint32_t what, uint32_t underlays)
{
	/* A global function must not be passed a pointer into a map. */
	struct vcc_key key __attribute__((aligned(8)));

	if (!found)
		return VISIT_MISSED;
	__builtin_memcpy(&key, found, sizeof(key));
	struct vcc_port *port = port_at(key.port);
	uint64_t tag = flow_tag_apart(&key);
	struct vcc_entry *e = flow_of(tag);

	if (!port || !e)
		return VISIT_MISSED;
	enum lock_state state = hold(e, &key, tag);

	if (state != LOCK_FREE)
		return state == LOCK_HELD ? VISIT_HELD : VISIT_MISSED;
	if (what == COUNT_MARK) {
		bool depends = depends_on_translation(&e->flow);

		flow_unlock(&e->lock, false);
		return depends ? VISIT_JUDGED : VISIT_MISSED;
	}
	if (what == MOVE_MARK) {
		uint8_t from = (uint8_t)(underlays >> 8);
		bool moves = e->flow.underlay == from;

		move_underlay(&e->flow, from, (uint8_t)underlays);
		flow_unlock(&e->lock, false);
		return moves ? VISIT_JUDGED : VISIT_MISSED;
	}
	struct vcc_params *p = treatment(port, &e->flow, &key, what == SETTLE_MARK);

	/* Without a policy there is no edition that its next segment would notice. */
	if (what == SETTLE_MARK && p && !port->by_policy)
		vcc_judge_anew(&e->flow, p);
	bool forget = what == FORGET_MARK || !p;

	if (forget && may_forget(now_us())) {
		flow_forget(e, &key);
		return VISIT_FORGOTTEN;
	}
	flow_unlock(&e->lock, false);
	return forget ? VISIT_LATER : VISIT_JUDGED;
}

/* The first run of several begins where the first queue does. */
static __always_inline void sweep_begin(struct sweep *sweep)
{
	struct vcc_wheel *w = wheel_of(sweep->port);

	if (w && !sweep->turn && !sweep->at)
		sweep->at = ends_first(w, QUEUE_HALF_OPEN);
}

/* Visits a position. Returns 1 if the run ends. */
VCC_APART int sweep_next(struct sweep *sweep)
{
	if (!sweep)
		return 1;
	struct vcc_wheel *w = wheel_of(sweep->port);
	bool half_open = !sweep->turn;
	struct vcc_place place = {
		.queue = (uint16_t)(half_open ? QUEUE_HALF_OPEN : sweep->turn - 1),
		.port = (uint16_t)sweep->port,
	};
	struct vcc_ends *ends = w ? ends_of(w, place.queue) : 0;

	if (!ends || sweep->turn >= QUEUES) {
		sweep->turn = QUEUES;
		return 1;
	}
	/* What was there has been taken meanwhile. */
	if ((int32_t)(sweep->at - ends->taken) < 0)
		sweep->at = ends->taken;
	if ((int32_t)(sweep->at - *(volatile uint32_t *)&ends->put) >= 0) {
		sweep->turn++;
		sweep->at = sweep->turn < QUEUES ? ends_first(w, sweep->turn - 1) : 0;
		return 0;
	}
	place.at = sweep->at++;
	const struct vcc_key *found = bpf_map_lookup_elem(&queued, &place);

	if (!found)
		return 0;
	struct vcc_key key;

	__builtin_memcpy(&key, found, sizeof(key));
	int visited = sweep_visit(&key, sweep->what, sweep->underlays);

	/*
	 * A CPU that holds a flow judges it. But a half-open flow stays under its edition, which is
	 * wrong when all flows must leave it: the next run visits it again. Nor does that CPU know
	 * that the flow's underlay must change.
	 */
	bool must = sweep->what == SETTLE_MARK || sweep->what == MOVE_MARK;

	if (visited == VISIT_LATER || (visited == VISIT_HELD && must)) {
		sweep->at--;
		return 1;
	}
	/* A half-open flow is in a slot, too, and visited there again. It moves only once. */
	bool counts = !half_open || sweep->what == MOVE_MARK;

	if (visited == VISIT_FORGOTTEN || (visited == VISIT_JUDGED && counts))
		sweep->judged++;
	return ++sweep->visits >= SWEEP_VISITS || now_us() >= sweep->end_us;
}

/* bpf_loop's callback. */
static int sweep_step(uint32_t index, struct sweep *sweep)
{
	(void)index;
	/* The verifier wants to see a 0 or 1, and knows nothing of what a global function returns.
	 */
	return vcc_opaque((uint64_t)sweep_next(sweep)) & 1;
}

#endif
