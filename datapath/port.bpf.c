// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is attached to a port: it calls the programs of the host (vcc.bpf.c) with the port's index.
 * An upgrade replaces those for all ports at once. A device that moves to another network namespace
 * takes its index along, where its ifindex may be another device's. Until the host's programs are
 * there, everything passes.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "tail_calls.h"
#include "verdicts.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Overridden before loading. */
const volatile uint32_t port_index SEC(".rodata.port") = 0;

SEC("tcx/ingress") int from_guest(struct __sk_buff *skb)
{
	skb->cb[CB_PORT] = port_index;
	bpf_tail_call_static(skb, &call_from_guest, CALL_FAST);
	return VERDICT_PASS;
}

SEC("tcx/egress") int to_guest(struct __sk_buff *skb)
{
	skb->cb[CB_PORT] = port_index;
	bpf_tail_call_static(skb, &call_to_guest, CALL_FAST);
	return VERDICT_PASS;
}
