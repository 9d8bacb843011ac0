/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses what most segments are: Ethernet with at most one VLAN tag, IPv4 without options or IPv6
 * without extension headers, and a TCP segment with ACK alone and no options but timestamps and a
 * report. parse.h reads all others. Both give the same result for a segment that both read.
 */
#ifndef VCC_FAST_PARSE_H
#define VCC_FAST_PARSE_H

#include "bounds.h"
#include "parse.h"

/* The VLAN of a frame with at most one tag, and the protocol behind it; false: another frame. */
static __always_inline bool fast_vlan(struct __sk_buff *skb, void *data, void *end,
				      struct vcc_key *key, __be16 *proto, uint32_t *off)
{
	struct ethhdr *eth = data;
	struct vlan_tag *tag = (void *)(eth + 1);

	if ((void *)(eth + 1) > end)
		return false;
	key->vlan = 0;
	*proto = eth->h_proto;
	*off = sizeof(*eth);
	if (skb->vlan_present) { /* VLAN acceleration: the tag is in the skb, not in the frame */
		if (skb->vlan_proto != bpf_htons(ETH_P_8021Q))
			return false;
		key->vlan = skb->vlan_tci & VLAN_ID_MASK;
	} else if (*proto == bpf_htons(ETH_P_8021Q)) {
		if ((void *)(tag + 1) > end)
			return false;
		key->vlan = bpf_ntohs(tag->tci) & VLAN_ID_MASK;
		*proto = tag->proto;
		*off += sizeof(*tag);
	}
	return true;
}

/* Returns whether it is a usual segment. `s` and `fr` are then what parse() makes them. */
static __always_inline bool parse_fast(struct __sk_buff *skb, enum direction dir, uint32_t port,
				       struct frame *fr, struct vcc_key *key, struct vcc_segment *s)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	uint8_t *src = dir == FROM_GUEST ? key->guest_addr : key->peer_addr;
	uint8_t *dst = dir == FROM_GUEST ? key->peer_addr : key->guest_addr;
	/* The verifier follows the kinds of frames together from where it cannot tell them apart.
	 */
	uint32_t zero = unknown_zero(skb);
	uint32_t l3_off, l4_off;
	int32_t tcp_bytes;
	__be16 proto;

	if (!fast_vlan(skb, data, end, key, &proto, &l3_off))
		return false;
	key->port = (uint16_t)port;
	*s = (struct vcc_segment){};
	fr->options = (struct option_places){};
	fr->l3_off = (uint8_t)(l3_off + zero);
	if (proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data + l3_off;

		if ((void *)(ip + 1) > end || *(uint8_t *)ip != (4 << 4 | sizeof(*ip) / 4) ||
		    ip->protocol != IPPROTO_TCP || (ip->frag_off & bpf_htons(IP_MF_OR_OFFSET)))
			return false;
		l4_off = l3_off + sizeof(*ip) + zero;
		fr->ipv6 = zero;
		fr->l4_off = (uint16_t)l4_off;
		__builtin_memcpy(fr->ip_head, ip, sizeof(fr->ip_head));
		s->ip_ecn = ip->tos & 3;
		key_v4(src, ip->saddr);
		key_v4(dst, ip->daddr);
		fr->ip_length = bpf_ntohs(ip->tot_len);
		tcp_bytes = l4_bytes(skb, fr, fr->ip_length, l3_off);
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = data + l3_off;

		if ((void *)(ip + 1) > end || ip->version != 6 || ip->nexthdr != IPPROTO_TCP)
			return false;
		l4_off = l3_off + sizeof(*ip) + zero;
		fr->ipv6 = zero + 1;
		fr->l4_off = (uint16_t)l4_off;
		fr->ip_head[0] = *(uint32_t *)ip;
		s->ip_ecn = (frame_tos(fr) >> 4) & 3;
		__builtin_memcpy(src, &ip->saddr, 16);
		__builtin_memcpy(dst, &ip->daddr, 16);
		fr->ip_length = bpf_ntohs(ip->payload_len);
		tcp_bytes =
		    l4_bytes(skb, fr, fr->ip_length ? fr->ip_length + sizeof(*ip) : 0, l3_off);
	} else {
		return false;
	}
	/* As in parse(): one register, which is the one that is added. */
	asm volatile("" : "+r"(l4_off));
	if (l4_off > HEADERS_MAX_BYTES)
		return false;
	struct tcp_header *tcp = data + l4_off;

	if ((void *)(tcp + 1) > end)
		return false;
	fr->data_off_flags = bpf_ntohs(tcp->data_off_flags);
	uint32_t header_bytes = tcp_header_bytes(fr);

	s->flags = fr->data_off_flags & TCP_FLAGS_MASK;
	if ((s->flags | TCP_PSH | TCP_ECN_BITS) != (TCP_ACK | TCP_PSH | TCP_ECN_BITS) ||
	    header_bytes < sizeof(*tcp) || tcp_bytes < (int32_t)header_bytes)
		return false;
	key->guest_port = dir == FROM_GUEST ? tcp->source : tcp->dest;
	key->peer_port = dir == FROM_GUEST ? tcp->dest : tcp->source;
	read_numbers(s, tcp);
	s->payload_bytes = (uint32_t)tcp_bytes - header_bytes;
	s->seg_bytes = seg_bytes_of(s->payload_bytes, skb->gso_size);
	uint32_t options_bytes = header_bytes - sizeof(*tcp);

	find_option_room(s, header_bytes, true);
	return !options_bytes || parse_fast_options(tcp + 1, end, options_bytes, s, &fr->options);
}

#endif
