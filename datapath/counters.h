/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of a port. */
#ifndef VCC_COUNTERS_H
#define VCC_COUNTERS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

/* Per CPU, or CPUs would wait for each other's cache line. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, PORTS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct vcc_counts);
} counts SEC(".maps");

static __always_inline void count(uint32_t port, uint32_t what)
{
	struct vcc_counts *n = bpf_map_lookup_elem(&counts, &port);

	if (n && what < COUNT_MAX)
		n->segments[what]++;
}

/* The fast path leaves a frame to the whole engine. `dir`: enum direction (parse.h). */
static __always_inline void count_handed_on(uint32_t port, uint32_t dir)
{
	struct vcc_counts *n = bpf_map_lookup_elem(&counts, &port);

	if (n && dir < 2)
		n->handed_on[dir]++;
}

#endif
