// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BPF_PROG_RUN repeats one frame. This goes first and makes of it the next connection's segment, as
 * a port's own program (port.bpf.c) would pass it on.
 */
#include "../segment.h"

#include "tail_calls.h"
#include "lock.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Mirrored by vary.rs. */
#define CONNECTIONS_A_PORT 25000u
#define GUEST_ADDRESS	   0xc0000201u /* 192.0.2.1, at every port */
#define FIRST_PEER	   0xc6120000u /* 198.18.0.0 (RFC 2544) */
#define FIRST_GUEST_PORT   1024u
#define PEER_PORT	   80u

/* The cache lines of an entry that an ACK to the guest touches, with a sample (struct vcc_flow). */
#define TOUCHED_LINES 4

/* What is done with the segment; mirrors `Next` of vary.rs. */
enum next {
	NEXT_NONE = 0, /* the harness is measured alone */
	NEXT_TRANSLATE,
	NEXT_TOUCH,
	NEXT_ENTER, /* makes an entry for NEXT_TOUCH */
};

/* The segment, and the connections that it is sent over in turn; mirrors `Cursor` of vary.rs. */
struct cursor {
	struct segment segment; /* its steps: from one round of all connections to the next */
	uint32_t begin;		/* the connections [begin, end), by their places in `order` */
	uint32_t end;
	uint32_t at;
	uint16_t window;
	uint8_t next;	  /* enum next */
	uint8_t shuffled; /* bool: by `order`, else by number */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct cursor);
} cursor SEC(".maps");

/* The connections' numbers, shuffled. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* overridden before loading */
	__type(key, uint32_t);
	__type(value, uint32_t);
} order SEC(".maps");

/*
 * The yardstick: what looking up an entry, locking it and touching its cache lines takes, in a map
 * of the size of `flows`. Without a lock, the processor would do much of it for several connections
 * at once, which follow each other here more closely than segments do.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* overridden before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint64_t);
	__type(value, struct vcc_entry);
} touched SEC(".maps");

static const struct vcc_entry none = {};

/* The number of the next connection. */
static __always_inline uint32_t advance(struct cursor *at)
{
	uint32_t place = at->at;

	if (++at->at >= at->end) {
		at->at = at->begin;
		segment_advance(&at->segment);
	}
	const uint32_t *number = at->shuffled ? bpf_map_lookup_elem(&order, &place) : 0;

	return number ? *number : place;
}

static __always_inline void touch(uint32_t number, bool enters)
{
	const uint32_t line_bytes = 64;
	uint64_t tag = number;

	if (enters) {
		bpf_map_update_elem(&touched, &tag, &none, BPF_ANY);
		return;
	}
	struct vcc_entry *e = bpf_map_lookup_elem(&touched, &tag);

	if (!e)
		return;
	volatile uint32_t *words = (volatile uint32_t *)e;
	const uint32_t step = line_bytes / sizeof(*words);

	/* Read before the lock, which is a barrier: lines that miss do so together. */
	for (uint32_t line = 0; line < TOUCHED_LINES; line++)
		(void)words[line * step];
	if (flow_try_lock(&e->lock) != LOCK_FREE)
		return;
	for (uint32_t line = 1; line < TOUCHED_LINES; line++)
		++words[line * step];
	flow_unlock(&e->lock, false);
}

static __always_inline int vary(struct __sk_buff *skb, bool from_guest)
{
	uint32_t zero = 0;
	struct cursor *at = bpf_map_lookup_elem(&cursor, &zero);
	struct headers *headers = at ? segment_write(skb, &at->segment, at->window) : 0;

	if (!headers)
		return VERDICT_PASS;
	uint32_t number = advance(at);
	uint32_t of_port = number % CONNECTIONS_A_PORT;
	uint32_t guest = bpf_htonl(GUEST_ADDRESS), peer = bpf_htonl(FIRST_PEER + of_port);
	uint16_t guest_port = bpf_htons((uint16_t)(FIRST_GUEST_PORT + of_port));

	headers->ip.saddr = from_guest ? guest : peer;
	headers->ip.daddr = from_guest ? peer : guest;
	headers->tcp.source = from_guest ? guest_port : bpf_htons(PEER_PORT);
	headers->tcp.dest = from_guest ? bpf_htons(PEER_PORT) : guest_port;
	skb->cb[CB_PORT] = number / CONNECTIONS_A_PORT;
	switch (at->next) {
	case NEXT_TRANSLATE:
		if (from_guest)
			bpf_tail_call_static(skb, &call_from_guest, CALL_FAST);
		else
			bpf_tail_call_static(skb, &call_to_guest, CALL_FAST);
		break;
	case NEXT_TOUCH:
	case NEXT_ENTER:
		touch(number, at->next == NEXT_ENTER);
		break;
	default:
		break;
	}
	return VERDICT_PASS;
}

SEC("tcx/ingress") int vary_from_guest(struct __sk_buff *skb)
{
	return vary(skb, true);
}

SEC("tcx/egress") int vary_to_guest(struct __sk_buff *skb)
{
	return vary(skb, false);
}
