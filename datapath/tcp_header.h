/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses a TCP header without its options, for both shells: all fields of the segment that it
 * determines, and whether it is well-formed.
 */
#ifndef VCC_TCP_HEADER_H
#define VCC_TCP_HEADER_H

#include "abi.h"
#include "byte_order.h"

#define PARSED		  COUNT_MAX /* the frame is TCP and well-formed */
#define TCP_HEADER_BYTES  20
#define OPTIONS_MAX_BYTES 40
/* The flags in the word with the data offset, AE included (RFC 9768, 3.1). */
#define TCP_FLAGS_MASK 0x1ff

/* RFC 9293, 3.1; in network byte order. */
struct tcp_header {
	uint16_t source, dest;
	uint32_t seq, ack;
	uint16_t data_off_flags, window, check, urgent;
};

_Static_assert(sizeof(struct tcp_header) == TCP_HEADER_BYTES, "a TCP header without options");

/*
 * No TCP sends or accepts SYN with RST, or a segment without SYN, ACK and RST. SYN with FIN counts
 * as sane, because some accept it as a SYN: Linux in SYN-SENT, others in LISTEN.
 */
VCC_INLINE bool flags_sane(uint16_t flags)
{
	if (flags & TCP_SYN)
		return !(flags & TCP_RST);
	return flags & (TCP_ACK | TCP_RST);
}

/* The header's size by `data_off_flags`, which is in host byte order. */
VCC_INLINE uint32_t data_offset_bytes(uint16_t data_off_flags)
{
	return (uint32_t)(data_off_flags >> 12) * 4;
}

VCC_INLINE void read_numbers(struct vcc_segment *s, const struct tcp_header *tcp)
{
	s->seq = vcc_be32(tcp->seq);
	s->ack = vcc_be32(tcp->ack);
	s->window = vcc_be16(tcp->window);
}

/* The segments of a super-segment. A single one's payload may be smaller than its gso_size. */
VCC_INLINE uint32_t seg_bytes_of(uint32_t payload_bytes, uint32_t gso_size)
{
	return payload_bytes > gso_size ? gso_size : 0;
}

/*
 * Options are appended at the frame's end, so only a segment without payload has room. A SYN may
 * carry payload (RFC 7413).
 */
VCC_INLINE void find_option_room(struct vcc_segment *s, uint32_t header_bytes, bool can_grow)
{
	if (!s->payload_bytes && can_grow)
		s->option_room_bytes =
		    (uint8_t)(TCP_HEADER_BYTES + OPTIONS_MAX_BYTES - header_bytes);
}

#endif
