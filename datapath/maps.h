/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of a host's ports. The programs are loaded once for all of them. Each key carries its
 * port, limits are per port, and each port has room that the others cannot take (struct
 * vcc_host_constants), so no port's traffic can evict or change another port's flows (law 10). One
 * map of flows for each port would take a megabyte of buckets for each.
 */
#ifndef VCC_MAPS_H
#define VCC_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"
#include "counters.h"

/* With its key and the kernel's header, an entry is allocated from blocks of 512 bytes. */
_Static_assert(sizeof(struct vcc_entry) <= 448, "size of a flow's entry");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint64_t); /* flow_tag.h */
	__type(value, struct vcc_entry);
} flows SEC(".maps");

/* The queues: the flows' keys by position. Room for each flow twice, as all may be half-open. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * 65536); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_place);
	__type(value, struct vcc_key);
} queued SEC(".maps");

/* Head and tail of a queue: positions in [taken, put) may hold a flow. */
struct vcc_ends {
	uint32_t taken;
	uint32_t put;
};

/* A port's timer wheel (wheel.h) and its queues. */
struct vcc_wheel {
	uint32_t near_ms;     /* the near slots before this time are done */
	uint32_t near_end_ms; /* no flow is in a near slot after this time */
	uint32_t far_ms;      /* the far slots before this time are done; a multiple of FAR_MS */
	uint32_t turns_ms;    /* when the wheel turns next */
	struct vcc_ends ends[QUEUES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORTS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct vcc_wheel);
} wheels SEC(".maps");

/* Overridden before loading. */
const volatile struct vcc_host_constants constants SEC(".rodata.host") = { .flows_max = 65536 };

/*
 * Overridden before loading: 0 where the kernel gives programs no timers. User space runs the
 * program `turn` then, when it finds that a timer would have fired.
 */
const volatile uint32_t has_timers SEC(".rodata.timers") = 1;

/* A timer turns the wheels of the ports with index % TIMERS. */
#define TIMERS 64

struct vcc_timer {
	struct bpf_timer timer;
	uint64_t ports;	   /* bit n: the wheel of the port n * TIMERS + the timer's number */
	uint32_t fires_ms; /* the timer's next expiry */
	uint32_t first;	   /* the bit of the port whose wheel turns first */
	/* The last two words, for user space: */
	uint32_t held_longest_us; /* the longest time that it and others held a CPU */
	uint32_t held_too_long;	  /* how often it was longer than HELD_MAX_US */
};

_Static_assert(PORTS_MAX <= TIMERS * 64, "a bit per port");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIMERS);
	__type(key, uint32_t);
	__type(value, struct vcc_timer);
} timers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS_MAX);
	__type(key, uint32_t);
	__type(value, struct vcc_usage);
} usage SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct vcc_host_usage);
} host_usage SEC(".maps");

struct vcc_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 10); /* bytes */
};

/* EVENT_DUPACKS and EVENT_WINDOW: the ring of the process that sends to the port's guest. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PORTS_MAX);
	__type(key, uint32_t);
	__array(values, struct vcc_ring);
} events SEC(".maps");

/* EVENT_ACK: the ring of the process that traces the port. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PORTS_MAX);
	__type(key, uint32_t);
	__array(values, struct vcc_ring);
} traces SEC(".maps");

/* MAC addresses for generated segments to the guest. When full, it learns no new addresses. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vcc_neighbour_key);
	__type(value, struct vcc_neighbour_at);
} neighbours SEC(".maps");

static __always_inline struct vcc_port *port_at(uint32_t port)
{
	return bpf_map_lookup_elem(&ports, &port);
}

static __always_inline struct vcc_usage *usage_of(uint32_t port)
{
	return bpf_map_lookup_elem(&usage, &port);
}

static __always_inline struct vcc_wheel *wheel_of(uint32_t port)
{
	return bpf_map_lookup_elem(&wheels, &port);
}

static __always_inline struct vcc_host_usage *usage_of_host(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&host_usage, &zero);
}

#endif
