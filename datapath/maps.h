/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of one port. The object is loaded once a port, so no port's traffic can evict or
 * change another port's flows.
 */
#ifndef VCC_MAPS_H
#define VCC_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

_Static_assert(sizeof(struct vcc_entry) <= 264, "state of a connection");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* set anew before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_key);
	__type(value, struct vcc_entry);
} flows SEC(".maps");

/* The flows' keys, by when each is to be looked at: as many as there are flows. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* set anew before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_place);
	__type(value, struct vcc_key);
} due SEC(".maps");

/* Those in their handshake, in the order in which they came. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384); /* set anew before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_place);
	__type(value, struct vcc_key);
} half_open SEC(".maps");

/* Of each queue: places below `taken` are empty, those from `put` on have not been used yet. */
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

/* The port's one timer, and how far it has come. */
struct vcc_wheel {
	struct bpf_timer timer;
	uint32_t near_ms;     /* slots before this one are done */
	uint32_t near_end_ms; /* nothing is filed by the millisecond behind it */
	uint32_t far_ms;      /* slots before this one are done; a multiple of FAR_MS */
	uint32_t fires_ms;    /* when the timer goes off next */
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

/* EVENT_DUPACKS and EVENT_WINDOW. Apart from the traces: each ring has one reader of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 10); /* bytes */
} events SEC(".maps");

/* EVENT_ACK. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10); /* bytes */
} traces SEC(".maps");

/* Of which connection each ACK is told, where params.trace is set; all zeros: of every one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_key);
} traced SEC(".maps");

/* How what we make ourselves reaches the guest. Full, it learns no more. */
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
