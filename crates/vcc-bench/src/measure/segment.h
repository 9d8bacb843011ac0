/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What makes of a frame that BPF_PROG_RUN repeats the next segment. */
#ifndef VCC_BENCH_SEGMENT_H
#define VCC_BENCH_SEGMENT_H

#include <stdint.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* TCX_NEXT of Linux 6.6. */
#define VERDICT_PASS (-1)

/*
 * Fields of the next segment; the program before it may have rewritten all of them. First in the
 * harnesses' own cursors.
 */
struct segment {
	uint32_t seq;
	uint32_t ack;
	uint32_t seq_step; /* to the segment after it */
	uint32_t ack_step;
};

/* IPv4 and TCP's headers, without options of IP. */
struct headers {
	struct iphdr ip;
	struct tcphdr tcp;
};

/* Writes the fields. Returns the headers, or null if the frame is too short. */
static __always_inline struct headers *segment_write(struct __sk_buff *skb,
						     const struct segment *next, uint16_t window)
{
	struct headers *headers = (void *)(long)skb->data + ETH_HLEN;

	if ((void *)(headers + 1) > (void *)(long)skb->data_end)
		return 0;
	headers->ip.tos = 0;
	headers->tcp.seq = bpf_htonl(next->seq);
	headers->tcp.ack_seq = bpf_htonl(next->ack);
	headers->tcp.window = bpf_htons(window);
	return headers;
}

static __always_inline void segment_advance(struct segment *next)
{
	next->seq += next->seq_step;
	next->ack += next->ack_step;
}

#endif
