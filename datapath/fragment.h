/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first fragment of a guest's segment: it passes unread, and its flow learns of it. */
#ifndef VCC_FRAGMENT_H
#define VCC_FRAGMENT_H

#include "policy.h"
#include "flow_table.h"
#include "tunnel.h"
#include "unparsed_tcp.h"
#include "wheel.h"
#include "program_state.h"
#include "engine.h"

#define IP_OFFSET 0x1fff /* of a fragment, in 8 bytes (RFC 791, 3.1) */

union fragment_heads {
	struct iphdr v4;
	uint8_t extension[8];
	struct tcp_header tcp;
};

/*
 * The offset of TCP behind IPv4's header, and its bytes in the first fragment. 0: it is a later
 * one.
 */
static __always_inline uint32_t behind_v4(struct __sk_buff *skb, struct work *w,
					  union fragment_heads *h, uint32_t *bytes)
{
	uint32_t off = w->frame.l3_off;

	if (bpf_skb_load_bytes(skb, off, &h->v4, sizeof(h->v4)) ||
	    (h->v4.frag_off & bpf_htons(IP_OFFSET)))
		return 0;
	key_v4(w->key.guest_addr, h->v4.saddr);
	key_v4(w->key.peer_addr, h->v4.daddr);
	*bytes = bpf_ntohs(h->v4.tot_len) - h->v4.ihl * 4;
	return off + h->v4.ihl * 4;
}

/* The same behind IPv6's fragment header, which parse() has found; the key has the addresses. */
static __always_inline uint32_t behind_v6(struct __sk_buff *skb, const struct work *w,
					  union fragment_heads *h, uint32_t *bytes)
{
	uint32_t off = w->frame.l4_off;

	if (bpf_skb_load_bytes(skb, off, h->extension, sizeof(h->extension)) ||
	    h->extension[0] != IPPROTO_TCP ||
	    ((h->extension[2] << 8 | h->extension[3]) & IPV6_FRAGMENT_OFFSET))
		return 0;
	off += sizeof(h->extension);
	*bytes = w->frame.ip_length + sizeof(struct ipv6hdr) - (off - w->frame.l3_off);
	return off;
}

/* Reads what the first fragment has of a segment, options aside. Not inside a tunnel. */
VCC_APART int parse_first_fragment(struct __sk_buff *skb, struct work *w)
{
	union fragment_heads h;
	uint32_t bytes = 0;

	if (!w || is_inside(&w->frame))
		return false;
	uint32_t off =
	    w->frame.ipv6 ? behind_v6(skb, w, &h, &bytes) : behind_v4(skb, w, &h, &bytes);

	/* A length by a wrong IP header may be negative. */
	if (!off || bytes > skb->len || off + bytes > skb->len ||
	    bpf_skb_load_bytes(skb, off, &h.tcp, sizeof(h.tcp)))
		return false;
	const struct tcp_header *tcp = &h.tcp;
	uint16_t data_off_flags = bpf_ntohs(tcp->data_off_flags);
	uint32_t header_bytes = data_offset_bytes(data_off_flags);
	struct vcc_segment *s = &w->segment;

	if (header_bytes < sizeof(*tcp) || bytes < header_bytes)
		return false;
	w->key.guest_port = tcp->source;
	w->key.peer_port = tcp->dest;
	read_numbers(s, tcp);
	s->flags = data_off_flags & TCP_FLAGS_MASK;
	s->payload_bytes = bytes - header_bytes;
	s->now_us = now_us();
	return flags_sane(s->flags);
}

/* A fragment of a guest passes. A flow that another CPU holds learns of the next one. */
static __noinline void fragment_from_guest(struct __sk_buff *skb, struct work *w)
{
	if (!parse_first_fragment(skb, w))
		return;
	uint64_t tag = flow_tag_apart(&w->key);
	struct vcc_port *port = port_at(w->key.port);
	struct vcc_entry *e = flow_of(tag);

	if (!port || !e || hold(e, &w->key, tag) != LOCK_FREE)
		return;
	const struct vcc_params *p = treatment(port, &e->flow, &w->key, false);

	if (!p) {
		flow_forget(e, &w->key);
		return;
	}
	if (vcc_fragment_from_guest(&e->flow, p, &w->segment))
		count(w->key.port, COUNT_IN_FRAGMENTS);
	flow_unlock(&e->lock, false);
}

#endif
