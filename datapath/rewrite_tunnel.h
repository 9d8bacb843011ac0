/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Applies an action to a segment inside a tunnel, and to what is outside of it.
 *
 * The outer checksum hardly changes: over an IPv4 header with its checksum, and over a TCP segment
 * with its own, the sum is the same whatever they say. What is left is what no inner checksum
 * covers: IPv6's fields, and lengths. In a super-segment the kernel has not computed it yet.
 *
 * The kernel's helpers assume that CHECKSUM_PARTIAL is about the field that they are given. Here it
 * may be about the outer one, so the inner one is written directly.
 */
#ifndef VCC_REWRITE_TUNNEL_H
#define VCC_REWRITE_TUNNEL_H

#include "rewrite.h"
#include "tunnel.h"

/* Is the checksum of the header at `l4_off` partial? */
static __always_inline bool is_partial(struct __sk_buff *skb, uint32_t l4_off)
{
	const struct sk_buff *kernels = bpf_cast_to_kern_ctx(skb);
	uint64_t headroom_bytes = (uint64_t)kernels->data - (uint64_t)kernels->head;

	return checksum_state(skb) == CHECKSUM_PARTIAL &&
	       kernels->csum_start == headroom_bytes + l4_off;
}

/* Flags, window and checksum of the inner TCP header. */
static __always_inline long write_inner_tcp(struct __sk_buff *skb, const struct frame *fr,
					    struct flags_window now, uint64_t diff,
					    uint64_t length_diff)
{
	struct {
		struct flags_window now;
		__be16 check;
	} tail = { .now = now };
	uint32_t check_off = fr->l4_off + TCP_CHECK_OFF;
	long err = bpf_skb_load_bytes(skb, check_off, &tail.check, sizeof(tail.check));

	/* The kernel completes a partial sum over TCP's fields. */
	tail.check = is_partial(skb, fr->l4_off) ? sum_fold16(tail.check + length_diff)
						 : sum_mend(tail.check, diff + length_diff);
	return err |
	       bpf_skb_store_bytes(skb, fr->l4_off + 12, &tail, sizeof(tail), BPF_F_RECOMPUTE_CSUM);
}

/*
 * The outer checksum, after a change of the pseudo-header that it begins with, and of what it
 * covers and the inner ones do not make up for. Of a super-segment it is partial, too.
 */
static __always_inline long mend_outer(struct __sk_buff *skb, const struct outer *o,
				       uint64_t pseudo_diff, uint64_t diff)
{
	bool partial = skb->gso_size || is_partial(skb, o->frame.l4_off);
	__be16 check;

	if (!o->check_off)
		return 0;
	long err = bpf_skb_load_bytes(skb, o->check_off, &check, sizeof(check));

	check = partial ? sum_fold16(check + pseudo_diff) : sum_mend(check, pseudo_diff + diff);
	/* 0 would say that there is none (RFC 768). */
	if (o->udp && !check)
		check = 0xffff;
	return err |
	       bpf_skb_store_bytes(skb, o->check_off, &check, sizeof(check), BPF_F_RECOMPUTE_CSUM);
}

/*
 * What is outside of the inner TCP header. From the guest, its encapsulator has copied the inner
 * ECN field (RFC 6040, 4.1), and to the guest, its decapsulator leaves equal fields as they are
 * (4.2): both become the engine's value.
 */
static __always_inline long write_around(struct __sk_buff *skb, const struct frame *fr,
					 const struct outer *o, const struct vcc_segment *s,
					 const struct vcc_action *a, int32_t grown_bytes)
{
	uint8_t inner_ecn = (fr->ipv6 ? frame_tos(fr) >> 4 : frame_tos(fr)) & 3, ecn = o->ecn;
	__be16 udp_length = o->header.halves[2];
	__be16 udp_length_now = bpf_htons((uint16_t)(bpf_ntohs(udp_length) + grown_bytes));
	uint64_t pseudo_diff = 0, diff = 0;

	if (a->ip_ecn != s->ip_ecn)
		inner_ecn = ecn = a->ip_ecn;
	uint16_t ip_length = (uint16_t)(fr->ip_length + grown_bytes);
	long err = rewrite_ip(skb, fr, inner_ecn, ip_length);

	err |= rewrite_ip(skb, &o->frame, ecn, (uint16_t)(o->frame.ip_length + grown_bytes));
	if (fr->ipv6) {
		__be16 from = (__be16)fr->ip_head[0];
		__be16 to = (from & ~bpf_htons(0x30)) | bpf_htons((uint16_t)(inner_ecn << 4));

		diff += sum_diff(from, to);
		diff += sum_diff(bpf_htons(fr->ip_length), bpf_htons(ip_length));
	}
	if (grown_bytes) {
		uint32_t tcp_bytes = tcp_header_bytes(fr);

		/* A TCP segment sums up to the opposite of its pseudo-header. */
		diff += sum_diff(bpf_htons((uint16_t)(tcp_bytes + grown_bytes)),
				 bpf_htons((uint16_t)tcp_bytes));
		if (o->udp) {
			pseudo_diff = sum_diff(udp_length, udp_length_now);
			diff += pseudo_diff;
			err |= bpf_skb_store_bytes(skb, o->frame.l4_off + 4, &udp_length_now,
						   sizeof(udp_length_now), BPF_F_RECOMPUTE_CSUM);
		}
	}
	return diff ? err | mend_outer(skb, o, pseudo_diff, diff) : err;
}

VCC_APART int rewrite_inside(struct __sk_buff *skb, const struct frame *fr,
			     const struct vcc_segment *s, const struct vcc_action *a, uint32_t dir)
{
	const struct outer *o = outer_of_cpu();
	struct resize resize = {};
	long err = 0;

	if (!fr || !s || !a || !o)
		return -1;
	if (changes_options(fr, s, a)) {
		/* Only from the guest nothing is cut off. */
		err |= change_options(skb, o->exact ? (enum direction)dir : FROM_GUEST, fr, s, a,
				      &resize);
		if (err)
			return -1;
		err |= change_values(skb, fr, s, a, &resize);
	}
	if (changes_options(fr, s, a) || a->flags != s->flags || a->window != s->window) {
		struct flags_window now = flags_window_now(fr, a, resize.words);
		uint64_t length_diff = sum_diff(bpf_htons(tcp_header_bytes(fr)),
						bpf_htons(tcp_header_bytes(fr) + resize.words * 4));

		err |= write_inner_tcp(skb, fr, now, resize.diff + flags_window_diff(fr, s, now),
				       length_diff);
	}
	if (resize.words || a->ip_ecn != s->ip_ecn)
		err |= write_around(skb, fr, o, s, a, resize.words * 4);
	return err ? -1 : 0;
}

#endif
