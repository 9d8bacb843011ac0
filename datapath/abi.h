/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The interface between datapath and user space: keys, values and counters of the maps. */
#ifndef VCC_ABI_H
#define VCC_ABI_H

#include "histogram.h"
#include "pool.h"
#include "vcc.h"

/* Must change with every change of the maps' contents, even if no size changes. */
#define LAYOUT_VERSION 20u

/* User space copies keys and values byte by byte; padding would be uninitialised. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/*
 * A connection at a port; the key is the same in both directions. The ports of a host share their
 * maps, and keys with different ports are different keys.
 */
struct vcc_key {
	uint8_t guest_addr[16]; /* IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2) */
	uint8_t peer_addr[16];
	uint16_t guest_port; /* network byte order, like the addresses */
	uint16_t peer_port;
	uint16_t vlan; /* 802.1Q VLAN ID, host byte order, 0 if untagged; and KEY_INSIDE */
	uint16_t port; /* the index of the port */
};

/*
 * A flag beside the VLAN ID: the connection is inside a tunnel (tunnel.h). The addresses and ports
 * are its own; the VLAN is that of the frame.
 */
#define KEY_INSIDE 0x1000u

/* The tunnels whose inner connections a port translates. */
enum vcc_inside {
	INSIDE_VXLAN = 1 << 0,
	INSIDE_GENEVE = 1 << 1,
	INSIDE_GRE = 1 << 2,
	/* A kind times this: only connections that are known. */
	INSIDE_KNOWN = 1 << 8,
};

/* The UDP ports that tunnels are found by. */
#define VXLAN_PORT	 4789
#define VXLAN_LINUX_PORT 8472 /* Linux's own default, which is older than IANA's number */
#define GENEVE_PORT	 6081

/* What the programs must know of the underlays that they are linked with (underlays.h). */
struct vcc_slots {
	uint32_t traits[UNDERLAY_SLOTS]; /* enum vcc_cc_trait */
};

/* A position in a queue of flows (queues.h). */
struct vcc_place {
	uint16_t queue; /* enum vcc_queue */
	uint16_t port;	/* the index of the port */
	uint32_t at;
};

/*
 * The queues of a port's flows. Each flow is in one of the timer wheel's slots, according to its
 * deadline: near slots of a millisecond within a second, far slots of FAR_MS beyond; or, if it has
 * ended and only its turn to be forgotten has not come (forget_pace.h), in QUEUE_ENDED. Half-open
 * flows are also in QUEUE_HALF_OPEN, oldest first.
 */
enum vcc_queue {
	QUEUE_NEAR = 0,
	NEAR_SLOTS = 1024, /* a millisecond each */
	QUEUE_FAR = NEAR_SLOTS,
	FAR_SLOTS = 256,
	FAR_MS = 256,
	QUEUE_ENDED = QUEUE_FAR + FAR_SLOTS,
	QUEUE_HALF_OPEN,
	QUEUES,
};

/*
 * A value of the flow map, whose key is the flow's tag (flow_tag.h). With a key of 8 bytes, the
 * kernel's entry begins at a cache line (BPF's allocator, struct htab_elem), and struct vcc_flow
 * says which lines a segment touches.
 *
 * User space reads it without the lock, so a copy may hold part of a segment's changes.
 */
struct vcc_entry {
	uint32_t lock;	 /* enum lock_state */
	uint32_t due_ms; /* the flow's deadline; CLOCK_MONOTONIC */
	/*
	 * tag_check() of the key. The kernel may reuse the memory of a deleted entry at once, so a
	 * program that looked an entry up must compare this after locking it.
	 */
	uint64_t check;
	struct vcc_flow flow;
	struct vcc_place due;  /* the flow's position in the timer wheel */
	uint32_t half_open;    /* bool: usage.half_open and QUEUE_HALF_OPEN include the flow */
	uint32_t half_open_at; /* its position in QUEUE_HALF_OPEN */
	struct vcc_key key;
	/*
	 * With KEY_INSIDE: the tunnels from and to the guest (tunnel.h); 0: not seen yet. They may
	 * differ, because some overlays number the destination's network, or the sender's identity.
	 */
	uint64_t tunnels[2];
};

/* A set has so many minisocks of connections that were open, and of others behind them. */
enum vcc_minisock_ways {
	MINISOCK_OPEN_WAYS = 8,
	MINISOCK_HALF_OPEN_WAYS = 4,
	MINISOCK_WAYS = MINISOCK_OPEN_WAYS + MINISOCK_HALF_OPEN_WAYS,
};

/* A value of `minisocks`: a set of the set-associative table in minisock.h. */
struct vcc_minisock_set {
	uint64_t checks[MINISOCK_WAYS];	 /* minisock_check() of each; 0: free */
	uint32_t left_at[MINISOCK_WAYS]; /* `left` when it was left */
	uint16_t ports[MINISOCK_WAYS];	 /* the port's index */
	uint32_t left;			 /* how many have been left in the set; wraps */
	uint32_t reserved;
	struct vcc_minisock minisocks[MINISOCK_WAYS];
};

/* A connection that comes to a port with its guest. */
struct vcc_arrival {
	struct vcc_key key; /* the port is that of the run */
	struct vcc_flow flow;
};

/* User space's description of a port: a value of `ports`. */
struct vcc_port {
	struct vcc_params params; /* of connections without a policy; `trace` of all */
	struct vcc_key traced;	  /* the connection to trace; all zeros: every connection */
	uint32_t flows_max;
	uint32_t by_policy;  /* bool: a policy selects the parameters of connections */
	uint32_t inside;     /* enum vcc_inside: the tunnels to look into */
	uint32_t generation; /* counts the ports that have had the index; for user space */
	/*
	 * Since when it takes all of its guest's new connections (unknown_segment.h);
	 * CLOCK_MONOTONIC, and never 0 of a port.
	 */
	uint32_t attached_s;
};

/* The occupancy of a port's part of the tables. */
struct vcc_usage {
	uint32_t flows;
	uint32_t half_open;	  /* half-open flows among them */
	uint32_t neighbours;	  /* addresses of the guest that are known */
	uint32_t turn_longest_us; /* longest turn of the port's wheel */
	uint64_t rate_full_ns;	  /* the guest's bucket (guest_rate.h); CLOCK_MONOTONIC */
};

/* The occupancy of the table by all ports. */
struct vcc_host_usage {
	uint32_t flows;
	uint32_t has_minisocks; /* bool: a flow has left one */
	uint64_t
	    forgotten; /* flows, less those that are new; never less than paced (forget_pace.h) */
};

/*
 * The words of skb->cb that the programs use. Its other words, and these ones between two packets,
 * belong to other programs on the device.
 */
enum vcc_cb {
	CB_SWEEP_QUEUE = 0, /* of `sweep`: where it begins, and where it ended */
	CB_SWEEP_AT = 1,
	CB_SWEEP_UNDERLAYS = 2, /* with MOVE_MARK: from << 8 | to */
	CB_PORT = 4,		/* the index of the port */
};

/*
 * skb->mark of the clone that becomes a FACK. A guest cannot set it: marks do not cross a namespace
 * or leave a VM.
 */
enum vcc_mark {
	FACK_MARK = 0x76636661,
	/* Requests to the program `sweep`: */
	FORGET_MARK = 0x7663666f, /* forget all flows, because the port is detached */
	SETTLE_MARK = 0x76637365, /* judge half-open flows too */
	COUNT_MARK = 0x7663636f,  /* only count the flows that depend on the translation */
	MOVE_MARK = 0x7663756d,	  /* move flows of one underlay to another */
	OPEN_MARK = 0x76636f70,	  /* only start the wheel of a port without flows */
	RENEW_MARK = 0x7663726e,  /* only make this program's version turn the port's wheel */
	CLOSE_MARK = 0x7663636c,  /* only stop the port's wheel */
	ARRIVE_MARK = 0x76636172, /* only take over the connection in the frame (flow_arrival.h) */
	/* Likewise, of the port's own guest: a port that drains has it already. */
	STAY_MARK = 0x76637374,
	INSTEAD_MARK = 0x7663696e, /* likewise, in place of the port's own flow of it */
};

/* Limits of a policy. */
enum vcc_policy_limit {
	RULES_MAX = 1024,
	RULE_SET_WORDS = RULES_MAX / 64,
	RULE_SETS_MAX = 16384,
	PREFIXES_MAX = 16384,
	POOLS_MAX = 256,
	PORTS_MAX = 4096,	/* ports of a host */
	LANES = 8,		/* runs on a CPU, all but one of which are preempted (lanes.h) */
	POLICY_NAME_BYTES = 64, /* name of a rule or pool, with the terminating zero */
	PORT_NUMBERS = 65536,
	TAG_SECRETS = 10, /* a word of struct vcc_key each */
	VLAN_IDS = 4096,
	EDITIONS = 2, /* the current one, and its predecessor or successor */
};

/*
 * Ports share their policy's maps, which hold two editions: in a map with an array per edition, an
 * edition starts at (epoch % 2) * half of the entries. A new edition takes effect atomically when
 * the epoch changes.
 *
 * A connection's rule is found by bit-vector classification: each property of the connection
 * selects a set of rules that do not exclude it, and the lowest rule in the intersection applies.
 * This is done once, at the SYN, and costs the same for one rule and for a thousand.
 */
struct vcc_policy {
	uint32_t layout; /* LAYOUT_VERSION */
	uint32_t epoch;
	/* Indices of rule sets: */
	uint32_t any_prefix[EDITIONS]; /* for a peer that no prefix contains */
	uint32_t role[EDITIONS][2];    /* for active and passive open by the guest */
	uint32_t polices[EDITIONS];    /* the rules that police */
};

/* The programs of a direction, by their index in its array (tail_calls.h). */
enum vcc_call {
	CALL_FAST = 0, /* fast_path.h: what a port calls, and what takes the usual segments */
	CALL_WHOLE,    /* vcc.bpf.c: what it hands all others on to */
	CALL_REWRITE,  /* fast_path.h: options of the segment in program_state.h change */
	CALL_FACK,     /* from the guest only: the clone of a segment becomes a FACK */
	CALLS,
};

/* Constants of a host, set when its programs are loaded. */
struct vcc_host_constants {
	uint32_t layout; /* LAYOUT_VERSION */
	/*
	 * Limit of all ports' flows. Beyond it, a port with less than `flows_reserved` still has
	 * room, so that no port's connections can take all of the table from the others. 0: there
	 * is one port.
	 */
	uint32_t flows_max;
	uint32_t flows_reserved;
	uint32_t minisock_sets; /* sets of `minisocks`, a power of two */
	/* Random, so that nobody finds two connections with one tag (flow_tag.h). */
	uint64_t tag_secrets[TAG_SECRETS];
};

/* A bit per rule; the first rule is the lowest bit. */
struct vcc_rule_set {
	uint64_t words[RULE_SET_WORDS];
};

/* A peer's prefix; the longest match applies. */
struct vcc_prefix {
	uint32_t length_bits;  /* prefix length plus PREFIX_EDITION_BITS */
	uint8_t edition;       /* epoch % 2 */
	uint8_t peer_addr[16]; /* as in struct vcc_key */
	uint8_t reserved[3];
};

#define PREFIX_EDITION_BITS 8u

/* The rule sets of a TCP port number. */
struct vcc_port_sets {
	uint32_t as_guest_port;
	uint32_t as_peer_port;
};

/* Totals of a rule in an edition. A flow's counters are added when it ends. */
struct vcc_rule_totals {
	uint64_t connections; /* connections that the rule has matched */
	uint64_t marks;
	uint64_t reductions;
	uint64_t retransmissions;
	uint64_t drops;
};

/* The reason for an event. */
enum vcc_event_kind {
	EVENT_ACK = 1, /* an ACK of a traced flow passed to the guest */
	EVENT_DUPACKS, /* event.dupacks duplicate ACKs are due to the guest */
	EVENT_WINDOW,  /* a window update with flow.window_shown is due to the guest */
};

/* An event in a ring buffer for user space, with the flow's state after it. */
struct vcc_event {
	uint64_t now_us; /* CLOCK_MONOTONIC */
	uint32_t kind;	 /* enum vcc_event_kind */
	uint32_t dupacks;
	struct vcc_key key;
	struct vcc_flow flow;
};

/* One of the guest's addresses; a port may have several. */
struct vcc_neighbour_key {
	uint8_t guest_addr[16]; /* as in struct vcc_key */
	uint16_t vlan;
	uint16_t port;
};

/* The MAC addresses of the guest's last frame from that address. */
struct vcc_neighbour {
	uint8_t guest_mac[6];
	uint8_t next_hop_mac[6];
};

/* A guest with several devices has a MAC address at each. */
struct vcc_neighbour_at {
	struct vcc_neighbour neighbour;
	uint32_t ifindex; /* the device that the frame came by */
};

/* Counters of segments that the datapath did not translate, by reason. */
enum vcc_count {
	COUNT_NOT_IP, /* neither IPv4 nor IPv6, more than one VLAN tag, or 802.1ad */
	COUNT_NOT_TCP,
	COUNT_FRAGMENT,	   /* an IPv4 or IPv6 fragment: passed */
	COUNT_MALFORMED,   /* truncated headers or inconsistent lengths */
	COUNT_BAD_OPTIONS, /* a TCP option with an invalid length; options before it are used */
	COUNT_SIGNED,	   /* a signed connection (RFC 2385, RFC 5925): passed */
	COUNT_BAD_FLAGS,   /* an invalid combination of TCP flags */
	COUNT_UNKNOWN,	   /* a connection whose SYN did not pass this port */
	COUNT_TABLE_FULL,  /* a SYN when the flow table was full: passed */
	COUNT_CONTENDED,   /* another CPU held the flow's lock for too long: see contended_flow.h */
	COUNT_DROPPED,	   /* dropped by the engine's verdict */
	COUNT_REWRITE_FAILED,  /* a BPF helper failed during the rewrite, or no lane: dropped */
	COUNT_POLICED,	       /* data beyond the window shown to the guest: dropped */
	COUNT_FORGED,	       /* our options without negotiation, or impossible counters */
	COUNT_REPORT_LOST,     /* a FACK could not be sent */
	COUNT_EVENT_LOST,      /* `events` was full: a segment due to the guest was not sent */
	COUNT_TRACE_LOST,      /* `traces` was full: an ACK of a traced flow is missing */
	COUNT_IGNORED,	       /* a SYN that the policy leaves alone */
	COUNT_DEEP,	       /* TCP behind too many IPv6 extension headers */
	COUNT_UNJUDGED,	       /* TCP that cannot be parsed where a rule polices: dropped */
	COUNT_REFUSED,	       /* a SYN when the flow table was full: dropped by on_full */
	COUNT_GAVE_WAY,	       /* a half-open flow, forgotten to make room for a newer one */
	COUNT_UNTIMED,	       /* a flow that the timer wheel could not hold: forgotten */
	COUNT_TIMER_LATE,      /* the port's timer was late by seconds and was restarted */
	COUNT_PROMISE_BROKEN,  /* a guest did not take what was acknowledged in its name: reset */
	COUNT_OTHER_TUNNEL,    /* inside another tunnel than the connection of these addresses */
	COUNT_CANNOT_MARK,     /* CE outside, Not-ECT inside: not for the guest (RFC 6040, 4.2) */
	COUNT_ONE_DIRECTION,   /* a connection of which one direction does not pass this port */
	COUNT_REVIVED,	       /* a flow that was forgotten, and whose connection continues */
	COUNT_UNKNOWN_DROPPED, /* data of an unknown connection where a rule polices: dropped */
	COUNT_IN_FRAGMENTS,    /* a connection whose guest sends in fragments: released */
	COUNT_ACCEPTED,	       /* a SYN that was answered in the guest's name (accept.h) */
	COUNT_NO_BUFFER,       /* data for which its flow's share has no room (hold_buffer.h) */
	COUNT_MAX,
};

/* What a port counts on one CPU. */
struct vcc_counts {
	uint64_t segments[COUNT_MAX];
	uint64_t
	    handed_on[2]; /* frames that the fast path left to the whole engine, by direction */
	struct vcc_delays delays;
};

#pragma GCC diagnostic pop

#endif
