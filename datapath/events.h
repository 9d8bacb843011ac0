/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events to user space through ring buffers. */
#ifndef VCC_EVENTS_H
#define VCC_EVENTS_H

#include <linux/errno.h>

#include "maps.h"

static __always_inline bool is_traced(const struct vcc_port *port, const struct vcc_key *key)
{
	if (!port->traced.guest_port)
		return true;
	const uint32_t *a = (const void *)&port->traced, *b = (const void *)key;
	uint32_t differ = 0;

	for (uint32_t i = 0; i < sizeof(*key) / sizeof(*a); i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

/* Must be called with the flow's lock held, so that the copy is consistent. */
VCC_APART int send_event(uint32_t kind, const struct vcc_key *key, const struct vcc_flow *flow,
			 uint64_t now_us, uint32_t dupacks)
{
	if (!key || !flow)
		return -EINVAL;
	bool trace = kind == EVENT_ACK;
	uint32_t port = key->port;
	/* What `vcc emit` sends has no outer header. */
	bool inside = key->vlan & KEY_INSIDE;
	void *ring =
	    trace ? bpf_map_lookup_elem(&traces, &port) : bpf_map_lookup_elem(&events, &port);
	struct vcc_event *event =
	    ring && (trace || !inside) ? bpf_ringbuf_reserve(ring, sizeof(*event), 0) : 0;

	if (!event) {
		count(port, trace ? COUNT_TRACE_LOST : COUNT_EVENT_LOST);
		return -ENOSPC;
	}
	event->now_us = now_us;
	event->kind = kind;
	event->dupacks = dupacks;
	event->key = *key;
	event->flow = *flow;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

#endif
