// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Observes a device in the tests of live transfers: a switch that marks, and counters of what the
 * fabric and the guests see. It has a parser of its own, because the datapath's headers are under
 * test. Inside VXLAN, Geneve and GRE it counts the inner segments, and marks the outer header.
 */
#include <stdbool.h>
#include <stdint.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FLAG_CWR	  0x80
#define FLAG_ECE	  0x40
#define FLAG_SYN	  0x02
#define ECN_MASK	  3
#define ECN_CE		  3
#define OPTIONS_MAX_BYTES 40
#define TCP_BYTES	  20
#define TCP_CHECK_OFF	  16
#define VXLAN_PORT	  4789
#define GENEVE_PORT	  6081

/* Mirrors `Seen` of watch.rs. */
struct seen {
	uint64_t segments; /* of TCP */
	uint64_t payload_bytes;
	uint64_t ect_bytes;    /* of that, in ECN-capable segments, marked ones included */
	uint64_t marked_bytes; /* of that, marked here */
	uint64_t ce;	       /* segments that came marked */
	uint64_t ect;	       /* segments that came ECN-capable, marked ones included */
	uint64_t ece;	       /* segments after the handshake */
	uint64_t cwr;	       /* likewise */
	uint64_t hello;
	uint64_t pack;
	uint64_t fack;
	uint64_t pack_on_data;
	uint64_t bad_sums; /* segments without payload whose checksum is wrong */
	uint64_t unlike;   /* segments in a tunnel whose ECN field is another one outside */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct seen);
} seen SEC(".maps");

/* Set before loading. */
const volatile struct {
	uint32_t mark_one_of; /* of so many ECN-capable segments with payload; 0: none */
	uint32_t verify_sums; /* bool: checksums are whole here, and not left to a device */
} plan;

static uint64_t markable;

struct walk {
	uint8_t options[64];
	uint32_t at, length;
	bool hello, pack, fack;
};

static int step(uint32_t index, struct walk *w)
{
	uint32_t at = w->at & 63;
	uint8_t kind = w->options[at], length = w->options[(at + 1) & 63];

	(void)index;
	if (w->at >= w->length || kind == 0)
		return 1;
	if (kind == 1) {
		w->at++;
		return 0;
	}
	if (length < 2)
		return 1;
	if (kind == 172)
		w->pack = true;
	if (kind == 253 && w->options[(at + 2) & 63] == 'v' && w->options[(at + 3) & 63] == 'c') {
		if (length == 12)
			w->fack = true;
		else
			w->hello = true;
	}
	w->at += length;
	return 0;
}

static void witness_options(struct __sk_buff *skb, uint32_t l4, uint32_t length, bool data,
			    struct seen *s)
{
	struct walk w = { .length = length };

	asm volatile("" : "+r"(length));
	if (length < 1 || length > OPTIONS_MAX_BYTES ||
	    bpf_skb_load_bytes(skb, l4 + TCP_BYTES, w.options, length))
		return;
	bpf_loop(OPTIONS_MAX_BYTES, step, &w, 0);
	__sync_fetch_and_add(&s->hello, w.hello);
	__sync_fetch_and_add(&s->pack, w.pack);
	__sync_fetch_and_add(&s->fack, w.fack);
	__sync_fetch_and_add(&s->pack_on_data, data && w.pack);
}

/* The sum over a segment without payload, pseudo-header included, is -0 if it is right. */
static bool sum_is_right(struct __sk_buff *skb, uint32_t l4, uint32_t tcp_bytes, int64_t sum)
{
	uint8_t tcp[TCP_BYTES + OPTIONS_MAX_BYTES + 4] = {};

	asm volatile("" : "+r"(tcp_bytes));
	if (tcp_bytes < TCP_BYTES || tcp_bytes > TCP_BYTES + OPTIONS_MAX_BYTES ||
	    bpf_skb_load_bytes(skb, l4, tcp, tcp_bytes))
		return false;
	sum += bpf_htons(IPPROTO_TCP) + bpf_htons((uint16_t)tcp_bytes);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = bpf_csum_diff(0, 0, (__be32 *)tcp, TCP_BYTES + OPTIONS_MAX_BYTES, (__u32)sum);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static void mark_ipv4(struct __sk_buff *skb, const struct iphdr *ip)
{
	uint8_t tos = ip->tos | ECN_CE;

	bpf_l3_csum_replace(skb, ETH_HLEN + 10, bpf_htons(ip->tos), bpf_htons(tos), 2);
	bpf_skb_store_bytes(skb, ETH_HLEN + 1, &tos, 1, 0);
}

static void mark_ipv6(struct __sk_buff *skb)
{
	uint8_t byte;

	bpf_skb_load_bytes(skb, ETH_HLEN + 1, &byte, 1);
	byte |= ECN_CE << 4;
	bpf_skb_store_bytes(skb, ETH_HLEN + 1, &byte, 1, BPF_F_RECOMPUTE_CSUM);
}

/* The offset of the Ethernet header inside a tunnel; 0: there is none. */
static uint32_t inner_offset(struct __sk_buff *skb, bool v6)
{
	uint32_t l3_bytes = v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	uint32_t l4 = ETH_HLEN + l3_bytes, protocol_at = ETH_HLEN + (v6 ? 6 : 9);
	uint8_t protocol, head[16];

	if (bpf_skb_load_bytes(skb, protocol_at, &protocol, 1) ||
	    bpf_skb_load_bytes(skb, l4, head, sizeof(head)))
		return 0;
	uint32_t port = head[2] << 8 | head[3], flags = head[0];

	if (protocol == IPPROTO_UDP && port == VXLAN_PORT)
		return l4 + 16;
	if (protocol == IPPROTO_UDP && port == GENEVE_PORT)
		return l4 + 16 + (head[8] & 0x3f) * 4;
	if (protocol == IPPROTO_GRE)
		return l4 + 4 + 4 * !!(flags & 0x80) + 4 * !!(flags & 0x20) + 4 * !!(flags & 0x10);
	return 0;
}

SEC("tc") int watch(struct __sk_buff *skb)
{
	uint32_t zero = 0, l4, ip_bytes;
	struct seen *s = bpf_map_lookup_elem(&seen, &zero);
	bool outer_v6 = skb->protocol == bpf_htons(ETH_P_IPV6), v6 = outer_v6;
	uint32_t inner = inner_offset(skb, outer_v6), l3 = inner + ETH_HLEN;
	struct ipv6hdr ip6;
	struct iphdr ip, outer;
	struct tcphdr tcp;
	int64_t addresses;
	uint8_t ecn, outer_ecn;
	__be16 type = skb->protocol;

	if (!s || bpf_skb_load_bytes(skb, ETH_HLEN, &outer, sizeof(outer)))
		return TC_ACT_OK;
	if (inner) {
		if (bpf_skb_load_bytes(skb, inner + 12, &type, sizeof(type)))
			return TC_ACT_OK;
		v6 = type == bpf_htons(ETH_P_IPV6);
	}
	if (v6) {
		if (bpf_skb_load_bytes(skb, l3, &ip6, sizeof(ip6)) || ip6.nexthdr != IPPROTO_TCP)
			return TC_ACT_OK;
		l4 = l3 + sizeof(ip6);
		ip_bytes = bpf_ntohs(ip6.payload_len);
		ecn = ((uint8_t *)&ip6)[1] >> 4 & ECN_MASK;
		addresses = bpf_csum_diff(0, 0, (__be32 *)&ip6.saddr, 32, 0);
	} else {
		if (type != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, l3, &ip, sizeof(ip)) ||
		    ip.protocol != IPPROTO_TCP)
			return TC_ACT_OK;
		l4 = l3 + sizeof(ip);
		ip_bytes = bpf_ntohs(ip.tot_len) - sizeof(ip);
		ecn = ip.tos & ECN_MASK;
		addresses = bpf_csum_diff(0, 0, &ip.saddr, 8, 0);
	}
	outer_ecn = outer_v6 ? ((uint8_t *)&outer)[1] >> 4 & ECN_MASK : outer.tos & ECN_MASK;
	__sync_fetch_and_add(&s->unlike, ecn != outer_ecn);
	ecn = outer_ecn;
	if (bpf_skb_load_bytes(skb, l4, &tcp, sizeof(tcp)))
		return TC_ACT_OK;
	uint32_t header_bytes = tcp.doff * 4, payload_bytes = ip_bytes - header_bytes;
	uint8_t flags = ((uint8_t *)&tcp)[13];
	bool syn = flags & FLAG_SYN;

	__sync_fetch_and_add(&s->segments, 1);
	__sync_fetch_and_add(&s->payload_bytes, payload_bytes);
	__sync_fetch_and_add(&s->ce, ecn == ECN_CE);
	__sync_fetch_and_add(&s->ect, ecn != 0);
	__sync_fetch_and_add(&s->ece, !syn && (flags & FLAG_ECE));
	__sync_fetch_and_add(&s->cwr, !syn && (flags & FLAG_CWR));
	witness_options(skb, l4, header_bytes - TCP_BYTES, payload_bytes, s);
	if (plan.verify_sums && !payload_bytes && !sum_is_right(skb, l4, header_bytes, addresses))
		__sync_fetch_and_add(&s->bad_sums, 1);
	if (!ecn || !payload_bytes)
		return TC_ACT_OK;
	__sync_fetch_and_add(&s->ect_bytes, payload_bytes);
	if (!plan.mark_one_of || __sync_fetch_and_add(&markable, 1) % plan.mark_one_of)
		return TC_ACT_OK;
	__sync_fetch_and_add(&s->marked_bytes, payload_bytes);
	if (outer_v6)
		mark_ipv6(skb);
	else
		mark_ipv4(skb, &outer);
	return TC_ACT_OK;
}
