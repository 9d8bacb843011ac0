/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program works on. Together it would take half of the stack of 512 bytes, of which the
 * engine needs most: each call rounds its frame up to 16 bytes, and to 32 before Linux 6.9.
 */
#ifndef VCC_PROGRAM_STATE_H
#define VCC_PROGRAM_STATE_H

#include "lanes.h"
#include "parse.h"

struct work {
	struct vcc_key key;
	uint64_t tag; /* the key's (flow_tag.h) */
	struct vcc_segment segment;
	struct frame frame;
	struct vcc_action action;
	/* bool: the fast program has parsed the segment that it hands on, and taken its tag. */
	uint32_t is_parsed;
	/* The last tick that this CPU has seen in jiffies, and when it saw it. */
	uint64_t tick;
	uint64_t tick_us;
};

/* tag_check() and is_traced() read the key as words. */
_Static_assert(__builtin_offsetof(struct work, key) % 8 == 0, "the key is aligned");

/* By lane. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* overridden before loading where there are lanes */
	__type(key, uint32_t);
	__type(value, struct work);
} works SEC(".maps");

static __always_inline struct work *work_of_cpu(void)
{
	uint32_t lane = lane_of_run();

	return bpf_map_lookup_elem(&works, &lane);
}

#endif
