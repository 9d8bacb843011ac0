// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Never run: the kernel takes it if it gives programs timers. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct value {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct value);
} values SEC(".maps");

SEC("tcx/ingress") int probe(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct value *v = bpf_map_lookup_elem(&values, &zero);

	(void)skb;
	return v ? (int)bpf_timer_init(&v->timer, &values, 1 /* CLOCK_MONOTONIC */) : 0;
}
