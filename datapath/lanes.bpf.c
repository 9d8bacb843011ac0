// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is attached to a port instead of port.bpf.c where a run may be preempted by another one on
 * its CPU (lanes.h). A tail call in a function of its own returns to the caller of that function.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "tail_calls.h"
#include "counters.h"
#include "lanes.h"
#include "verdicts.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Overridden before loading. */
const volatile uint32_t port_index SEC(".rodata.port") = 0;

/* They return the called program's verdict, of which the compiler does not know. */
static __noinline int all_of_from_guest(struct __sk_buff *skb)
{
	int verdict = VERDICT_PASS;

	bpf_tail_call_static(skb, &call_from_guest, CALL_FAST);
	asm volatile("" : "+r"(verdict));
	return verdict;
}

static __noinline int all_of_to_guest(struct __sk_buff *skb)
{
	int verdict = VERDICT_PASS;

	bpf_tail_call_static(skb, &call_to_guest, CALL_FAST);
	asm volatile("" : "+r"(verdict));
	return verdict;
}

/* Calls the host's program in a lane of its own. */
static __always_inline int run(struct __sk_buff *skb, bool is_from_guest)
{
	uint32_t lane = lane_enter();

	if (lane == LANES) {
		count(port_index, COUNT_REWRITE_FAILED);
		return VERDICT_DROP;
	}
	skb->cb[CB_PORT] = port_index;
	int verdict = is_from_guest ? all_of_from_guest(skb) : all_of_to_guest(skb);

	lane_leave(lane);
	return verdict;
}

SEC("tcx/ingress") int from_guest(struct __sk_buff *skb)
{
	return run(skb, true);
}

SEC("tcx/egress") int to_guest(struct __sk_buff *skb)
{
	return run(skb, false);
}
