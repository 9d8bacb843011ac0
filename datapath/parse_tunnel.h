/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses the TCP segment inside an encapsulated frame, as parse.h does that of a plain one. */
#ifndef VCC_PARSE_TUNNEL_H
#define VCC_PARSE_TUNNEL_H

#include "kernel.h"
#include "tunnel.h"
#include "unparsed_tcp.h"

/* It must be dropped: a mark on a packet whose ends do not know ECN. */
#define IP_ECN_DROP 4

/* What the decapsulating end will make of both ECN fields (RFC 6040, 4.2). */
static __always_inline uint8_t decapsulated_ecn(uint8_t outer, uint8_t inner)
{
	if (outer == IP_ECN_CE)
		return inner == IP_ECN_NOT_ECT ? IP_ECN_DROP : IP_ECN_CE;
	return outer == IP_ECN_ECT_1 && inner == IP_ECN_ECT_0 ? IP_ECN_ECT_1 : inner;
}

/* The inner IP header, and TCP's length by it. */
static __always_inline uint32_t inner_ip(struct __sk_buff *skb, enum direction dir, struct outer *o,
					 struct frame *fr, struct vcc_key *key,
					 struct vcc_segment *s, int32_t *tcp_bytes)
{
	uint8_t *src = dir == FROM_GUEST ? key->guest_addr : key->peer_addr;
	uint8_t *dst = dir == FROM_GUEST ? key->peer_addr : key->guest_addr;
	uint32_t off = o->inner_off, ip_bytes;

	if (o->inner_proto != bpf_htons(ETH_P_IP) && o->inner_proto != bpf_htons(ETH_P_IPV6))
		return COUNT_NOT_IP;
	/* Geneve's options may be longer, but are not in practice. */
	if (off > UINT8_MAX || bpf_skb_load_bytes(skb, off, &o->ip, sizeof(o->ip)))
		return COUNT_MALFORMED;
	fr->l3_off = (uint8_t)off;
	__builtin_memcpy(fr->ip_head, &o->ip, sizeof(fr->ip_head));
	if (o->inner_proto == bpf_htons(ETH_P_IP)) {
		if (o->ip.v4.version != 4 || o->ip.v4.ihl < 5)
			return COUNT_MALFORMED;
		if (o->ip.v4.protocol != IPPROTO_TCP)
			return COUNT_NOT_TCP;
		if (o->ip.v4.frag_off & bpf_htons(IP_MF_OR_OFFSET))
			return COUNT_FRAGMENT;
		fr->ipv6 = false;
		fr->l4_off = (uint16_t)(off + o->ip.v4.ihl * 4);
		s->ip_ecn = o->ip.v4.tos & 3;
		key_v4(src, o->ip.v4.saddr);
		key_v4(dst, o->ip.v4.daddr);
		fr->ip_length = bpf_ntohs(o->ip.v4.tot_len);
		ip_bytes = fr->ip_length;
	} else {
		if (o->ip.v6.version != 6)
			return COUNT_MALFORMED;
		if (o->ip.v6.nexthdr == IPPROTO_FRAGMENT)
			return COUNT_FRAGMENT;
		if (is_extension(o->ip.v6.nexthdr))
			return COUNT_DEEP;
		if (o->ip.v6.nexthdr != IPPROTO_TCP)
			return COUNT_NOT_TCP;
		fr->ipv6 = true;
		fr->l4_off = (uint16_t)(off + sizeof(o->ip.v6));
		s->ip_ecn = (frame_tos(fr) >> 4) & 3;
		__builtin_memcpy(src, &o->ip.v6.saddr, 16);
		__builtin_memcpy(dst, &o->ip.v6.daddr, 16);
		fr->ip_length = bpf_ntohs(o->ip.v6.payload_len);
		ip_bytes = fr->ip_length ? fr->ip_length + sizeof(o->ip.v6) : 0;
	}
	*tcp_bytes = l4_bytes(skb, fr, ip_bytes, off);
	if (*tcp_bytes < TCP_HEADER_BYTES)
		return COUNT_MALFORMED;
	/* A super-segment of UDP holds several packets, and this is only the first. */
	if (skb->gso_size && fr->l4_off + (uint32_t)*tcp_bytes != skb->len)
		return COUNT_MALFORMED;
	return PARSED;
}

/* The usual options of a segment, without a walk. */
static __always_inline bool fast_options(struct __sk_buff *skb, struct outer *o, struct frame *fr,
					 uint32_t length, struct vcc_segment *s)
{
	uint32_t off = fr->l4_off + TCP_HEADER_BYTES;

	if (length == 12) {
		if (bpf_skb_load_bytes(skb, off, o->options, 12))
			return false;
	} else if (length != sizeof(struct pack_layout) ||
		   bpf_skb_load_bytes(skb, off, o->options, sizeof(struct pack_layout))) {
		return false;
	}
	return parse_fast_options(o->options, (void *)o->options + sizeof(o->options), length, s,
				  &fr->options);
}

static __always_inline uint32_t inner_tcp(struct __sk_buff *skb, enum direction dir,
					  struct outer *o, struct frame *fr, struct vcc_key *key,
					  struct vcc_segment *s, uint32_t tcp_bytes)
{
	const struct tcp_header *tcp = &o->tcp;

	if (bpf_skb_load_bytes(skb, fr->l4_off, &o->tcp, sizeof(o->tcp)))
		return COUNT_MALFORMED;
	fr->data_off_flags = bpf_ntohs(tcp->data_off_flags);
	uint32_t header_bytes = tcp_header_bytes(fr);

	if (header_bytes < sizeof(*tcp) || tcp_bytes < header_bytes)
		return COUNT_MALFORMED;
	key->guest_port = dir == FROM_GUEST ? tcp->source : tcp->dest;
	key->peer_port = dir == FROM_GUEST ? tcp->dest : tcp->source;
	read_numbers(s, tcp);
	s->flags = fr->data_off_flags & TCP_FLAGS_MASK;
	s->payload_bytes = tcp_bytes - header_bytes;
	s->seg_bytes = seg_bytes_of(s->payload_bytes, skb->gso_size);
	if (!flags_sane(s->flags))
		return COUNT_BAD_FLAGS;
	uint32_t options_bytes = header_bytes - TCP_HEADER_BYTES;

	/* Without bytes behind the segment, or in the outer packet behind the inner one. */
	o->exact = !is_of_fixed_length(skb) && fr->l4_off + tcp_bytes == skb->len &&
		   outer_end(o) == skb->len &&
		   (!o->udp || o->frame.l4_off + bpf_ntohs(o->header.halves[2]) == skb->len);
	find_option_room(s, header_bytes, o->exact);
	if (!options_bytes || fast_options(skb, o, fr, options_bytes, s))
		return PARSED;
	return parse_options(skb, fr->l4_off, options_bytes, s, &fr->options);
}

/* Does a port take new connections inside this tunnel? */
static __always_inline bool looks_into(uint32_t index, const struct outer *o)
{
	const struct vcc_port *port = port_at(index);

	return port && o && port->inside & o->tunnel >> TUNNEL_KIND_SHIFT;
}

/* A segment inside a tunnel that a port cannot judge does not pass where a rule polices. */
static __always_inline uint32_t unread_inside(struct __sk_buff *skb, const struct outer *o,
					      uint32_t port, uint32_t what)
{
	bool unjudged = what != COUNT_NOT_TCP && what != COUNT_CANNOT_MARK && looks_into(port, o) &&
			port_polices(port) && tagged_holds_tcp(skb, o->inner_off, o->inner_proto);

	return unjudged ? COUNT_UNJUDGED : what;
}

/*
 * Parses the segment inside a frame that is not TCP itself. `fr` and `key` have the offset of the
 * outer IP header and the VLAN. Returns as parse() does, and COUNT_UNJUDGED: it must be dropped.
 */
VCC_APART int parse_inside(struct __sk_buff *skb, uint32_t dir, struct frame *fr,
			   struct vcc_key *key, struct vcc_segment *s)
{
	uint32_t index = skb->cb[CB_PORT];
	const struct vcc_port *port = port_at(index);
	struct outer *o = outer_of_cpu();

	if (!port || !port->inside || !o || !fr || !key || !s)
		return COUNT_NOT_TCP;
	enum found found =
	    find_inner(skb, o, port->inside | port->inside / INSIDE_KNOWN, fr->l3_off);

	/* It may be of any kind that the port takes new connections from. */
	if (found == FOUND_UNREAD && port->inside % INSIDE_KNOWN && port_polices(index))
		return COUNT_UNJUDGED;
	if (found != FOUND_INNER)
		return COUNT_NOT_TCP;
	key->vlan |= KEY_INSIDE;
	*s = (struct vcc_segment){};
	fr->options = (struct option_places){};
	int32_t tcp_bytes;
	uint32_t what = inner_ip(skb, (enum direction)dir, o, fr, key, s, &tcp_bytes);

	if (what == PARSED && dir == TO_GUEST)
		s->ip_ecn = decapsulated_ecn(o->ecn, s->ip_ecn);
	/*
	 * A guest that has copied its ECN field (RFC 6040, 4.1) has the same value twice. If one of
	 * both is ECT or CE, the engine sees that; it writes both.
	 */
	if (what == PARSED && dir == FROM_GUEST)
		s->ip_ecn |= o->ecn;
	if (what == PARSED)
		what = s->ip_ecn == IP_ECN_DROP ? COUNT_CANNOT_MARK
						: inner_tcp(skb, (enum direction)dir, o, fr, key, s,
							    (uint32_t)tcp_bytes);
	return what == PARSED ? PARSED : (int)unread_inside(skb, o, index, what);
}

#endif
