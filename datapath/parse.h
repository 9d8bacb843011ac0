/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses a frame into the engine's segment and the flow's key. Never modifies the frame. */
#ifndef VCC_PARSE_H
#define VCC_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>

#include "load_options.h"
#include "maps.h"
#include "protocols.h"

#define VLAN_ID_MASK	    0x0fff
#define IP_MF_OR_OFFSET	    0x3fff /* more fragments, and the fragment offset (RFC 791, 3.1) */
#define IPV6_EXTENSIONS_MAX 4
/* Ethernet, a VLAN tag, IPv6 and TCP. Options are not pulled, but copied. */
#define HEADERS_MAX_BYTES (14 + 4 + 40 + 20)
/* Largest offset of TCP: all extension headers have their maximum size (RFC 8200, 4.2). */
#define L4_OFF_MAX (HEADERS_MAX_BYTES + IPV6_EXTENSIONS_MAX * 2048)

enum direction { FROM_GUEST, TO_GUEST };

/* The frame's layout, for the rewrite. Packed tightly, because the BPF stack is scarce. */
struct frame {
	struct option_places options;
	uint16_t l4_off;
	uint16_t data_off_flags; /* bytes 12 and 13 of the TCP header, host byte order */
	uint16_t ip_length;	 /* IPv4's total length or IPv6's payload length */
	uint8_t l3_off;
	bool ipv6;
	uint32_t ip_head[3]; /* IPv4's first 12 bytes, with the checksum, or IPv6's first word */
};

/* IPv4's TOS field, or byte 1 of IPv6's header. */
static __always_inline uint8_t frame_tos(const struct frame *fr)
{
	return ((const uint8_t *)fr->ip_head)[1];
}

static __always_inline uint32_t tcp_header_bytes(const struct frame *fr)
{
	return data_offset_bytes(fr->data_off_flags);
}

struct vlan_tag {
	__be16 tci;
	__be16 proto;
};

static __always_inline void key_v4(uint8_t addr[16], __be32 v4)
{
	uint32_t *words = (uint32_t *)addr;

	words[0] = 0;
	words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = v4;
}

/* TCP's length by the IP header, not by the frame, which may be padded. */
static __always_inline int32_t l4_bytes(struct __sk_buff *skb, const struct frame *fr,
					uint32_t ip_bytes, uint32_t ip_off)
{
	uint32_t room = skb->len - ip_off;

	/* BIG TCP: the length of a super-segment above 64 KiB is 0 (RFC 2675). */
	if (!ip_bytes && skb->gso_size)
		ip_bytes = room;
	if (ip_bytes > room)
		return -1;
	return (int32_t)(ip_bytes - (fr->l4_off - ip_off));
}

/*
 * The offset of the TCP header's end for IPv4, by the frame's first bytes; else HEADERS_MAX_BYTES.
 *
 * Only headers are pulled: a super-segment's linear part holds nothing else, and pulling a byte of
 * payload makes the kernel copy the head of every segment that the guest's TCP has cloned, at the
 * cost of 5 % of a bulk transfer's goodput (measured).
 */
static __always_inline uint32_t headers_bytes(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return HEADERS_MAX_BYTES;
	return sizeof(*eth) + ip->ihl * 4 + TCP_HEADER_BYTES;
}

/* Makes the usual headers linear. parse() pulls a TCP header that lies further back. */
static __always_inline void pull_headers(struct __sk_buff *skb)
{
	uint32_t linear_bytes = skb->data_end - skb->data;

	if (linear_bytes >= HEADERS_MAX_BYTES)
		return;
	uint32_t want_bytes = vcc_min(headers_bytes(skb), skb->len);

	if (linear_bytes < want_bytes)
		bpf_skb_pull_data(skb, want_bytes);
}

/* Returns PARSED, or the reason why the frame is not translated (enum vcc_count). */
static __always_inline uint32_t parse(struct __sk_buff *skb, enum direction dir, uint32_t port,
				      struct frame *fr, struct vcc_key *key, struct vcc_segment *s)
{
	pull_headers(skb);

	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;

	if ((void *)(eth + 1) > end)
		return COUNT_NOT_IP;
	__be16 proto = eth->h_proto;
	uint32_t off = sizeof(*eth);

	key->vlan = 0;
	key->port = (uint16_t)port;
	if (skb->vlan_present) { /* VLAN acceleration: the tag is in the skb, not in the frame */
		if (skb->vlan_proto != bpf_htons(ETH_P_8021Q))
			return COUNT_NOT_IP;
		key->vlan = skb->vlan_tci & VLAN_ID_MASK;
	}
	if (proto == bpf_htons(ETH_P_8021Q)) {
		struct vlan_tag *tag = data + off;

		if (skb->vlan_present || (void *)(tag + 1) > end)
			return COUNT_NOT_IP;
		key->vlan = bpf_ntohs(tag->tci) & VLAN_ID_MASK;
		proto = tag->proto;
		off += sizeof(*tag);
	}

	uint8_t *src = dir == FROM_GUEST ? key->guest_addr : key->peer_addr;
	uint8_t *dst = dir == FROM_GUEST ? key->peer_addr : key->guest_addr;
	int32_t tcp_bytes;

	*s = (struct vcc_segment){};
	fr->options = (struct option_places){};
	fr->l3_off = off;
	if (proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data + off;

		if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
			return COUNT_MALFORMED;
		if (ip->protocol != IPPROTO_TCP)
			return COUNT_NOT_TCP;
		if (ip->frag_off & bpf_htons(IP_MF_OR_OFFSET))
			return COUNT_FRAGMENT;
		fr->ipv6 = false;
		__builtin_memcpy(fr->ip_head, ip, sizeof(fr->ip_head));
		s->ip_ecn = ip->tos & 3;
		fr->l4_off = off + ip->ihl * 4;
		key_v4(src, ip->saddr);
		key_v4(dst, ip->daddr);
		fr->ip_length = bpf_ntohs(ip->tot_len);
		tcp_bytes = l4_bytes(skb, fr, fr->ip_length, off);
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = data + off;

		if ((void *)(ip + 1) > end || ip->version != 6)
			return COUNT_MALFORMED;
		uint8_t next = ip->nexthdr;
		uint32_t ip_bytes = bpf_ntohs(ip->payload_len);

		fr->ip_length = (uint16_t)ip_bytes;
		fr->ipv6 = true;
		fr->ip_head[0] = *(uint32_t *)ip;
		s->ip_ecn = (frame_tos(fr) >> 4) & 3;
		__builtin_memcpy(src, &ip->saddr, 16);
		__builtin_memcpy(dst, &ip->daddr, 16);
		fr->l4_off = off + sizeof(*ip);
		if (next != IPPROTO_TCP) {
			for (int i = 0; i < IPV6_EXTENSIONS_MAX && next != IPPROTO_TCP; i++) {
				uint8_t ext[2];

				if (next == IPPROTO_FRAGMENT)
					return COUNT_FRAGMENT;
				if (!is_extension(next))
					return COUNT_NOT_TCP;
				if (bpf_skb_load_bytes(skb, fr->l4_off, ext, 2))
					return COUNT_MALFORMED;
				next = ext[0];
				fr->l4_off += (ext[1] + 1) * 8;
			}
			if (next != IPPROTO_TCP)
				return COUNT_DEEP;
		}
		tcp_bytes = l4_bytes(skb, fr, ip_bytes ? ip_bytes + sizeof(*ip) : 0, off);
	} else {
		return COUNT_NOT_IP;
	}

	uint32_t l4_off = fr->l4_off;

	/* Keep l4_off in one register: the verifier bounds the one compared, not the one added. */
	asm volatile("" : "+r"(l4_off));
	if (l4_off > L4_OFF_MAX)
		return COUNT_MALFORMED;
	struct tcp_header *tcp = data + l4_off;

	if ((void *)(tcp + 1) > end) {
		/* The TCP header of a guest's frame may be outside of the linear part. */
		if (bpf_skb_pull_data(skb, l4_off + sizeof(*tcp)))
			return COUNT_MALFORMED;
		asm volatile("" : "+r"(l4_off));
		if (l4_off > L4_OFF_MAX)
			return COUNT_MALFORMED;
		tcp = (void *)(long)skb->data + l4_off;
		end = (void *)(long)skb->data_end;
		if ((void *)(tcp + 1) > end)
			return COUNT_MALFORMED;
	}
	fr->data_off_flags = bpf_ntohs(tcp->data_off_flags);
	uint32_t header_bytes = tcp_header_bytes(fr);

	if (header_bytes < sizeof(*tcp) || tcp_bytes < (int32_t)header_bytes)
		return COUNT_MALFORMED;
	key->guest_port = dir == FROM_GUEST ? tcp->source : tcp->dest;
	key->peer_port = dir == FROM_GUEST ? tcp->dest : tcp->source;
	read_numbers(s, tcp);
	s->flags = fr->data_off_flags & TCP_FLAGS_MASK;
	s->payload_bytes = (uint32_t)tcp_bytes - header_bytes;
	s->seg_bytes = seg_bytes_of(s->payload_bytes, skb->gso_size);
	if (!flags_sane(s->flags))
		return COUNT_BAD_FLAGS;
	uint32_t options_bytes = header_bytes - sizeof(*tcp);

	find_option_room(s, header_bytes, true);
	if (!options_bytes || parse_fast_options(tcp + 1, end, options_bytes, s, &fr->options))
		return PARSED;
	return parse_options(skb, fr->l4_off, options_bytes, s, &fr->options);
}

#endif
