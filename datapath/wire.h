/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by rewrite.h and fack.h: checksum arithmetic and the IP header. */
#ifndef VCC_WIRE_H
#define VCC_WIRE_H

#include "our_options.h"
#include "parse.h"

#define TCP_CHECK_OFF 16

/* The difference that replacing a 16-bit word makes to a one's complement sum (RFC 1624). */
static __always_inline uint64_t sum_diff(__be16 from, __be16 to)
{
	return (uint16_t)~from + (uint64_t)to;
}

/* Folds a sum of words to the 32 bits that the kernel's helpers take. */
static __always_inline uint64_t sum_fold(uint64_t sum)
{
	return (sum & 0xffffffff) + (sum >> 32);
}

/* Folds a sum of less than 2^40 to 16 bits. */
static __always_inline __be16 sum_fold16(uint64_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__be16)(sum + (sum >> 16));
}

/* A checksum after a change of what it covers (RFC 1624, equation 3). */
static __always_inline __be16 sum_mend(__be16 check, uint64_t diff)
{
	return (__be16)~sum_fold16((uint16_t)~check + diff);
}

static __always_inline uint64_t sum_words(const __be16 *words, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

static __always_inline uint64_t sum_removed(const __be16 *words, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += (uint16_t)~words[i];
	return sum;
}

/* IPv4's first 12 bytes. */
struct ipv4_head {
	__be16 version_tos, length;
	uint8_t between[6];
	__be16 check;
};

static __always_inline void ipv4_change(struct ipv4_head *head, uint8_t ip_ecn, uint16_t ip_length)
{
	__be16 version_tos = head->version_tos, length = bpf_htons(ip_length);

	head->version_tos = (version_tos & bpf_htons(0xfffc)) | bpf_htons(ip_ecn);
	head->check = sum_mend(head->check, sum_diff(version_tos, head->version_tos) +
						sum_diff(head->length, length));
	head->length = length;
}

/* Rewrites the IP header's ECN field and length. */
static __always_inline long rewrite_ip(struct __sk_buff *skb, const struct frame *fr,
				       uint8_t ip_ecn, uint16_t ip_length)
{
	if (fr->ipv6) {
		/* Bits 4 and 5 of byte 1. No header checksum, but CHECKSUM_COMPLETE covers it. */
		uint8_t byte = (frame_tos(fr) & ~0x30) | ip_ecn << 4;
		__be16 length = bpf_htons(ip_length);
		long err = bpf_skb_store_bytes(skb, fr->l3_off + 1, &byte, 1, BPF_F_RECOMPUTE_CSUM);

		if (ip_length != fr->ip_length)
			err |= bpf_skb_store_bytes(skb, fr->l3_off + 4, &length, 2,
						   BPF_F_RECOMPUTE_CSUM);
		return err;
	}
	/* A single store: a helper call costs as much as the arithmetic. */
	struct ipv4_head head;

	_Static_assert(sizeof(head) == sizeof(fr->ip_head), "the first 12 bytes");
	__builtin_memcpy(&head, fr->ip_head, sizeof(head));
	ipv4_change(&head, ip_ecn, ip_length);
	return bpf_skb_store_bytes(skb, fr->l3_off, &head, sizeof(head), 0);
}

#endif
