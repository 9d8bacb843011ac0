/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes: the part of a CPU's maps that a run has for itself. With PREEMPT_RT, a run may be
 * preempted by another one on its CPU: since Linux 6.18, local_bh_disable() only keeps a task on
 * its CPU there (unless the kernel has CONFIG_PREEMPT_RT_NEEDS_BH_LOCK). Elsewhere a run keeps its
 * CPU from its begin to its end, and there is one lane.
 */
#ifndef VCC_LANES_H
#define VCC_LANES_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

/* Overridden before loading: 1 where a run may be preempted by another one. */
const volatile uint32_t has_lanes SEC(".rodata.lanes") = 0;

/* The task whose run has a lane; 0: nobody's. With PREEMPT_RT, softirqs run in tasks, too. */
struct vcc_lanes {
	uint64_t owners[LANES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_lanes);
} lanes SEC(".maps");

static __always_inline struct vcc_lanes *lanes_of_cpu(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&lanes, &zero);
}

/* Returns the lane that the run has from now on; LANES: all are taken. */
static __always_inline uint32_t lane_enter(void)
{
	struct vcc_lanes *l = lanes_of_cpu();
	uint64_t task = bpf_get_current_task();

	for (uint32_t lane = 0; l && lane < LANES; lane++) {
		if (!__sync_val_compare_and_swap(&l->owners[lane], 0, task))
			return lane;
	}
	return LANES;
}

static __always_inline void lane_leave(uint32_t lane)
{
	struct vcc_lanes *l = lanes_of_cpu();

	if (l && lane < LANES)
		__sync_lock_test_and_set(&l->owners[lane], 0);
}

/* A run that user space started has entered none. Only `turn` needs one, and is not run twice. */
#define LANE_OF_TURN LANES

/* A global function, which is verified once. */
__attribute__((noinline)) int lane_find(void)
{
	struct vcc_lanes *l = lanes_of_cpu();
	uint64_t task = bpf_get_current_task();

	for (int lane = 0; l && lane < LANES; lane++) {
		if (*(volatile uint64_t *)&l->owners[lane] == task)
			return lane;
	}
	return LANE_OF_TURN;
}

/* The lane that the run has. */
static __always_inline uint32_t lane_of_run(void)
{
	return has_lanes ? (uint32_t)lane_find() : 0;
}

#endif
