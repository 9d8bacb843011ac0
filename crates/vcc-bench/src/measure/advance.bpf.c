// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BPF_PROG_RUN repeats one frame, which the datapath would take for a retransmission or an old
 * ACK from the second time on. This goes first and makes the next segment of it.
 */
#include "segment.h"

#include "abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct cursor {
	struct segment segment;
	uint16_t window;
	uint16_t next;	      /* enum next */
	uint16_t header_word; /* data offset and flags, as in the frame */
	uint16_t unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct cursor);
} cursor SEC(".maps");

/* The program after the harness; mirrors `Next` of case.rs. */
enum next {
	NEXT_NONE = 0, /* the harness is measured alone */
	NEXT_TRANSLATE,
	NEXT_PARSE,
	NEXT_REWRITE,
	NEXT_MAX,
	NEXT_CLONE = NEXT_MAX, /* no program: a clone goes the way of one that becomes a FACK */
};

#define NEXT_PROGRAMS                                                                              \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                             \
		__uint(max_entries, NEXT_MAX);                                                     \
		__type(key, uint32_t);                                                             \
		__type(value, uint32_t);                                                           \
	}

/* Two, since all programs of one such map must be of one attach type. */
NEXT_PROGRAMS next_from_guest SEC(".maps");
NEXT_PROGRAMS next_to_guest SEC(".maps");

/* Indices that the compiler knows, which makes jumps of the calls. */
static __always_inline int go_on_from_guest(struct __sk_buff *skb, uint32_t next)
{
	if (next == NEXT_TRANSLATE)
		bpf_tail_call_static(skb, &next_from_guest, NEXT_TRANSLATE);
	if (next == NEXT_PARSE)
		bpf_tail_call_static(skb, &next_from_guest, NEXT_PARSE);
	if (next == NEXT_CLONE)
		bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
	return VERDICT_PASS;
}

static __always_inline int go_on_to_guest(struct __sk_buff *skb, uint32_t next)
{
	if (next == NEXT_TRANSLATE)
		bpf_tail_call_static(skb, &next_to_guest, NEXT_TRANSLATE);
	if (next == NEXT_REWRITE)
		bpf_tail_call_static(skb, &next_to_guest, NEXT_REWRITE);
	return VERDICT_PASS;
}

/* The place of the data offset and the flags in a TCP header (RFC 9293, 3.1), in words of 16 bits.
 */
#define HEADER_WORD 6

static __always_inline uint32_t advance(struct __sk_buff *skb)
{
	uint32_t zero = 0;
	struct cursor *at = bpf_map_lookup_elem(&cursor, &zero);
	struct headers *headers;

	if (!at)
		return NEXT_NONE;
	headers = segment_write(skb, &at->segment, at->window);
	if (!headers)
		return NEXT_NONE;
	/* AccECN changes the flags of each segment. */
	((uint16_t *)&headers->tcp)[HEADER_WORD] = at->header_word;
	segment_advance(&at->segment);
	return at->next;
}

#define TEMPLATE_MAX_BYTES 80
#define SEQ_AT		   (ETH_HLEN + 20 + 4)
#define ACK_AT		   (SEQ_AT + 4)

/*
 * A frame whose length the datapath changes, or for which a flow must have something to say: the
 * whole of it is written anew, and the flow's flags are set, before each run.
 */
struct restored {
	uint64_t tag; /* the flow's (flow_tag.h) */
	struct segment segment;
	uint32_t ect0_bytes; /* the counter of a PACK at pack_at; it grows by ack_step */
	uint32_t pack_at;    /* 0: none */
	uint32_t flow_flags; /* these are set; 0: the flow is not looked up */
	uint32_t mark;
	uint32_t next; /* enum next */
	uint32_t frame_bytes;
	uint32_t template_bytes; /* of the frame's beginning */
	uint8_t template[TEMPLATE_MAX_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct restored);
} restored SEC(".maps");

/* The datapath's own, put in its place. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint64_t);
	__type(value, struct vcc_entry);
} flows SEC(".maps");

static __always_inline void write_counter(uint8_t *pack, uint32_t ect0_bytes)
{
	pack[2] = (uint8_t)(ect0_bytes >> 16);
	pack[3] = (uint8_t)(ect0_bytes >> 8);
	pack[4] = (uint8_t)ect0_bytes;
}

static __always_inline uint32_t restore(struct __sk_buff *skb)
{
	uint32_t zero = 0, seq, ack;
	struct restored *at = bpf_map_lookup_elem(&restored, &zero);

	if (!at)
		return NEXT_NONE;
	if (at->flow_flags) {
		struct vcc_entry *entry = bpf_map_lookup_elem(&flows, &at->tag);

		if (entry)
			entry->flow.flags |= at->flow_flags;
	}
	seq = bpf_htonl(at->segment.seq);
	ack = bpf_htonl(at->segment.ack);
	__builtin_memcpy(at->template + SEQ_AT, &seq, sizeof(seq));
	__builtin_memcpy(at->template + ACK_AT, &ack, sizeof(ack));
	if (at->pack_at && at->pack_at <= TEMPLATE_MAX_BYTES - OPT_PACK_BYTES)
		write_counter(at->template + at->pack_at, at->ect0_bytes);
	segment_advance(&at->segment);
	at->ect0_bytes = (at->ect0_bytes + at->segment.ack_step) & 0xffffff;

	uint32_t bytes = at->template_bytes;

	asm volatile("" : "+r"(bytes));
	if (bytes < 1 || bytes > TEMPLATE_MAX_BYTES)
		return NEXT_NONE;
	bpf_skb_change_tail(skb, at->frame_bytes, 0);
	bpf_skb_store_bytes(skb, 0, at->template, bytes, 0);
	skb->mark = at->mark;
	return at->next;
}

SEC("tcx/ingress") int restore_from_guest(struct __sk_buff *skb)
{
	return go_on_from_guest(skb, restore(skb));
}

SEC("tcx/egress") int restore_to_guest(struct __sk_buff *skb)
{
	return go_on_to_guest(skb, restore(skb));
}

SEC("tcx/ingress") int advance_from_guest(struct __sk_buff *skb)
{
	return go_on_from_guest(skb, advance(skb));
}

SEC("tcx/egress") int advance_to_guest(struct __sk_buff *skb)
{
	return go_on_to_guest(skb, advance(skb));
}
