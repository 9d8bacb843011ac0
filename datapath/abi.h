/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the datapath and user space say to each other: keys, entries and counters of the maps. */
#ifndef VCC_ABI_H
#define VCC_ABI_H

#include "pool.h"
#include "vcc.h"

/* Another number for each change of what the maps hold, also one that no size tells of. */
#define LAYOUT_VERSION 4u

/* A connection, seen from the port: the same key in both directions. */
struct vcc_key {
	uint8_t guest_addr[16]; /* IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2) */
	uint8_t peer_addr[16];
	uint16_t guest_port; /* network order, as the addresses */
	uint16_t peer_port;
	uint16_t vlan; /* 802.1Q VLAN id, host order; 0 without a tag */
	uint16_t reserved;
};

/* A place in a queue of flows: queues.h. */
struct vcc_place {
	uint32_t queue; /* enum vcc_queue */
	uint32_t at;
};

/*
 * Where the queues of flows lie. A flow stands in one of the first two kinds, by when it is to be
 * looked at: by the millisecond within a second, else by FAR_MS. The last is for flows in their
 * handshake, the oldest first.
 */
enum vcc_queue {
	QUEUE_NEAR = 0,
	NEAR_SLOTS = 1024, /* of a millisecond each */
	QUEUE_FAR = NEAR_SLOTS,
	FAR_SLOTS = 256,
	FAR_MS = 256,
	QUEUE_HALF_OPEN = QUEUE_FAR + FAR_SLOTS,
	QUEUES,
};

/*
 * A value of the flow map. A copy taken while a segment is being worked on may hold some of its
 * changes.
 */
struct vcc_entry {
	uint32_t lock;	 /* enum lock_state */
	uint32_t due_ms; /* the flow is looked at by then; CLOCK_MONOTONIC */
	/*
	 * Of its key. The kernel may give the memory of a deleted entry to another flow at once: a
	 * program that found this one before has to make sure that it still is the one.
	 */
	uint64_t tag;
	struct vcc_flow flow;
	struct vcc_place due;  /* where it is filed until then */
	uint32_t half_open;    /* bool: it is counted among those in their handshake, */
	uint32_t half_open_at; /* and stands there in their queue */
};

/* How full a port's table is. */
struct vcc_usage {
	uint32_t flows;
	uint32_t half_open;	  /* of these, in their handshake */
	uint32_t turn_longest_us; /* ever, of looking at flows whose time has come */
};

/*
 * skb->mark of the clone that becomes a FACK. No guest can set it: marks do not cross into a
 * namespace or out of a VM.
 */
enum vcc_mark {
	FACK_MARK = 0x76636661,
	/* What `sweep` is asked for, beside judging: */
	FORGET_MARK = 0x7663666f, /* to forget all flows, for the port is given up */
	SETTLE_MARK = 0x76637365, /* to judge also those whose handshake goes on */
	START_MARK = 0x76637374,  /* to start the port's timer, and nothing else */
};

/* What a policy can hold. */
enum vcc_policy_limit {
	RULES_MAX = 1024,
	RULE_SET_WORDS = RULES_MAX / 64,
	RULE_SETS_MAX = 16384,
	PREFIXES_MAX = 16384,
	POOLS_MAX = 256,
	PORTS_MAX = 4096,	/* that have the same policy */
	POLICY_NAME_BYTES = 64, /* of a rule or a pool, with its end */
	PORT_NUMBERS = 65536,
	VLAN_IDS = 4096,
	EDITIONS = 2, /* the one that holds, and the one before or after it */
};

/*
 * A policy lies in maps that its ports share, in two editions: what an edition has in a map of many
 * entries begins at (its epoch % 2) * half of them. Changing the epoch is what makes a new one
 * hold, all at once.
 *
 * Which rule is a connection's is found as in bit-vector classification: each of its properties
 * leads to a set of the rules that do not exclude it, and the first rule that is in all sets is it.
 * Once, at its SYN, and the same work for one rule and for a thousand.
 */
struct vcc_policy {
	uint32_t layout; /* LAYOUT_VERSION */
	uint32_t epoch;
	uint32_t any_prefix[EDITIONS]; /* sets, by their index: of a peer in no prefix */
	uint32_t role[EDITIONS][2];    /* of a guest that opens, and one that is called */
	uint32_t polices[EDITIONS];    /* of the rules that police */
};

/* What a port is told for good, when its programs are loaded. */
struct vcc_port_constants {
	uint32_t layout;    /* LAYOUT_VERSION */
	uint32_t by_policy; /* bool: else the port's own parameters are every flow's */
	uint32_t index;	    /* which of the policy's ports it is */
	uint32_t flows_max; /* so many flows have room */
};

/* Rules, the first in the lowest bit. */
struct vcc_rule_set {
	uint64_t words[RULE_SET_WORDS];
};

/* A peer's network; the longest that the peer is in counts. */
struct vcc_prefix {
	uint32_t length_bits;  /* with the edition's */
	uint8_t edition;       /* epoch % 2 */
	uint8_t peer_addr[16]; /* as in struct vcc_key */
	uint8_t reserved[3];
};

#define PREFIX_EDITION_BITS 8u

/* By the number of a TCP port. */
struct vcc_port_sets {
	uint32_t as_guest_port;
	uint32_t as_peer_port;
};

/* Of a rule in an edition; what its flows had counted when they ended. */
struct vcc_rule_totals {
	uint64_t connections; /* that came under it */
	uint64_t marks;
	uint64_t reductions;
	uint64_t retransmissions;
	uint64_t drops;
};

/* Why an event was written. */
enum vcc_event_kind {
	EVENT_ACK = 1, /* an ACK of a traced flow passed to the guest */
	EVENT_DUPACKS, /* so many duplicate ACKs are due to the guest (event.dupacks) */
	EVENT_WINDOW,  /* a window update is due to the guest (flow.window_shown) */
};

/* What the datapath tells user space by a ring: the flow after what happened. */
struct vcc_event {
	uint64_t now_us; /* CLOCK_MONOTONIC */
	uint32_t kind;	 /* enum vcc_event_kind */
	uint32_t dupacks;
	struct vcc_key key;
	struct vcc_flow flow;
};

/* Which of the guest's addresses; it may have several behind one device. */
struct vcc_neighbour_key {
	uint8_t guest_addr[16]; /* as in struct vcc_key */
	uint16_t vlan;
	uint16_t reserved;
};

/* The link layer of what the guest sent last from there. */
struct vcc_neighbour {
	uint8_t guest_mac[6];
	uint8_t next_hop_mac[6];
};

/* Segments that the datapath did not translate, by reason; one u64 a CPU each. */
enum vcc_count {
	COUNT_NOT_IP, /* neither IPv4 nor IPv6, more than one VLAN tag, or 802.1ad */
	COUNT_NOT_TCP,
	COUNT_FRAGMENT,	      /* of IPv4 or IPv6: passed */
	COUNT_MALFORMED,      /* truncated headers, lengths that contradict each other */
	COUNT_BAD_OPTIONS,    /* of length 0 or 1, or past the end: what precedes it counts */
	COUNT_SIGNED,	      /* of a signed connection (RFC 2385, RFC 5925): passed */
	COUNT_BAD_FLAGS,      /* a combination of TCP flags that no TCP sends */
	COUNT_UNKNOWN,	      /* TCP of a connection whose SYN did not pass here */
	COUNT_TABLE_FULL,     /* a SYN for which the port has no room left */
	COUNT_CONTENDED,      /* another CPU did not let go of the flow: passed as it was */
	COUNT_DROPPED,	      /* by the engine's verdict */
	COUNT_REWRITE_FAILED, /* the kernel refused a change: dropped, for it may be half changed */
	COUNT_POLICED,	      /* data beyond the window that the guest was shown: dropped */
	COUNT_FORGED,	      /* options of ours that were not agreed, or counters that cannot be */
	COUNT_REPORT_LOST,    /* a FACK that the kernel refused to send */
	COUNT_EVENT_LOST,     /* a segment due to the guest, for which `events` had no room */
	COUNT_TRACE_LOST,     /* an ACK of a traced flow, for which `traces` had no room */
	COUNT_IGNORED,	      /* a SYN that the policy leaves alone */
	COUNT_DEEP,	      /* behind more IPv6 headers than are followed */
	COUNT_UNJUDGED,	      /* TCP that an end may take and we cannot judge: dropped */
	COUNT_REFUSED,	      /* of those without room: dropped, as their rule wants it */
	COUNT_GAVE_WAY,	      /* a flow in its handshake, forgotten to make room for a newer one */
	COUNT_UNTIMED,	      /* a flow that could not be filed to be looked at: forgotten */
	COUNT_TIMER_LATE,     /* the port's timer was late by seconds, and was started again */
	COUNT_MAX,
};

#endif
