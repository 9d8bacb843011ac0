/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flows' deadlines: a hierarchical timer wheel (Varghese and Lauck, SOSP 1987, scheme 7) driven
 * by one timer per port. Near slots of a millisecond hold deadlines within a second, far slots of
 * FAR_MS the rest; a deadline beyond the far ring is rescheduled when its slot comes up. A run of
 * the timer is bounded in flows and in time, and the next one follows within a millisecond, so that
 * it does not hold a CPU for long.
 */
#ifndef VCC_WHEEL_H
#define VCC_WHEEL_H

#include "events.h"
#include "table.h"

#define NSEC_PER_MSEC 1000000ull
/* The furthest deadline: one slot more could be the one being processed. */
#define FAR_MAX_MS ((FAR_SLOTS - 2) * FAR_MS)
_Static_assert(LOOK_MIN_MS < NEAR_SLOTS, "deadlines by the millisecond fit the near ring");
/* The timer's period while the port has no flows. */
#define WHEEL_REST_MS 1024u
/* A timer that is this late is restarted. */
#define WHEEL_LATE_MS 3000u
/* Limits per run: steps, most of which find an empty slot, and flows. */
#define WHEEL_STEPS 1024
#define WHEEL_LOOKS 128u
/* A run ends after the flow that exceeds this time: a flow in no cache takes several us. */
#define WHEEL_TURN_US 500u
/* The timer searches this far ahead for the next near deadline. */
#define WHEEL_AHEAD_MS 16

static __always_inline uint64_t now_us(void)
{
	return bpf_ktime_get_ns() / 1000;
}

static __always_inline struct vcc_wheel *port_wheel(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&wheel, &zero);
}

static __always_inline bool is_before_ms(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static __always_inline uint32_t near_slot(uint32_t due_ms)
{
	return QUEUE_NEAR + due_ms % NEAR_SLOTS;
}

static __always_inline uint32_t far_slot(uint32_t due_ms)
{
	return QUEUE_FAR + due_ms / FAR_MS % FAR_SLOTS;
}

static __always_inline long wheel_start(struct vcc_wheel *w, uint32_t now_ms, uint32_t in_ms)
{
	w->fires_ms = now_ms + in_ms;
	long err = bpf_timer_start(&w->timer, in_ms * NSEC_PER_MSEC, 0);

	/* wheel_check() retries. */
	if (err)
		w->fires_ms = now_ms;
	return err;
}

/*
 * Schedules a held flow in `in_ms`, instead of at its old deadline. The old position is freed
 * first, so only a new flow can fail for lack of room. Returns 0 or an error: the flow is not
 * scheduled.
 */
static __always_inline long file(struct vcc_entry *e, const struct vcc_key *key, uint32_t now_ms,
				 uint32_t in_ms, bool is_new)
{
	struct vcc_wheel *w = port_wheel();

	if (!w)
		return -ENOENT;
	in_ms = vcc_min(in_ms, FAR_MAX_MS);
	uint32_t due_ms = now_ms + in_ms;
	bool near = in_ms < LOOK_MIN_MS;
	struct vcc_place old = e->due;

	if (!is_new)
		bpf_map_delete_elem(&due, &old);
	struct vcc_place place = { .queue = near ? near_slot(due_ms) : far_slot(due_ms) };
	long err = queue_put(&due, key, &place);

	if (err)
		return err;
	e->due = place;
	e->due_ms = due_ms;
	if (!near)
		return 0;
	if (is_before_ms(w->near_end_ms, due_ms))
		w->near_end_ms = due_ms;
	if (is_before_ms(due_ms, w->fires_ms))
		wheel_start(w, now_ms, in_ms);
	return 0;
}

/* Releases a held flow: schedules its next deadline, or forgets it. */
static __noinline void let_go(struct vcc_entry *e, const struct vcc_key *key, uint32_t now_ms,
			      uint32_t in_ms, bool forget)
{
	if (!forget && file(e, key, now_ms, in_ms, false)) {
		count(COUNT_UNTIMED);
		forget = true;
	}
	if (forget)
		flow_forget(e, key);
	else
		flow_unlock(&e->lock, false);
}

VCC_APART int engine_deadline(struct vcc_flow *f, const struct vcc_params *p, uint64_t now,
			      bool crowded, struct vcc_action *a)
{
	if (!f || !p || !a)
		return -1;
	*a = vcc_deadline(f, p, now, crowded);
	return 0;
}

/* A held flow's deadline expired. */
static __always_inline struct vcc_action look(struct vcc_params *p, const struct vcc_key *key,
					      struct vcc_entry *e, uint64_t now)
{
	struct vcc_usage *used = port_usage();
	struct vcc_action a = { .deadline_ms = LOOK_MIN_MS };

	if (!p || !used) {
		a.forget = true;
		return a;
	}
	engine_deadline(&e->flow, p, now, is_crowded(used->flows, constants.flows_max), &a);
	if (a.dupacks)
		tell(EVENT_DUPACKS, key, &e->flow, now, a.dupacks);
	if (a.update)
		tell(EVENT_WINDOW, key, &e->flow, now, 0);
	a.deadline_ms = look_in_ms(p, a.deadline_ms);
	if (p->pool_weight && pool_rest(&e->flow, p, (uint32_t)(now / 1000)) > 0)
		a.deadline_ms = vcc_min(a.deadline_ms, LOOK_MIN_MS);
	return a;
}

/* Processes the key at a position of the wheel. Returns 1 if it must be retried. */
int look_at(const struct vcc_key *found, const struct vcc_place *place)
{
	/* A global function must not be passed a pointer into a map. */
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_params *port = port_params();

	if (!found || !place || !port)
		return 0;
	__builtin_memcpy(&key, found, sizeof(key));
	struct vcc_entry *e = bpf_map_lookup_elem(&flows, &key);
	enum lock_state state = e ? flow_try_lock(&e->lock) : LOCK_GONE;

	/* Retry later: its holder may be preempted. */
	if (state == LOCK_HELD)
		return 1;
	if (state == LOCK_FREE && is_of(e, &key) && e->due.queue == place->queue &&
	    e->due.at == place->at) {
		uint64_t now = now_us();
		struct vcc_action a = look(treatment(port, &e->flow, &key, false), &key, e, now);

		let_go(e, &key, (uint32_t)(now / 1000), a.deadline_ms, a.forget);
		return 0;
	}
	if (state == LOCK_FREE)
		flow_unlock(&e->lock, false);
	/* The flow was deleted or rescheduled meanwhile. */
	bpf_map_delete_elem(&due, place);
	return 0;
}

struct turn {
	uint64_t begin_us;
	uint32_t now_ms;
	uint32_t looks;
	bool all_done;
};

/* bpf_loop's callback: processes the first position of the first expired slot. */
static int wheel_step(uint32_t index, struct turn *turn)
{
	(void)index;
	struct vcc_wheel *w = port_wheel();

	if (!w)
		return 1;
	bool near =
	    is_before_ms(w->near_ms, turn->now_ms) && !is_before_ms(w->near_end_ms, w->near_ms);
	struct vcc_place place = { .queue = near ? near_slot(w->near_ms) : far_slot(w->far_ms) };

	if (!near && is_before_ms(turn->now_ms, w->far_ms + FAR_MS)) {
		turn->all_done = true;
		return 1;
	}
	struct vcc_ends *ends = queue_ends_of(place.queue);

	if (!ends)
		return 1;
	place.at = ends->taken;
	if (place.at == *(volatile uint32_t *)&ends->put) {
		w->near_ms += near;
		w->far_ms += near ? 0 : FAR_MS;
		return 0;
	}
	const struct vcc_key *found = bpf_map_lookup_elem(&due, &place);

	if (!found) {
		queue_skip(ends, place.at);
		return 0;
	}
	struct vcc_key key;

	__builtin_memcpy(&key, found, sizeof(key));
	return look_at(&key, &place) || ++turn->looks >= WHEEL_LOOKS ||
	       now_us() - turn->begin_us >= WHEEL_TURN_US;
}

/* Time until the timer's next run, when all expired deadlines are processed. */
static __always_inline uint32_t wheel_next_ms(struct vcc_wheel *w, uint32_t now_ms)
{
	struct vcc_usage *used = port_usage();
	uint32_t rest_ms = used && !used->flows ? WHEEL_REST_MS : w->far_ms + FAR_MS - now_ms;

	if (is_before_ms(w->near_end_ms, now_ms))
		return vcc_max(rest_ms, 1);
	for (uint32_t ahead_ms = 0; ahead_ms < WHEEL_AHEAD_MS; ahead_ms++) {
		struct vcc_ends *ends = queue_ends_of(near_slot(now_ms + ahead_ms));

		if (ends && ends->taken != *(volatile uint32_t *)&ends->put)
			return ahead_ms + 1;
	}
	return vcc_max(vcc_min(rest_ms, WHEEL_AHEAD_MS), 1);
}

/* Limits the backlog to one turn of each ring: older slots coincide with those ahead. */
static __always_inline void wheel_catch_up(struct vcc_wheel *w, uint32_t now_ms)
{
	uint32_t far_first_ms = (now_ms & ~(uint32_t)(FAR_MS - 1)) - (FAR_SLOTS - 1) * FAR_MS;

	if (is_before_ms(w->far_ms, far_first_ms) || is_before_ms(now_ms + FAR_MS, w->far_ms))
		w->far_ms = far_first_ms;
	if (is_before_ms(w->near_ms, now_ms - (NEAR_SLOTS - 1)) || is_before_ms(now_ms, w->near_ms))
		w->near_ms = now_ms - (NEAR_SLOTS - 1);
	/* The near ring is empty: skip its slots up to now. */
	if (is_before_ms(w->near_end_ms, w->near_ms))
		w->near_ms = now_ms;
}

static int wheel_turn(void *map, uint32_t *zero, struct vcc_wheel *w)
{
	(void)map;
	(void)zero;
	struct vcc_usage *used = port_usage();
	struct turn turn = { .begin_us = now_us() };

	turn.now_ms = (uint32_t)(turn.begin_us / 1000);
	wheel_catch_up(w, turn.now_ms);
	/* From here on, file() restarts the timer for a nearer deadline. */
	w->fires_ms = turn.now_ms + WHEEL_REST_MS;
	bpf_loop(WHEEL_STEPS, wheel_step, &turn, 0);
	uint32_t turn_us = (uint32_t)(now_us() - turn.begin_us);

	if (used && turn_us > used->turn_longest_us)
		used->turn_longest_us = turn_us;
	wheel_start(w, turn.now_ms, turn.all_done ? wheel_next_ms(w, turn.now_ms) : 1);
	return 0;
}

/* Initialises the timer, or gives an existing one this program's callback, and starts it. */
static __always_inline long wheel_begin(void)
{
	struct vcc_wheel *w = port_wheel();

	if (!w)
		return -ENOENT;
	long err = bpf_timer_init(&w->timer, &wheel, 1 /* CLOCK_MONOTONIC */);

	if (err && err != -EBUSY)
		return err;
	err = bpf_timer_set_callback(&w->timer, wheel_turn);
	if (err)
		return err;
	w->fires_ms = (uint32_t)(now_us() / 1000) + 1;
	return bpf_timer_start(&w->timer, NSEC_PER_MSEC, 0);
}

/* Restarts a timer that is late. Called for each new flow, so that the timer never stays dead. */
static __always_inline void wheel_check(uint32_t now_ms)
{
	struct vcc_wheel *w = port_wheel();

	if (!w || is_before_ms(now_ms, w->fires_ms + WHEEL_LATE_MS))
		return;
	if (!wheel_start(w, now_ms, 1))
		count(COUNT_TIMER_LATE);
}

#endif
