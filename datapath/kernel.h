/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel knows of a frame and struct __sk_buff does not show. */
#ifndef VCC_KERNEL_H
#define VCC_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* The kernel's own, as far as it is read; its BTF has the offsets. */
struct sk_buff {
	uint8_t ip_summed : 2;
	uint8_t encapsulation : 1; /* the kernel has put the segment into a tunnel */
	uint16_t csum_start;	   /* with CHECKSUM_PARTIAL: from `head` to what is to be summed */
	unsigned char *head, *data;
	uint32_t end; /* from `head` to the shared info */
} __attribute__((preserve_access_index));

struct skb_shared_info {
	uint32_t gso_type;
} __attribute__((preserve_access_index));

/* Their values are those of netdev features, and so the same on all kernels. */
#define SKB_GSO_TCPV4	 (1u << 0)
#define SKB_GSO_TCPV6	 (1u << 4)
#define SKB_GSO_FRAGLIST (1u << 18)

#define CHECKSUM_COMPLETE 2 /* the kernel has the sum of the frame's bytes */
#define CHECKSUM_PARTIAL  3 /* the field holds the sum of the pseudo-header only */

/* A kfunc that the verifier replaces by a move. */
extern void *bpf_cast_to_kern_ctx(void *skb) __ksym;

/* Likewise: what is read through it may be anything. */
extern void *bpf_rdonly_cast(const void *object, uint32_t btf_id) __ksym;

static __always_inline uint64_t checksum_state(struct __sk_buff *skb)
{
	const struct sk_buff *kernels = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kernels, ip_summed);
}

/*
 * The kernel refuses to change the length of such a frame (bpf_skb_change_tail(), ENOTSUPP). It is
 * one whose checksum or segmentation is left to a device.
 */
static __always_inline bool is_of_fixed_length(struct __sk_buff *skb)
{
	const struct sk_buff *kernels = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kernels, encapsulation);
}

/* How a super-segment is to be segmented. */
static __always_inline uint32_t gso_type(struct __sk_buff *skb)
{
	const struct sk_buff *kernels = bpf_cast_to_kern_ctx(skb);
	const struct skb_shared_info *shared = bpf_rdonly_cast(
	    kernels->head + kernels->end, bpf_core_type_id_kernel(struct skb_shared_info));

	return shared->gso_type;
}

#endif
