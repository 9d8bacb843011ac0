// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A yardstick: a window rewriter without congestion control. It does what any must do (look the
 * connection up, replace the window, mend the checksum, count) and nothing else: IPv4 only, options
 * unread, no lock, no clock, a limit that user space sets.
 */
#include <stdint.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* TCX_NEXT of Linux 6.6. */
#define VERDICT_PASS (-1)

/* More fragments, and the fragment offset (RFC 791, 3.1). */
#define IP_MF_OR_OFFSET 0x3fff

/* Mirrors `Connection::key` of rewriter.rs; in network byte order. */
struct connection {
	uint32_t guest_addr, peer_addr;
	uint16_t guest_port, peer_port;
};

/* Mirrors `Connection::limit` of rewriter.rs. */
struct limit {
	uint64_t segments; /* whose window was replaced */
	uint32_t window_bytes;
	uint32_t wscale; /* of the peer's windows */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct connection);
	__type(value, struct limit);
} limits SEC(".maps");

SEC("tcx/egress") int rewriter(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 ||
	    ip->ihl < 5 || ip->protocol != IPPROTO_TCP ||
	    (ip->frag_off & bpf_htons(IP_MF_OR_OFFSET)))
		return VERDICT_PASS;
	uint32_t tcp_off = sizeof(*eth) + ip->ihl * 4;
	struct tcphdr *tcp = data + tcp_off;

	if ((void *)(tcp + 1) > end || tcp->syn || !tcp->ack)
		return VERDICT_PASS;
	struct connection key = {
		.guest_addr = ip->daddr,
		.peer_addr = ip->saddr,
		.guest_port = tcp->dest,
		.peer_port = tcp->source,
	};
	struct limit *limit = bpf_map_lookup_elem(&limits, &key);

	if (!limit)
		return VERDICT_PASS;
	__be16 before = tcp->window;
	uint32_t most = limit->window_bytes >> (limit->wscale & 15);

	if (bpf_ntohs(before) <= most)
		return VERDICT_PASS;
	__be16 now = bpf_htons((uint16_t)most);

	tcp->window = now;
	bpf_l4_csum_replace(skb, tcp_off + __builtin_offsetof(struct tcphdr, check), before, now,
			    sizeof(now));
	limit->segments++;
	return VERDICT_PASS;
}
