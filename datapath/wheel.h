/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flows' deadlines: a hierarchical timer wheel for each port (Varghese and Lauck, SOSP 1987,
 * scheme 7). Near slots of a millisecond hold deadlines within a second, far slots of FAR_MS the
 * rest; a deadline beyond the far ring is rescheduled when its slot comes up. Few timers turn all
 * wheels (timers.h), because the kernel lacks memory for many that are made at once.
 */
#ifndef VCC_WHEEL_H
#define VCC_WHEEL_H

#include "events.h"
#include "flow_table.h"
#include "program_state.h"

#define NSEC_PER_MSEC 1000000ull
#define USEC_PER_SEC  1000000u
/* The furthest deadline: one slot more could be the one being processed. */
#define FAR_MAX_MS ((FAR_SLOTS - 2) * FAR_MS)
_Static_assert(LOOK_MIN_MS < NEAR_SLOTS, "deadlines by the millisecond fit the near ring");
/* A wheel without flows rests as long. */
#define WHEEL_REST_MS 1024u
/* A timer that is this late is restarted. */
#define WHEEL_LATE_MS 3000u
/* A turn's limit of flows; the next one follows within a millisecond. */
#define WHEEL_LOOKS 128u
/* A wheel searches this far ahead for the next near deadline. */
#define WHEEL_AHEAD_MS 16

static __always_inline uint64_t now_us(void)
{
	return bpf_ktime_get_ns() / 1000;
}

static __always_inline struct vcc_timer *timer_of(uint32_t port)
{
	uint32_t number = port % TIMERS;

	return bpf_map_lookup_elem(&timers, &number);
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

/* Attempts against other CPUs that change the same time. */
#define TIME_TRIES_MAX 8

/* Makes a time that other CPUs change, too, no later than `to_ms`. Returns whether it was later. */
static __always_inline bool time_lower(uint32_t *time_ms, uint32_t to_ms)
{
	for (int i = 0; i < TIME_TRIES_MAX; i++) {
		uint32_t found_ms = load_after_stores(time_ms);

		if (!is_before_ms(to_ms, found_ms))
			return false;
		if (__sync_val_compare_and_swap(time_ms, found_ms, to_ms) == found_ms)
			return true;
	}
	return true;
}

/* Likewise, no earlier. */
static __always_inline void time_raise(uint32_t *time_ms, uint32_t to_ms)
{
	for (int i = 0; i < TIME_TRIES_MAX; i++) {
		uint32_t found_ms = load_after_stores(time_ms);

		if (!is_before_ms(found_ms, to_ms) ||
		    __sync_val_compare_and_swap(time_ms, found_ms, to_ms) == found_ms)
			return;
	}
}

/*
 * Starts a timer, for `fires_ms`. Another CPU may bring that time forward, and start the timer
 * before it is started here, for the later one: so this looks again.
 */
static __always_inline long timer_start(struct vcc_timer *t, uint32_t now_ms, uint32_t in_ms)
{
	long err = 0;

	/* What has to fire is in fires_ms. */
	if (!has_timers)
		return 0;
	for (int i = 0; i < TIME_TRIES_MAX; i++) {
		err = bpf_timer_start(&t->timer, in_ms * NSEC_PER_MSEC, 0);
		uint32_t fires_ms = load_after_stores(&t->fires_ms);

		/* timer_check() retries after an error. */
		if (err || in_ms <= 1 || !is_before_ms(fires_ms, now_ms + in_ms))
			break;
		in_ms = is_before_ms(now_ms, fires_ms) ? fires_ms - now_ms : 1;
	}
	return err;
}

/* A port's wheel must turn in `in_ms`, and may have planned to turn later. */
VCC_APART int wheel_hurry(uint32_t port, uint32_t now_ms, uint32_t in_ms)
{
	struct vcc_wheel *w = wheel_of(port);
	struct vcc_timer *t = timer_of(port);

	if (!w)
		return -ENOENT;
	time_lower(&w->turns_ms, now_ms + in_ms);
	if (t && time_lower(&t->fires_ms, now_ms + in_ms))
		timer_start(t, now_ms, in_ms);
	return 0;
}

/* Instead of a time: the flow has ended, and is forgotten in its turn. */
#define IN_TURN UINT32_MAX

/*
 * Schedules a held flow in `in_ms`, instead of at its old deadline. The old position is freed
 * first, so only a new flow can fail for lack of room. Returns 0 or an error: the flow is not
 * scheduled.
 */
VCC_APART int file(struct vcc_entry *e, const struct vcc_key *key, uint32_t now_ms, uint32_t in_ms,
		   bool is_new)
{
	if (!e || !key)
		return -EINVAL;
	struct vcc_wheel *w = wheel_of(key->port);

	if (!w)
		return -ENOENT;
	bool has_ended = in_ms == IN_TURN;

	/* A connection that reuses the flow brings its deadline forward. */
	in_ms = vcc_min(in_ms, FAR_MAX_MS);
	uint32_t due_ms = now_ms + in_ms;
	bool near = in_ms < LOOK_MIN_MS;
	struct vcc_place old = e->due;

	if (!is_new)
		bpf_map_delete_elem(&queued, &old);
	struct vcc_place place = {
		.queue = (uint16_t)(has_ended ? QUEUE_ENDED
				    : near    ? near_slot(due_ms)
					      : far_slot(due_ms)),
		.port = key->port,
	};
	struct vcc_ends *ends = ends_of(w, place.queue);
	long err = ends ? queue_put(ends, key, &place) : -ENOENT;

	if (err)
		return (int)err;
	e->due = place;
	e->due_ms = due_ms;
	if (!near)
		return 0;
	time_raise(&w->near_end_ms, due_ms);
	/* If the wheel has passed the slot meanwhile, it must come to it once more. */
	if (is_before_ms(due_ms, load_after_stores(&w->near_ms)))
		time_raise(&w->near_end_ms, due_ms + NEAR_SLOTS);
	if (is_before_ms(due_ms, load_after_stores(&w->turns_ms)))
		wheel_hurry(key->port, now_ms, in_ms);
	return 0;
}

/* Releases a held flow: schedules its next deadline, or forgets it. */
static __noinline void let_go(struct vcc_entry *e, const struct vcc_key *key, uint32_t now_ms,
			      uint32_t in_ms, bool forget)
{
	if (!forget && file(e, key, now_ms, in_ms, false)) {
		count(key->port, COUNT_UNTIMED);
		forget = true;
	}
	if (forget) {
		minisock_leave(&e->flow, key);
		flow_forget(e, key);
	} else {
		flow_unlock(&e->lock, false);
	}
}

/* Releases a held flow after a segment, and reschedules it if that brought its deadline forward. */
static __always_inline void release(struct vcc_entry *e, const struct vcc_params *p,
				    const struct vcc_key *key, uint32_t now_ms)
{
	uint32_t within_ms = look_within_ms(&e->flow, p);

	if (is_before_ms(now_ms + look_in_ms(p, within_ms), e->due_ms) && within_ms < FAR_MAX_MS)
		let_go(e, key, now_ms, within_ms, false);
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

/* A held flow's deadline expired: fills in the work's action. */
static __always_inline void on_deadline(const struct vcc_port *port, struct vcc_params *p,
					struct work *w, struct vcc_entry *e, uint64_t now)
{
	const struct vcc_key *key = &w->key;
	struct vcc_action *a = &w->action;
	struct vcc_usage *used = usage_of(key->port);

	*a = (struct vcc_action){ .deadline_ms = LOOK_MIN_MS };
	if (!p || !used) {
		a->forget = true;
		return;
	}
	engine_deadline(&e->flow, p, now, is_crowded(used->flows, port->flows_max), a);
	if (a->dupacks)
		send_event(EVENT_DUPACKS, key, &e->flow, now, a->dupacks);
	if (a->update)
		send_event(EVENT_WINDOW, key, &e->flow, now, 0);
	a->deadline_ms = look_in_ms(p, a->deadline_ms);
	/* It may send again soon, and a look costs less than to move its deadline. */
	if ((uint32_t)(now / 1000) - e->flow.last_seen_ms < LOOK_MIN_MS)
		a->deadline_ms = vcc_min(a->deadline_ms, LOOK_MIN_MS);
	if (p->pool_weight && pool_rest(&e->flow, p, (uint32_t)(now / 1000)) > 0)
		a->deadline_ms = vcc_min(a->deadline_ms, LOOK_MIN_MS);
}

/* Processes the key at a position of the wheel. Returns 1 if it must be retried. */
int look_at(const struct vcc_key *found, const struct vcc_place *place)
{
	struct work *w = work_of_cpu();

	if (!found || !place || !w)
		return 0;
	struct vcc_port *port = port_at(place->port);

	if (!port)
		return 0;
	/* The queue's own may be deleted meanwhile. */
	__builtin_memcpy(&w->key, found, sizeof(w->key));
	w->tag = flow_tag_apart(&w->key);
	struct vcc_entry *e = flow_of(w->tag);
	enum lock_state state = try_hold(e, &w->key, w->tag);

	/* Retry later: its holder may be preempted. */
	if (state == LOCK_HELD)
		return 1;
	if (state == LOCK_FREE && e->due.queue == place->queue && e->due.at == place->at) {
		uint64_t now = now_us();
		struct vcc_params *p = treatment(port, &e->flow, &w->key, false);
		struct vcc_action *a = &w->action;

		on_deadline(port, p, w, e, now);
		if (a->forget && !may_forget(now)) {
			a->forget = false;
			a->deadline_ms = IN_TURN;
		}
		let_go(e, &w->key, (uint32_t)(now / 1000), a->deadline_ms, a->forget);
		return 0;
	}
	if (state == LOCK_FREE)
		flow_unlock(&e->lock, false);
	/* The flow was deleted or rescheduled meanwhile. */
	bpf_map_delete_elem(&queued, place);
	return 0;
}

/* A turn of a port's wheel. */
struct turn {
	uint32_t port;
	uint32_t now_ms;
	uint32_t looks;
};

/* What is next in a turn. */
enum turn_state {
	TURN_GOES_ON,
	TURN_PAUSES, /* the rest follows in another turn */
	TURN_IS_DONE,
};

/* Processes the first position of the first expired slot, or else of the flows that have ended. */
VCC_APART int wheel_step(struct turn *turn)
{
	struct vcc_wheel *w = turn ? wheel_of(turn->port) : 0;

	if (!w)
		return TURN_IS_DONE;
	bool near =
	    is_before_ms(w->near_ms, turn->now_ms) && !is_before_ms(w->near_end_ms, w->near_ms);
	bool far = !near && !is_before_ms(turn->now_ms, w->far_ms + FAR_MS);
	struct vcc_place place = {
		.queue = (uint16_t)(near  ? near_slot(w->near_ms)
				    : far ? far_slot(w->far_ms)
					  : QUEUE_ENDED),
		.port = (uint16_t)turn->port,
	};
	struct vcc_ends *ends = ends_of(w, place.queue);

	if (!ends)
		return TURN_IS_DONE;
	place.at = ends->taken;
	if (place.at == *(volatile uint32_t *)&ends->put) {
		w->near_ms += near;
		w->far_ms += far ? FAR_MS : 0;
		/* file() may have put a flow there before it could see that the slot is passed. */
		if (near && place.at != load_after_stores(&ends->put))
			time_raise(&w->near_end_ms, w->near_ms + NEAR_SLOTS);
		return near || far ? TURN_GOES_ON : TURN_IS_DONE;
	}
	if (!near && !far && !may_forget(now_us()))
		return TURN_IS_DONE;
	const struct vcc_key *found = bpf_map_lookup_elem(&queued, &place);

	if (!found) {
		queue_skip(ends, &place);
		return TURN_GOES_ON;
	}
	struct vcc_key key;

	__builtin_memcpy(&key, found, sizeof(key));
	bool pauses = look_at(&key, &place) || ++turn->looks >= WHEEL_LOOKS;

	return pauses ? TURN_PAUSES : TURN_GOES_ON;
}

/* Time until the wheel's next turn, when all expired deadlines are processed. */
VCC_APART uint32_t wheel_next_ms(uint32_t port, uint32_t now_ms)
{
	struct vcc_usage *used = usage_of(port);
	struct vcc_wheel *w = wheel_of(port);

	if (!w)
		return WHEEL_REST_MS;
	struct vcc_ends *ended = &w->ends[QUEUE_ENDED];

	uint32_t rest_ms = used && !used->flows ? WHEEL_REST_MS : w->far_ms + FAR_MS - now_ms;

	if (ended->taken != *(volatile uint32_t *)&ended->put)
		rest_ms = vcc_min(rest_ms, FORGETS_BURST / FORGETS_PER_MS);
	if (is_before_ms(w->near_end_ms, now_ms))
		return vcc_max(rest_ms, 1);
	for (uint32_t ahead_ms = 0; ahead_ms < WHEEL_AHEAD_MS; ahead_ms++) {
		struct vcc_ends *ends = ends_of(w, near_slot(now_ms + ahead_ms));

		if (ends && ends->taken != *(volatile uint32_t *)&ends->put)
			return vcc_min(ahead_ms + 1, vcc_max(rest_ms, 1));
	}
	return vcc_max(vcc_min(rest_ms, WHEEL_AHEAD_MS), 1);
}

/*
 * Begins a turn. Limits the backlog to one turn of each ring: older slots coincide with those
 * ahead. Returns the time until a wheel may turn whose time has not come; 0: it turns.
 */
VCC_APART uint32_t wheel_begin_in_ms(uint32_t port, uint32_t now_ms)
{
	struct vcc_wheel *w = wheel_of(port);

	if (!w)
		return WHEEL_REST_MS;
	if (is_before_ms(now_ms, w->turns_ms))
		return w->turns_ms - now_ms;
	uint32_t far_first_ms = (now_ms & ~(uint32_t)(FAR_MS - 1)) - (FAR_SLOTS - 1) * FAR_MS;

	if (is_before_ms(w->far_ms, far_first_ms) || is_before_ms(now_ms + FAR_MS, w->far_ms))
		w->far_ms = far_first_ms;
	if (is_before_ms(w->near_end_ms, w->near_ms)) {
		/* The near ring is empty: skip its slots up to now. */
		w->near_ms = now_ms;
	} else if (is_before_ms(w->near_ms, now_ms - (NEAR_SLOTS - 1)) ||
		   is_before_ms(now_ms, w->near_ms)) {
		/* What was due before this turn of the ring is in one of its slots. */
		w->near_ms = now_ms - (NEAR_SLOTS - 1);
		time_raise(&w->near_end_ms, now_ms);
	}
	/* From here on, file() demands another turn for a nearer deadline. */
	__sync_lock_test_and_set(&w->turns_ms, now_ms + WHEEL_REST_MS);
	return 0;
}

/* Ends a turn. Returns the time until the next one. */
VCC_APART uint32_t wheel_end_in_ms(uint32_t port, uint32_t now_ms, uint32_t turn_us, bool is_done)
{
	struct vcc_usage *used = usage_of(port);
	uint32_t turns_ms = now_ms + (is_done ? wheel_next_ms(port, now_ms) : 1);
	struct vcc_wheel *w = wheel_of(port);

	if (!w)
		return WHEEL_REST_MS;
	if (used && turn_us > used->turn_longest_us)
		used->turn_longest_us = turn_us;
	time_lower(&w->turns_ms, turns_ms);
	turns_ms = w->turns_ms;
	return is_before_ms(now_ms, turns_ms) ? turns_ms - now_ms : 1;
}

#endif
