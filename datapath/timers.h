/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timers that turn the ports' wheels. A run is bounded in flows for each port, and in time for
 * all timers of a CPU (timer_budget.h), and the next one follows soon, so that a CPU is not held
 * for long. Ports take turns, so that one with many deadlines delays the others by one turn.
 */
#ifndef VCC_TIMERS_H
#define VCC_TIMERS_H

#include "timer_budget.h"
#include "wheel.h"

/* Limit of steps per run; most of them find an empty slot. */
#define RUN_STEPS 2048
/* A timer that has to wait for others fires again then. */
#define RUN_AGAIN_MS 1

/* A run of a timer. */
struct run {
	uint64_t begin_us;
	uint64_t end_us; /* no step begins later */
	uint64_t turn_begin_us;
	uint64_t left;	 /* the ports whose wheels have not turned yet, as in struct vcc_timer */
	uint64_t later;	 /* those of them that follow when `left` is empty */
	uint32_t number; /* of the timer */
	uint32_t next_in_ms;
	uint32_t bit; /* of the port whose wheel turns, if `turns` */
	bool turns;
	struct turn turn;
};

/* lowest_bit() where the verifier would follow each of its ways. */
VCC_APART int lowest_bit_apart(uint64_t word)
{
	return lowest_bit(word);
}

/* Turns the next port's wheel, if it is due. Returns 1 if there is no other port. */
static __always_inline int turn_begin(struct run *run)
{
	if (!run->left) {
		run->left = run->later;
		run->later = 0;
	}
	if (!run->left)
		return 1;
	run->bit = (uint32_t)lowest_bit_apart(run->left);
	run->left &= run->left - 1;
	run->turn.port = run->bit * TIMERS + run->number;
	run->turn.looks = 0;
	run->turn_begin_us = now_us();
	uint32_t in_ms = wheel_begin_in_ms(run->turn.port, run->turn.now_ms);

	run->turns = !in_ms;
	if (in_ms)
		run->next_in_ms = vcc_min(run->next_in_ms, in_ms);
	return 0;
}

static __always_inline void turn_end(struct run *run, uint64_t now, bool is_done)
{
	uint32_t in_ms = wheel_end_in_ms(run->turn.port, run->turn.now_ms,
					 (uint32_t)(now - run->turn_begin_us), is_done);

	run->next_in_ms = vcc_min(run->next_in_ms, in_ms);
	run->turns = false;
}

/* bpf_loop's callback. */
static int run_step(uint32_t index, struct run *run)
{
	(void)index;
	if (!run->turns)
		return turn_begin(run);
	int state = wheel_step(&run->turn);
	uint64_t now = now_us();
	bool is_over = now >= run->end_us;

	if (state == TURN_GOES_ON && !is_over)
		return 0;
	turn_end(run, now, state == TURN_IS_DONE);
	return is_over;
}

/* Starts the timer after a run, unless a nearer deadline has started it meanwhile. */
static __always_inline void timer_plan(struct vcc_timer *t, uint32_t now_ms, uint32_t in_ms)
{
	in_ms = vcc_max(in_ms, 1);
	time_lower(&t->fires_ms, now_ms + in_ms);
	timer_start(t, now_ms, in_ms);
}

static int timer_run(void *map, uint32_t *number, struct vcc_timer *t)
{
	(void)map;
	uint64_t ports = t->ports, before = (1ull << (t->first & 63)) - 1;
	struct run run = {
		.begin_us = now_us(),
		.left = ports & ~before,
		.later = ports & before,
		.number = *number,
	};
	uint32_t now_ms = (uint32_t)(run.begin_us / 1000);
	struct shift *shift = shift_of_cpu();
	uint32_t time_us = shift ? shift_begin(shift, run.number, run.begin_us) : SHIFT_US;

	run.end_us = run.begin_us + time_us;
	run.turn.now_ms = now_ms;
	run.next_in_ms = WHEEL_REST_MS;
	/* From here on, wheel_hurry() restarts the timer for a nearer deadline. */
	__sync_lock_test_and_set(&t->fires_ms, now_ms + WHEEL_REST_MS);
	if (!time_us) {
		timer_plan(t, now_ms, RUN_AGAIN_MS);
		return 0;
	}
	bpf_loop(RUN_STEPS, run_step, &run, 0);
	bool is_cut = run.turns || run.left || run.later;
	uint64_t now = now_us();
	uint32_t took_us = (uint32_t)(now - run.begin_us);

	/* It was out of steps: it has passed many positions that flows have left. */
	if (run.turns)
		turn_end(&run, now, false);
	uint32_t held_us = shift ? shift_end(shift, now, took_us) : took_us;

	t->held_longest_us = vcc_max(t->held_longest_us, held_us);
	t->held_too_long += held_us > HELD_MAX_US;
	t->first = is_cut ? run.bit + 1 : 0;
	timer_plan(t, now_ms, is_cut ? RUN_AGAIN_MS : run.next_in_ms);
	return 0;
}

/* Starts a timer whatever it had planned. */
static __always_inline long timer_restart(struct vcc_timer *t, uint32_t now_ms)
{
	__sync_lock_test_and_set(&t->fires_ms, now_ms + 1);
	return timer_start(t, now_ms, 1);
}

/* Lets a port's wheel turn. Gives its timer, which other ports may use, this program's callback. */
static __always_inline long wheel_open(uint32_t port, bool is_empty)
{
	struct vcc_timer *t = timer_of(port);
	struct vcc_wheel *w = wheel_of(port);
	uint32_t now_ms = (uint32_t)(now_us() / 1000);

	if (!t || !w)
		return -ENOENT;
	/* Times of another port with the index, or zeros, may be half a turn of 32 bits away. */
	if (is_empty) {
		w->near_ms = now_ms;
		w->near_end_ms = now_ms - 1;
		w->far_ms = now_ms & ~(uint32_t)(FAR_MS - 1);
		w->turns_ms = now_ms;
	}
	if (has_timers) {
		long err = bpf_timer_init(&t->timer, &timers, 1 /* CLOCK_MONOTONIC */);

		if (err && err != -EBUSY)
			return err;
		err = bpf_timer_set_callback(&t->timer, timer_run);
		if (err)
			return err;
	}
	__sync_fetch_and_or(&t->ports, 1ull << (port / TIMERS & 63));
	return timer_restart(t, now_ms);
}

static __always_inline long wheel_close(uint32_t port)
{
	struct vcc_timer *t = timer_of(port);

	if (!t)
		return -ENOENT;
	__sync_fetch_and_and(&t->ports, ~(1ull << (port / TIMERS & 63)));
	return 0;
}

/* Restarts a timer that is late. Called for each new flow, so that a timer never stays dead. */
static __always_inline void timer_check(uint32_t port, uint32_t now_ms)
{
	struct vcc_timer *t = timer_of(port);

	if (!t || is_before_ms(now_ms, t->fires_ms + WHEEL_LATE_MS))
		return;
	if (!timer_restart(t, now_ms) && has_timers)
		count(port, COUNT_TIMER_LATE);
}

#endif
