/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP that parse.h cannot read but an end may accept: fragments, deep extension headers, frames
 * with several VLAN tags. If any rule polices the port, such TCP is dropped in both directions,
 * because a guest could send all its data that way to escape its window. The connection is unknown,
 * so its own rule cannot decide.
 */
#ifndef VCC_UNPARSED_TCP_H
#define VCC_UNPARSED_TCP_H

#include "parse.h"
#include "policy.h"

/* Beyond these limits, the payload is assumed to be TCP. */
#define TAGS_MAX	 4
#define IPV6_HEADERS_MAX 16

#define IPV6_FRAGMENT_OFFSET 0xfff8 /* RFC 8200, 4.5 */

/*
 * What follows an IPv6 header that is none of TCP: its kind, and its bytes << 8 before that; TCP
 * also behind a later fragment of it. Negative: no TCP. Out of line, or the verifier would follow
 * each chain of headers.
 */
VCC_APART int ipv6_follows(struct __sk_buff *skb, uint32_t off, uint32_t next)
{
	uint8_t head[4];

	if (next != IPPROTO_FRAGMENT && !is_extension((uint8_t)next))
		return -1;
	if (bpf_skb_load_bytes(skb, off, head, sizeof(head)))
		return -1;
	if (next != IPPROTO_FRAGMENT)
		return (head[1] + 1) * 8 << 8 | head[0];
	/* A later fragment of deeper TCP may pass: it is useless without the first. */
	if (((head[2] << 8 | head[3]) & IPV6_FRAGMENT_OFFSET) && head[0] != IPPROTO_TCP)
		return -1;
	return 8 << 8 | head[0];
}

/* Does an IPv6 packet hold TCP, or the fragment of a TCP segment? */
static __always_inline bool ipv6_holds_tcp(struct __sk_buff *skb, uint32_t off)
{
	uint8_t next;

	if (bpf_skb_load_bytes(skb, off + __builtin_offsetof(struct ipv6hdr, nexthdr), &next, 1))
		return false;
	off += sizeof(struct ipv6hdr);
	for (int i = 0; i < IPV6_HEADERS_MAX; i++) {
		if (next == IPPROTO_TCP)
			return true;
		int follows = ipv6_follows(skb, off, next);

		if (follows < 0)
			return false;
		off += (uint32_t)follows >> 8;
		next = (uint8_t)follows;
	}
	return true;
}

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* May a packet at any offset hold TCP, or a fragment of it? */
VCC_APART int ip_holds_tcp(struct __sk_buff *skb, uint32_t off, uint32_t proto)
{
	uint8_t ipv4_proto;

	if (proto == bpf_htons(ETH_P_IPV6))
		return ipv6_holds_tcp(skb, off);
	if (proto != bpf_htons(ETH_P_IP))
		return false;
	off += __builtin_offsetof(struct iphdr, protocol);
	return !bpf_skb_load_bytes(skb, off, &ipv4_proto, 1) && ipv4_proto == IPPROTO_TCP;
}

/* The same for protocol `proto` at an offset: it may be behind tags. */
VCC_APART int tagged_holds_tcp(struct __sk_buff *skb, uint32_t off, uint32_t proto)
{
	__be16 next = (__be16)proto;

	for (int i = 0; i < TAGS_MAX && is_tag(next); i++) {
		off += __builtin_offsetof(struct vlan_tag, proto);
		if (bpf_skb_load_bytes(skb, off, &next, sizeof(next)))
			return false;
		off += sizeof(next);
	}
	return is_tag(next) || ip_holds_tcp(skb, off, next);
}

/* May the frame hold TCP, or a fragment of it? */
static __always_inline bool holds_tcp(struct __sk_buff *skb)
{
	uint32_t off = __builtin_offsetof(struct ethhdr, h_proto);
	__be16 proto;

	return !bpf_skb_load_bytes(skb, off, &proto, sizeof(proto)) &&
	       tagged_holds_tcp(skb, off + sizeof(proto), proto);
}

static __always_inline bool polices(const struct vcc_params *p)
{
	return p && p->police && mode_changes(p);
}

/* Does any rule police that may match a connection of this port? */
VCC_APART int port_polices(uint32_t index)
{
	const struct vcc_port *port = port_at(index);
	uint32_t zero = 0;

	if (!port)
		return false;
	if (!port->by_policy)
		return polices(&port->params);
	const struct vcc_policy *now = bpf_map_lookup_elem(&policy, &zero);

	if (!now)
		return false;
	uint32_t edition = now->epoch % EDITIONS;
	uint32_t tenant = edition * PORTS_MAX + index % PORTS_MAX;
	const struct vcc_rule_set *ours = bpf_map_lookup_elem(&tenants, &tenant);
	const struct vcc_rule_set *policing = rule_set(edition, now->polices[edition & 1]);
	uint64_t both = 0;

	if (!ours || !policing)
		return false;
	for (int i = 0; i < RULE_SET_WORDS; i++)
		both |= ours->words[i] & policing->words[i];
	return !!both;
}

/* Does a frame pass that could not be parsed, for the reason `what`? */
static __always_inline bool passes_unread(struct __sk_buff *skb, uint32_t port, uint32_t what)
{
	bool unjudged = what == COUNT_UNJUDGED ||
			(what != COUNT_NOT_TCP && port_polices(port) && holds_tcp(skb));

	count(port, unjudged ? COUNT_UNJUDGED : what);
	return !unjudged;
}

/*
 * Does a segment of a known connection pass untranslated, for the reason `what`: its flow is just
 * being deleted, or it is in another tunnel?
 */
static __noinline bool passes_known(const struct vcc_entry *e, const struct vcc_port *port,
				    uint32_t index, uint32_t what)
{
	bool unjudged = polices(last_treatment(port, &e->flow));

	count(index, unjudged ? COUNT_UNJUDGED : what);
	return !unjudged;
}

#endif
