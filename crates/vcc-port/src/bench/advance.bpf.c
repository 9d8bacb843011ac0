// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BPF_PROG_RUN repeats one frame, which the datapath would take for a retransmission or an old
 * ACK from the second time on. This goes first and makes the next segment of it.
 */
#include <stdint.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* TCX_NEXT of Linux 6.6. */
#define VERDICT_PASS (-1)

/* What the next segment carries; the program before it may have rewritten all of this. */
struct cursor {
	uint32_t seq;
	uint32_t ack;
	uint32_t seq_step;
	uint32_t ack_step;
	uint16_t window;
	uint16_t reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct cursor);
} cursor SEC(".maps");

#define NEXT_PROGRAM                                                                               \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                             \
		__uint(max_entries, 1);                                                            \
		__type(key, uint32_t);                                                             \
		__type(value, uint32_t);                                                           \
	}

/* Two, since all programs of one such map must be of one attach type. */
NEXT_PROGRAM next_from_guest SEC(".maps");
NEXT_PROGRAM next_to_guest SEC(".maps");

static __always_inline void advance(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	struct tcphdr *tcp = (void *)(ip + 1);
	uint32_t zero = 0;
	struct cursor *at = bpf_map_lookup_elem(&cursor, &zero);

	if (!at || (void *)(tcp + 1) > end)
		return;
	ip->tos = 0;
	tcp->seq = bpf_htonl(at->seq);
	tcp->ack_seq = bpf_htonl(at->ack);
	tcp->window = bpf_htons(at->window);
	at->seq += at->seq_step;
	at->ack += at->ack_step;
}

SEC("tcx/ingress") int advance_from_guest(struct __sk_buff *skb)
{
	advance(skb);
	bpf_tail_call(skb, &next_from_guest, 0);
	return VERDICT_PASS;
}

SEC("tcx/egress") int advance_to_guest(struct __sk_buff *skb)
{
	advance(skb);
	bpf_tail_call(skb, &next_to_guest, 0);
	return VERDICT_PASS;
}
