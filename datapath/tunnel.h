/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The outer headers of an encapsulated frame: VXLAN (RFC 7348), Geneve (RFC 8926), and GRE (RFC
 * 2784, RFC 2890) with an Ethernet frame or an IP packet inside. One level: what is inside a tunnel
 * inside a tunnel stays untouched.
 */
#ifndef VCC_TUNNEL_H
#define VCC_TUNNEL_H

#include <linux/udp.h>

#include "acceptability.h"
#include "lanes.h"
#include "parse.h"

#define VXLAN_HAS_VNI  0x08   /* RFC 7348, 5 */
#define GENEVE_VERSION 0xc0   /* RFC 8926, 3.4 */
#define GENEVE_OPTIONS 0x3f   /* in words of four bytes */
#define GRE_CHECKSUM   0x8000 /* RFC 2784, 2; RFC 2890, 2 */
#define GRE_KEY	       0x2000
#define GRE_SEQUENCE   0x1000
#define GRE_UNREAD     0x4007 /* routing, and the version: 0, as Linux has them */

/* A tag in front of the outer header is the only thing that a plain frame has before IP. */
#define PLAIN_L3_OFF_MAX 18
/* Linux's tunnels over IPv6 have destination options with a limit (RFC 2473, 4.1.1). */
#define OUTER_EXTENSIONS_MAX 2

/* UDP with VXLAN's or Geneve's fixed header, or GRE with all its fields. */
#define TUNNEL_HEADER_BYTES 16

/* From the outer UDP or GRE header to the inner TCP header: below 256, and an IPv4 header. */
#define OUTER_COVERED_MAX_BYTES 320

/* An IP header; there are at least as many bytes in any frame that has TCP inside. */
union ip_header {
	struct iphdr v4;
	struct ipv6hdr v6;
};

/* What is outside of the segment that this CPU is translating. */
struct outer {
	uint64_t tunnel; /* its kind, and its network: see tunnel_of() */
	/* Options and TCP's fields are not used. `l4_off` is that of UDP or GRE. */
	struct frame frame;
	uint16_t inner_off;   /* of the Ethernet or IP header inside */
	uint16_t inner_proto; /* EtherType of what is there, network byte order */
	uint8_t ecn;
	uint8_t check_off; /* the checksum that covers the inner headers; 0: none */
	bool udp;
	bool exact; /* all lengths end where the frame does, and the kernel lets it change */
	/* What is loaded, one after the other; the stack has no room. */
	union ip_header ip;
	union {
		uint8_t bytes[TUNNEL_HEADER_BYTES];
		__be16 halves[TUNNEL_HEADER_BYTES / 2];
		__be32 words[TUNNEL_HEADER_BYTES / 4];
	} header;
	struct tcp_header tcp;
	__be32 options[5];
	uint8_t covered[OUTER_COVERED_MAX_BYTES]; /* by the outer checksum */
};

/* Where the outer IP packet ends by its header. */
static __always_inline uint32_t outer_end(const struct outer *o)
{
	uint32_t header_bytes = o->frame.ipv6 ? sizeof(struct ipv6hdr) : 0;

	return o->frame.l3_off + header_bytes + o->frame.ip_length;
}

/* By lane. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* overridden before loading where there are lanes */
	__type(key, uint32_t);
	__type(value, struct outer);
} outers SEC(".maps");

static __always_inline struct outer *outer_of_cpu(void)
{
	uint32_t lane = lane_of_run();

	return bpf_map_lookup_elem(&outers, &lane);
}

static __always_inline bool is_inside(const struct frame *fr)
{
	return fr->l3_off > PLAIN_L3_OFF_MAX;
}

#define TUNNEL_KIND_SHIFT 56

/* A network of VXLAN or Geneve. Its ends are no part of it: they change when an address moves. */
static __always_inline uint64_t tunnel_of_vni(uint64_t kind, __be32 vni_reserved)
{
	return kind << TUNNEL_KIND_SHIFT | bpf_ntohl(vni_reserved) >> 8;
}

/* A tunnel of GRE is known by its ends and its key: a hash of them (FNV's multiplier). */
static __always_inline uint64_t tunnel_of_gre(const struct outer *o, bool has_key, __be32 gre_key)
{
	const uint32_t *addresses =
	    o->frame.ipv6 ? (const void *)&o->ip.v6.saddr : (const void *)&o->ip.v4.saddr;
	uint64_t hash = (uint64_t)has_key << 32 | gre_key;

	for (int i = 0; i < (o->frame.ipv6 ? 8 : 2); i++)
		hash = hash * 0x100000001b3ull ^ addresses[i];
	hash ^= hash >> 32;
	return (uint64_t)INSIDE_GRE << TUNNEL_KIND_SHIFT |
	       (hash & ((1ull << TUNNEL_KIND_SHIFT) - 1));
}

/* Reads the outer IP header. Returns the protocol behind it, or -1. */
static __always_inline int outer_ip(struct __sk_buff *skb, struct outer *o, uint32_t l3_off)
{
	if (bpf_skb_load_bytes(skb, l3_off, &o->ip, sizeof(o->ip)))
		return -1;
	o->frame.l3_off = (uint8_t)l3_off;
	__builtin_memcpy(o->frame.ip_head, &o->ip, sizeof(o->frame.ip_head));
	if (o->ip.v4.version == 4) {
		o->frame.ipv6 = false;
		o->frame.l4_off = (uint16_t)(l3_off + o->ip.v4.ihl * 4);
		o->frame.ip_length = bpf_ntohs(o->ip.v4.tot_len);
		o->ecn = o->ip.v4.tos & 3;
		return o->ip.v4.frag_off & bpf_htons(IP_MF_OR_OFFSET) ? -1 : o->ip.v4.protocol;
	}
	uint8_t next = o->ip.v6.nexthdr;

	o->frame.ipv6 = true;
	o->frame.l4_off = (uint16_t)(l3_off + sizeof(o->ip.v6));
	o->frame.ip_length = bpf_ntohs(o->ip.v6.payload_len);
	o->ecn = (frame_tos(&o->frame) >> 4) & 3;
	for (int i = 0; i < OUTER_EXTENSIONS_MAX && is_extension(next); i++) {
		uint8_t ext[2];

		if (bpf_skb_load_bytes(skb, o->frame.l4_off, ext, sizeof(ext)))
			return -1;
		next = ext[0];
		o->frame.l4_off = (uint16_t)(o->frame.l4_off + (ext[1] + 1) * 8);
	}
	return next;
}

static __always_inline bool find_in_udp(struct outer *o, uint32_t kinds)
{
	const uint8_t *bytes = o->header.bytes;
	__be16 to = o->header.halves[1];
	uint32_t inner_off = o->frame.l4_off + TUNNEL_HEADER_BYTES;

	if (to == bpf_htons(VXLAN_PORT) || to == bpf_htons(VXLAN_LINUX_PORT)) {
		if (!(kinds & INSIDE_VXLAN) || !(bytes[8] & VXLAN_HAS_VNI))
			return false;
		o->tunnel = tunnel_of_vni(INSIDE_VXLAN, o->header.words[3]);
		o->inner_proto = bpf_htons(ETH_P_TEB);
	} else if (to == bpf_htons(GENEVE_PORT)) {
		if (!(kinds & INSIDE_GENEVE) || (bytes[8] & GENEVE_VERSION))
			return false;
		o->tunnel = tunnel_of_vni(INSIDE_GENEVE, o->header.words[3]);
		o->inner_proto = o->header.halves[5];
		inner_off += (bytes[8] & GENEVE_OPTIONS) * 4;
	} else {
		return false;
	}
	o->udp = true;
	o->inner_off = (uint16_t)inner_off;
	/* 0: the sender computed none. */
	o->check_off = o->header.halves[3] ? (uint8_t)(o->frame.l4_off + 6) : 0;
	return true;
}

static __always_inline bool find_in_gre(struct outer *o)
{
	uint32_t flags = bpf_ntohs(o->header.halves[0]);
	bool has_check = flags & GRE_CHECKSUM, has_key = flags & GRE_KEY;
	__be32 key = has_check ? o->header.words[2] : o->header.words[1];

	if (flags & GRE_UNREAD)
		return false;
	o->udp = false;
	o->tunnel = tunnel_of_gre(o, has_key, has_key ? key : 0);
	o->inner_proto = o->header.halves[1];
	o->inner_off = (uint16_t)(o->frame.l4_off + 4 + 4 * has_check + 4 * has_key +
				  4 * !!(flags & GRE_SEQUENCE));
	o->check_off = has_check ? (uint8_t)(o->frame.l4_off + 4) : 0;
	return true;
}

enum found {
	FOUND_NONE,   /* there is no tunnel of the kinds that are looked for */
	FOUND_INNER,  /* `inner_off` is that of the inner IP header */
	FOUND_UNREAD, /* there may be one, behind more headers than are read */
};

/* Finds what is inside a frame whose outer IP header is at `l3_off`. */
static __always_inline enum found find_inner(struct __sk_buff *skb, struct outer *o, uint32_t kinds,
					     uint32_t l3_off)
{
	int proto = outer_ip(skb, o, l3_off);

	if (is_extension(proto))
		return FOUND_UNREAD;
	if (proto != IPPROTO_UDP && (proto != IPPROTO_GRE || !(kinds & INSIDE_GRE)))
		return FOUND_NONE;
	if (o->frame.l4_off > UINT8_MAX - TUNNEL_HEADER_BYTES)
		return FOUND_UNREAD;
	if (bpf_skb_load_bytes(skb, o->frame.l4_off, &o->header, sizeof(o->header)))
		return FOUND_NONE;
	if (proto == IPPROTO_UDP ? !find_in_udp(o, kinds) : !find_in_gre(o))
		return FOUND_NONE;
	if (o->inner_proto != bpf_htons(ETH_P_TEB))
		return FOUND_INNER;
	__be16 inner_proto;

	if (bpf_skb_load_bytes(skb, o->inner_off + __builtin_offsetof(struct ethhdr, h_proto),
			       &inner_proto, sizeof(inner_proto)))
		return FOUND_NONE;
	o->inner_proto = inner_proto;
	o->inner_off = (uint16_t)(o->inner_off + ETH_HLEN);
	return FOUND_INNER;
}

/*
 * Does a segment continue where the connection is? It is among what is outstanding or next, and it
 * acknowledges what the sender has been sent: both are stricter than what an end accepts.
 */
static __always_inline bool continues_flow(const struct vcc_flow *f, const struct vcc_segment *s,
					   enum direction dir)
{
	bool answers = (s->flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK);

	/* Of who sends its SYN, nothing is known yet. */
	if (answers && dir == FROM_GUEST)
		return s->ack == f->rcv_nxt;
	if (answers)
		return s->ack - f->snd_una <= f->snd_nxt - f->snd_una;
	if (dir == TO_GUEST)
		return guest_accepts(f, s);
	return s->seq - f->snd_una <= f->snd_nxt - f->snd_una &&
	       (!(s->flags & TCP_ACK) || s->ack - f->rcv_wup <= f->rcv_max - f->rcv_wup);
}

/*
 * Is a segment in the tunnel that the connection is in? Two tunnels of a guest may have the same
 * addresses inside, so one that does not continue where the connection is belongs to another. One
 * that does says which tunnel it is, because an overlay that numbers its senders may number one
 * anew. The flow is held; `opens`: this segment has just created it.
 */
static __always_inline bool is_in_its_tunnel(struct vcc_entry *e, const struct vcc_segment *s,
					     enum direction dir, bool opens)
{
	const struct outer *o = outer_of_cpu();
	uint64_t *tunnel = &e->tunnels[dir == TO_GUEST];

	if (!o)
		return false;
	if (*tunnel == o->tunnel)
		return true;
	if (opens || continues_flow(&e->flow, s, dir)) {
		*tunnel = o->tunnel;
		return true;
	}
	return !*tunnel;
}

#endif
