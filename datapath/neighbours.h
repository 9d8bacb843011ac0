/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Learns the MAC addresses for generated segments from the guest's frames. */
#ifndef VCC_NEIGHBOURS_H
#define VCC_NEIGHBOURS_H

#include <linux/if_ether.h>

#include "maps.h"

/* The most addresses of one guest. */
#define NEIGHBOURS_MAX 256u

/* Learns from a frame of the guest: an answer has its addresses swapped. */
static __noinline void neighbour_learn(struct __sk_buff *skb, const struct vcc_key *flow)
{
	struct vcc_neighbour_key key = { .vlan = flow->vlan, .port = flow->port };
	struct vcc_usage *used = usage_of(flow->port);
	struct vcc_neighbour_at at = { .ifindex = skb->ifindex };
	struct ethhdr eth;

	if (!used || bpf_skb_load_bytes(skb, 0, &eth, sizeof(eth)))
		return;
	__builtin_memcpy(key.guest_addr, flow->guest_addr, sizeof(key.guest_addr));
	__builtin_memcpy(at.neighbour.guest_mac, eth.h_source, ETH_ALEN);
	__builtin_memcpy(at.neighbour.next_hop_mac, eth.h_dest, ETH_ALEN);
	/* An unknown address is a new entry, if the guest has room for it. */
	if (bpf_map_update_elem(&neighbours, &key, &at, BPF_EXIST) &&
	    used->neighbours < NEIGHBOURS_MAX &&
	    !bpf_map_update_elem(&neighbours, &key, &at, BPF_NOEXIST))
		__sync_fetch_and_add(&used->neighbours, 1);
}

#endif
