/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* FACKs inside a tunnel: the clone keeps what is outside of the segment (fack.h). */
#ifndef VCC_FACK_TUNNEL_H
#define VCC_FACK_TUNNEL_H

#include "fack.h"
#include "rewrite_tunnel.h"

/* The sum of the outer pseudo-header. The address fields of both IP headers are in a row. */
static __always_inline uint64_t sum_outer_pseudo(struct outer *o, uint32_t udp_bytes)
{
	int64_t sum = o->frame.ipv6 ? bpf_csum_diff(0, 0, (__be32 *)&o->ip.v6.saddr, 32, 0)
				    : bpf_csum_diff(0, 0, (__be32 *)&o->ip.v4.saddr, 8, 0);

	return (uint64_t)sum + bpf_htons(IPPROTO_UDP) + bpf_htons((uint16_t)udp_bytes);
}

/*
 * The outer checksum from scratch: up to the inner TCP header, and from there on the opposite of
 * its pseudo-header, whether its checksum is full or will be.
 */
static __always_inline long sum_outer(struct __sk_buff *skb, struct outer *o,
				      const struct frame *fr, uint64_t inner_pseudo,
				      uint32_t udp_bytes)
{
	uint32_t l4_off = o->frame.l4_off;
	uint64_t bytes = (uint64_t)fr->l4_off - l4_off;
	__be16 check = 0;
	uint64_t sum = 0;

	if (bpf_skb_load_bytes(skb, o->frame.l3_off, &o->ip, sizeof(o->ip)) ||
	    bpf_skb_store_bytes(skb, o->check_off, &check, sizeof(check), 0))
		return -1;
	if (o->udp)
		sum = sum_outer_pseudo(o, udp_bytes);
	if (o->udp && is_partial(skb, l4_off)) {
		check = sum_fold16(sum);
		return bpf_skb_store_bytes(skb, o->check_off, &check, sizeof(check), 0);
	}
	if (!is_bounded(&bytes, OUTER_COVERED_MAX_BYTES))
		return -1;
	__builtin_memset(o->covered, 0, sizeof(o->covered));
	if (bpf_skb_load_bytes(skb, l4_off, o->covered, bytes))
		return -1;
	int64_t covered = bpf_csum_diff(0, 0, (__be32 *)o->covered, sizeof(o->covered), 0);

	sum += (uint32_t)covered + (uint64_t)(uint16_t)~sum_fold16(inner_pseudo);
	check = (__be16)~sum_fold16(sum);
	if (o->udp && !check)
		check = 0xffff;
	return bpf_skb_store_bytes(skb, o->check_off, &check, sizeof(check), 0);
}

/* fack_finish() for a segment inside a tunnel. */
VCC_APART int fack_finish_inside(struct __sk_buff *skb, const struct frame *fr,
				 const struct vcc_key *key, const struct vcc_segment *s,
				 const struct vcc_feedback *feedback)
{
	struct outer *o = outer_of_cpu();

	if (!fr || !key || !s || !feedback || !o)
		return -1;
	struct fack_header header = fack_header_of(key, s, feedback);
	uint32_t l4_off = fr->l4_off, end = l4_off + FACK_TCP_BYTES;
	uint8_t ip_ecn = s->ip_ecn; /* the FACK's */
	bool partial = is_partial(skb, l4_off);
	long err = bpf_skb_change_tail(skb, l4_off + TCP_HEADER_BYTES, 0);

	err |= bpf_skb_change_tail(skb, end, 0);
	if (err)
		return -1;
	uint64_t pseudo = sum_fold((uint64_t)sum_pseudo(key, fr->ipv6));
	int64_t sum = bpf_csum_diff(0, 0, (__be32 *)&header, sizeof(header), (__u32)pseudo);

	header.check = partial ? sum_fold16(pseudo) : (__be16)~sum_fold16((uint32_t)sum);
	err |= bpf_skb_store_bytes(skb, l4_off, &header, sizeof(header), 0);
	err |= rewrite_ip(skb, fr, ip_ecn,
			  (uint16_t)(end - fr->l3_off - (fr->ipv6 ? sizeof(struct ipv6hdr) : 0)));
	err |= rewrite_ip(
	    skb, &o->frame, ip_ecn,
	    (uint16_t)(end - o->frame.l3_off - (o->frame.ipv6 ? sizeof(struct ipv6hdr) : 0)));
	uint32_t udp_bytes = end - o->frame.l4_off;
	__be16 udp_length = bpf_htons((uint16_t)udp_bytes);

	if (o->udp)
		err |= bpf_skb_store_bytes(skb, o->frame.l4_off + 4, &udp_length,
					   sizeof(udp_length), 0);
	if (o->check_off)
		err |= sum_outer(skb, o, fr, pseudo, udp_bytes);
	return err ? -1 : 0;
}

#endif
