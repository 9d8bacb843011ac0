// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies of a port's packets, for `vcc record`. At each hook of the device, one program runs before
 * that of the port and one behind it. So one side shows what the guest sends and gets, and the
 * other what the fabric gets and sends.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"
#include "record.h"
#include "verdicts.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Overridden before loading. */
const volatile struct {
	uint32_t device;
	uint32_t kept_max_bytes;
} recording SEC(".rodata.record") = { .kept_max_bytes = RECORD_KEPT_MAX_BYTES };

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 10); /* bytes, overridden before loading */
} packets SEC(".maps");

/* By side: packets for which the ring had no room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RECORD_SIDES);
	__type(key, uint32_t);
	__type(value, uint64_t);
} lost SEC(".maps");

/* The compiler describes only types of globals, and a test compares this one's description. */
struct recorded_packet *described __attribute__((unused));

static __always_inline void count_lost(uint32_t side)
{
	uint64_t *count = bpf_map_lookup_elem(&lost, &side);

	/* With PREEMPT_RT, another run on the same CPU may preempt this one. */
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* A record in the ring has a constant size: `room_bytes`, which must be one. */
static __always_inline void keep(struct __sk_buff *skb, enum record_side side, bool from_guest,
				 uint32_t kept_bytes, const uint32_t room_bytes)
{
	struct recorded_packet *to = bpf_ringbuf_reserve(&packets, sizeof(*to) + room_bytes, 0);

	if (!to) {
		count_lost(side);
		return;
	}
	*to = (struct recorded_packet){
		.time_ns = bpf_ktime_get_ns(),
		.device = recording.device,
		.packet_bytes = skb->len,
		.kept_bytes = kept_bytes,
		.side = side,
		.from_guest = from_guest,
	};
	if (skb->vlan_present) {
		to->vlan_tpid = bpf_ntohs(skb->vlan_proto);
		to->vlan_tci = skb->vlan_tci;
	}
	if (kept_bytes && bpf_skb_load_bytes(skb, 0, to + 1, kept_bytes)) {
		count_lost(side);
		bpf_ringbuf_discard(to, 0);
		return;
	}
	bpf_ringbuf_submit(to, 0);
}

static __always_inline int record(struct __sk_buff *skb, enum record_side side, bool from_guest)
{
	uint32_t bytes = skb->len;

	if (bytes > recording.kept_max_bytes)
		bytes = recording.kept_max_bytes;
	/* Most packets are pure ACKs, or full ones of Ethernet, of jumbo frames, of TSO, of BIG
	 * TCP. */
	if (bytes <= 256)
		keep(skb, side, from_guest, bytes, 256);
	else if (bytes <= 2048)
		keep(skb, side, from_guest, bytes, 2048);
	else if (bytes <= 16384)
		keep(skb, side, from_guest, bytes, 16384);
	else if (bytes <= 66048)
		keep(skb, side, from_guest, bytes, 66048);
	else if (bytes <= RECORD_KEPT_MAX_BYTES)
		keep(skb, side, from_guest, bytes, RECORD_KEPT_MAX_BYTES);
	return VERDICT_PASS;
}

SEC("tcx/ingress") int record_sent(struct __sk_buff *skb)
{
	/* The port's own: a clone that it makes a report of (fack.h). */
	if (skb->mark == FACK_MARK)
		return VERDICT_PASS;
	return record(skb, RECORD_GUEST_SIDE, true);
}

SEC("tcx/ingress") int record_leaving(struct __sk_buff *skb)
{
	return record(skb, RECORD_FABRIC_SIDE, true);
}

SEC("tcx/egress") int record_coming(struct __sk_buff *skb)
{
	return record(skb, RECORD_FABRIC_SIDE, false);
}

SEC("tcx/egress") int record_received(struct __sk_buff *skb)
{
	return record(skb, RECORD_GUEST_SIDE, false);
}
