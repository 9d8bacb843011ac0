/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends FACKs. A segment without room for the option is cloned and redirected to its own port with
 * FACK_MARK, where the program trims it to its headers.
 */
#ifndef VCC_FACK_H
#define VCC_FACK_H

#include "wire.h"
#include "engine.h"

/* A TCP header with the FACK option only. */
#define FACK_TCP_BYTES (TCP_HEADER_BYTES + OPT_FACK_BYTES)

/* First pass: redirects a clone of the segment. */
static __always_inline long fack_send(struct __sk_buff *skb)
{
	uint32_t mark = skb->mark;

	skb->mark = FACK_MARK;
	long err = bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);

	skb->mark = mark;
	return err;
}

/* A FACK's TCP header, without its checksum: the segment's own, as an ACK of one byte less. */
struct fack_header {
	__be16 source, dest;
	__be32 seq, ack;
	__be16 flags, window, check, urgent;
	struct our_option option;
};

_Static_assert(sizeof(struct fack_header) == FACK_TCP_BYTES, "a TCP header");

static __always_inline struct fack_header fack_header_of(const struct vcc_key *key,
							 const struct vcc_segment *s,
							 const struct vcc_feedback *feedback)
{
	return (struct fack_header){
		.source = key->guest_port,
		.dest = key->peer_port,
		.seq = bpf_htonl(s->seq),
		.ack = bpf_htonl(s->ack - 1),
		.flags = bpf_htons(FACK_TCP_BYTES / 4 << 12 | TCP_ACK),
		.window = bpf_htons(s->window),
		.option = option_fack(feedback),
	};
}

/* The sum of the pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1). */
static __always_inline int64_t sum_pseudo(const struct vcc_key *key, bool ipv6)
{
	/* Skip the prefix of an IPv4-mapped address. */
	uint32_t skip = ipv6 ? 0 : 12, bytes = ipv6 ? 16 : 4;
	int64_t sum = bpf_csum_diff(0, 0, (__be32 *)(key->guest_addr + skip), bytes, 0);

	sum = bpf_csum_diff(0, 0, (__be32 *)(key->peer_addr + skip), bytes, (__u32)sum);
	return sum + bpf_htons(IPPROTO_TCP) + bpf_htons(FACK_TCP_BYTES);
}

/*
 * Second pass: turns the clone into an ACK of one byte less with the counters. The checksum is
 * computed from scratch and applied as a difference from the present one, because only the kernel
 * knows whether that is full or partial. Returns 0, or an error: the frame must be dropped.
 */
static __always_inline long fack_finish(struct __sk_buff *skb, const struct frame *fr,
					const struct vcc_key *key, const struct vcc_segment *s,
					const struct vcc_feedback *feedback, uint8_t ip_ecn)
{
	uint32_t tcp_bytes = s->payload_bytes + tcp_header_bytes(fr);
	uint16_t length = FACK_TCP_BYTES;
	struct fack_header header = fack_header_of(key, s, feedback);
	/* Trim the payload first; then make room for the option. */
	long err = bpf_skb_change_tail(skb, fr->l4_off + TCP_HEADER_BYTES, 0);

	err |= bpf_skb_change_tail(skb, fr->l4_off + FACK_TCP_BYTES, 0);
	/* A 32-bit length, because of BIG TCP (RFC 2675, 4). */
	err |= bpf_l4_csum_replace(skb, fr->l4_off + TCP_CHECK_OFF, bpf_htonl(tcp_bytes),
				   bpf_htonl(length), BPF_F_PSEUDO_HDR | sizeof(tcp_bytes));
	if (err)
		return err;
	__be16 check;
	int64_t sum = sum_pseudo(key, fr->ipv6);

	sum = bpf_csum_diff(0, 0, (__be32 *)&header, sizeof(header), (__u32)sum_fold(sum));
	err |= bpf_skb_load_bytes(skb, fr->l4_off + TCP_CHECK_OFF, &check, sizeof(check));
	header.check = check;
	err |= bpf_skb_store_bytes(skb, fr->l4_off, &header, sizeof(header), 0);
	err |= bpf_l4_csum_replace(skb, fr->l4_off + TCP_CHECK_OFF, 0, sum_fold(sum + check), 0);

	uint32_t ip_header_bytes =
	    fr->ipv6 ? fr->l4_off - fr->l3_off - 40 : fr->l4_off - fr->l3_off;

	return err | rewrite_ip(skb, fr, ip_ecn, (uint16_t)(ip_header_bytes + length));
}

#endif
