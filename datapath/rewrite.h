/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Carry an action out on the frame. Checksums by the kernel's helpers, which know whether the
 * checksum is full, still partial (the device will complete it) or taken over a super-segment.
 */
#ifndef VCC_REWRITE_H
#define VCC_REWRITE_H

#include "parse.h"

#define TCP_CHECK_OFF 16

/* What replacing one 16-bit word adds to a one's complement sum (RFC 1624). */
static __always_inline uint64_t sum_diff(__be16 from, __be16 to)
{
	return (uint16_t)~from + (uint64_t)to;
}

/* Replace a byte at any offset of the TCP header; gives back what its word adds to the sum. */
static __always_inline long replace_byte(struct __sk_buff *skb, uint32_t l4_off, uint32_t at,
					 uint8_t to, uint64_t *diff)
{
	uint8_t word[2];
	uint32_t even = at & ~1u;

	if (bpf_skb_load_bytes(skb, l4_off + even, word, 2))
		return -1;
	__be16 before = *(__be16 *)word;

	if (at & 1)
		word[1] = to;
	else
		word[0] = to;
	*diff += sum_diff(before, *(__be16 *)word);
	return bpf_skb_store_bytes(skb, l4_off + even, word, 2, 0);
}

struct flags_window {
	__be16 flags, window;
};

/*
 * Writing through the packet's pointer saves a helper call, but makes the kernel unshare every
 * cloned segment before the program starts, translated or not. What comes from a guest is cloned
 * as a rule (its TCP keeps a copy to send again); what goes to it is not.
 */
static __always_inline long write_flags_window(struct __sk_buff *skb, enum direction dir,
					       uint32_t off, struct flags_window now)
{
	if (dir == FROM_GUEST)
		return bpf_skb_store_bytes(skb, off, &now, sizeof(now), 0);
	struct flags_window *field = (void *)(long)skb->data + off;

	if ((void *)(field + 1) > (void *)(long)skb->data_end)
		return -1;
	*field = now;
	return 0;
}

static __always_inline long rewrite_tcp(struct __sk_buff *skb, enum direction dir,
					const struct frame *fr, const struct vcc_segment *s,
					const struct vcc_action *a)
{
	uint64_t diff = 0;
	long err = 0;

	if (a->flags != s->flags || a->window != s->window) {
		struct flags_window now = {
			.flags = bpf_htons((fr->data_off_flags & 0xfe00) | a->flags),
			.window = bpf_htons(a->window),
		};

		diff += sum_diff(bpf_htons(fr->data_off_flags), now.flags);
		diff += sum_diff(bpf_htons(s->window), now.window);
		err |= write_flags_window(skb, dir, fr->l4_off + 12, now);
	}
	if (fr->mss_off && a->mss != s->mss) {
		err |= replace_byte(skb, fr->l4_off, fr->mss_off, a->mss >> 8, &diff);
		err |= replace_byte(skb, fr->l4_off, fr->mss_off + 1, a->mss & 0xff, &diff);
	}
	if (fr->wscale_off && a->wscale != s->wscale)
		err |= replace_byte(skb, fr->l4_off, fr->wscale_off, a->wscale, &diff);
	if (!diff)
		return err;
	diff = (diff & 0xffffffff) + (diff >> 32);
	return err | bpf_l4_csum_replace(skb, fr->l4_off + TCP_CHECK_OFF, 0, diff, 0);
}

static __always_inline long rewrite_ecn(struct __sk_buff *skb, const struct frame *fr,
					const struct vcc_action *a)
{
	if (fr->ipv6) {
		/* Bits 4 and 5 of byte 1. No header checksum, but the device may have summed all.
		 */
		uint8_t byte = (fr->tos & ~0x30) | a->ip_ecn << 4;

		return bpf_skb_store_bytes(skb, fr->l3_off + 1, &byte, 1, BPF_F_RECOMPUTE_CSUM);
	}
	/* TOS and checksum in one store: each helper call costs as much as the arithmetic. */
	struct {
		__be16 version_tos;
		uint8_t between[8];
		__be16 check;
	} head;

	_Static_assert(sizeof(head) == sizeof(fr->ipv4_head), "the first 12 bytes");
	__builtin_memcpy(&head, fr->ipv4_head, sizeof(head));
	__be16 before = head.version_tos;

	((uint8_t *)&head)[1] = (fr->tos & ~3) | a->ip_ecn;
	uint32_t sum = (uint16_t)~head.check + (uint32_t)sum_diff(before, head.version_tos);

	sum = (sum & 0xffff) + (sum >> 16);
	head.check = (__be16) ~(sum + (sum >> 16));
	return bpf_skb_store_bytes(skb, fr->l3_off, &head, sizeof(head), 0);
}

static __always_inline long rewrite(struct __sk_buff *skb, enum direction dir,
				    const struct frame *fr, const struct vcc_segment *s,
				    const struct vcc_action *a)
{
	long err = rewrite_tcp(skb, dir, fr, s, a);

	if (a->ip_ecn != s->ip_ecn)
		err |= rewrite_ecn(skb, fr, a);
	return err;
}

#endif
