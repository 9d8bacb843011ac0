/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds TCP that parse.h cannot read but an end may accept: fragments, deep extension headers,
 * frames with several VLAN tags. A policed guest could send all its data that way to escape its
 * window. Both shells compile this file.
 */
#ifndef VCC_HOLDS_TCP_H
#define VCC_HOLDS_TCP_H

#include "byte_order.h"
#include "frame_bytes.h"
#include "protocols.h"

/* Beyond these limits, the payload is assumed to be TCP. */
#define TAGS_MAX	 4
#define IPV6_HEADERS_MAX 16

/*
 * What follows an IPv6 header that is none of TCP: its kind, and its bytes << 8 before that; TCP
 * also behind a later fragment of it. Negative: no TCP. Out of line, or the verifier would follow
 * each chain of headers.
 */
VCC_APART int ipv6_follows(frame_bytes *frame, uint32_t off, uint32_t next)
{
	uint8_t head[4];

	if (next != PROTOCOL_FRAGMENT && !is_extension((uint8_t)next))
		return -1;
	if (load_bytes(frame, off, head, sizeof(head)))
		return -1;
	if (next != PROTOCOL_FRAGMENT)
		return (head[1] + 1) * 8 << 8 | head[0];
	/* A later fragment of deeper TCP may pass: it is useless without the first. */
	if (((head[2] << 8 | head[3]) & IPV6_FRAGMENT_OFFSET) && head[0] != PROTOCOL_TCP)
		return -1;
	return 8 << 8 | head[0];
}

/* Does an IPv6 packet hold TCP, or the fragment of a TCP segment? */
VCC_INLINE bool ipv6_holds_tcp(frame_bytes *frame, uint32_t off)
{
	uint8_t next;

	if (load_bytes(frame, off + IPV6_NEXT_AT, &next, 1))
		return false;
	off += IPV6_BYTES;
	for (int i = 0; i < IPV6_HEADERS_MAX; i++) {
		if (next == PROTOCOL_TCP)
			return true;
		int follows = ipv6_follows(frame, off, next);

		if (follows < 0)
			return false;
		off += (uint32_t)follows >> 8;
		next = (uint8_t)follows;
	}
	return true;
}

VCC_INLINE bool is_tag(uint16_t proto)
{
	return proto == vcc_be16(ETHERTYPE_VLAN) || proto == vcc_be16(ETHERTYPE_QINQ);
}

/* May a packet at any offset hold TCP, or a fragment of it? */
VCC_APART int ip_holds_tcp(frame_bytes *frame, uint32_t off, uint32_t proto)
{
	uint8_t ipv4_proto;

	if (proto == vcc_be16(ETHERTYPE_IPV6))
		return ipv6_holds_tcp(frame, off);
	if (proto != vcc_be16(ETHERTYPE_IPV4))
		return false;
	off += IPV4_PROTOCOL_AT;
	return !load_bytes(frame, off, &ipv4_proto, 1) && ipv4_proto == PROTOCOL_TCP;
}

/* The same for protocol `proto` at an offset: it may be behind tags. */
VCC_APART int tagged_holds_tcp(frame_bytes *frame, uint32_t off, uint32_t proto)
{
	uint16_t next = (uint16_t)proto;

	for (int i = 0; i < TAGS_MAX && is_tag(next); i++) {
		off += TAG_ETHERTYPE_AT;
		if (load_bytes(frame, off, &next, sizeof(next)))
			return false;
		off += sizeof(next);
	}
	return is_tag(next) || ip_holds_tcp(frame, off, next);
}

/* May the frame hold TCP, or a fragment of it? */
VCC_INLINE bool holds_tcp(frame_bytes *frame)
{
	uint32_t off = ETHERTYPE_AT;
	uint16_t proto;

	return !load_bytes(frame, off, &proto, sizeof(proto)) &&
	       tagged_holds_tcp(frame, off + sizeof(proto), proto);
}

#endif
