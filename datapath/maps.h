/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of one port. The object is loaded once per port, so no port's traffic can evict or
 * change another port's flows (law 10).
 */
#ifndef VCC_MAPS_H
#define VCC_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

_Static_assert(sizeof(struct vcc_entry) <= 312, "size of a flow's entry");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_key);
	__type(value, struct vcc_entry);
} flows SEC(".maps");

/* The timer wheel's slots: the flows' keys by deadline. As many entries as flows. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_place);
	__type(value, struct vcc_key);
} due SEC(".maps");

/* The keys of half-open flows, oldest first. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_place);
	__type(value, struct vcc_key);
} half_open SEC(".maps");

/* Head and tail of a queue: positions in [taken, put) may hold a flow. */
struct vcc_ends {
	uint32_t taken;
	uint32_t put;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUES);
	__type(key, uint32_t);
	__type(value, struct vcc_ends);
} queue_ends SEC(".maps");

/* The port's timer wheel (wheel.h). */
struct vcc_wheel {
	struct bpf_timer timer;
	uint32_t near_ms;     /* the near slots before this time are done */
	uint32_t near_end_ms; /* no flow is in a near slot after this time */
	uint32_t far_ms;      /* the far slots before this time are done; a multiple of FAR_MS */
	uint32_t fires_ms;    /* the timer's next expiry */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_wheel);
} wheel SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_usage);
} usage SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_params);
} params SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNT_MAX);
	__type(key, uint32_t);
	__type(value, uint64_t);
} counters SEC(".maps");

/* Per CPU, or CPUs would wait for each other's cache line. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_delays);
} delays SEC(".maps");

/* EVENT_DUPACKS and EVENT_WINDOW. Not in `traces`, because each ring has its own reader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 10); /* bytes */
} events SEC(".maps");

/* EVENT_ACK. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10); /* bytes */
} traces SEC(".maps");

/* The connection to trace if params.trace is set; all zeros: every connection. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_key);
} traced SEC(".maps");

/* MAC addresses for generated segments to the guest. When full, it learns no new addresses. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_neighbour_key);
	__type(value, struct vcc_neighbour);
} neighbours SEC(".maps");

static __always_inline void count(uint32_t what)
{
	uint64_t *n = bpf_map_lookup_elem(&counters, &what);

	if (n)
		(*n)++;
}

static __always_inline struct vcc_params *port_params(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&params, &zero);
}

#endif
