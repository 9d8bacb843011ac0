/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guest's end of the channel (vFlood, 3.2): what a process has read there, in maps, and what it
 * means for a connection. Without news from the host, the lease ends, and the window is NewReno's.
 */
#ifndef VCC_GUEST_FLOOD_CHANNEL_H
#define VCC_GUEST_FLOOD_CHANNEL_H

#include "flood_tcp.h"
#include "tcp.h"

#define FLOOD_FLOWS_MAX 4096
#define AF_INET6	10

/* Until when the host holds, by bpf_ktime_get_ns(). */
struct flood_lease {
	uint64_t until_ns;
	/* The host's reports since it last began anew. What was before is void. */
	uint32_t session;
	uint32_t reserved;
};

/* Addresses, mapped if of IPv4, and ports in host byte order. */
struct flood_flow {
	uint32_t guest[4];
	uint32_t peer[4];
	uint16_t guest_port;
	uint16_t peer_port;
};

/* What the host has reported about a flow. */
struct flood_report {
	uint32_t session;
	uint32_t is_held; /* bool */
	uint32_t grant_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct flood_lease);
} flood_leases SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOOD_FLOWS_MAX);
	__type(key, struct flood_flow);
	__type(value, struct flood_report);
} flood_flows SEC(".maps");

struct flood_leased {
	struct flood_connection connection;
	/* In which the host holds the connection; 0: none. */
	uint32_t session;
	/* By the last report, which other flows may have displaced from the map. */
	uint32_t reported_segs;
};

static __always_inline struct flood_flow flood_flow_of(const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;
	struct flood_flow flow = {
		.guest = { 0, 0, bpf_htonl(0xffff), common->skc_rcv_saddr },
		.peer = { 0, 0, bpf_htonl(0xffff), common->skc_daddr },
		.guest_port = common->skc_num,
		.peer_port = bpf_ntohs(common->skc_dport),
	};

	if (common->skc_family == AF_INET6 && bpf_core_field_exists(common->skc_v6_daddr)) {
		const uint32_t *guest = common->skc_v6_rcv_saddr.in6_u.u6_addr32;
		const uint32_t *peer = common->skc_v6_daddr.in6_u.u6_addr32;

		for (int word = 0; word < 4; word++) {
			flow.guest[word] = guest[word];
			flow.peer[word] = peer[word];
		}
	}
	return flow;
}

/* The lease, if it is not over. */
static __always_inline const struct flood_lease *flood_lease_now(void)
{
	uint32_t zero = 0;
	const struct flood_lease *lease = bpf_map_lookup_elem(&flood_leases, &zero);

	return lease && bpf_ktime_get_ns() < lease->until_ns ? lease : NULL;
}

/* Gives the connection the window that the host's reports admit now. */
static __always_inline void flood_look(struct sock *sk)
{
	const struct flood_lease *lease = flood_lease_now();
	struct tcp_sock *tp = tcp_sk(sk);
	struct flood_leased *ca = ca_priv(sk);
	uint32_t host_segs = 0;

	if (lease) {
		struct flood_flow flow = flood_flow_of(sk);
		const struct flood_report *report = bpf_map_lookup_elem(&flood_flows, &flow);
		uint32_t session = lease->session;

		if (report && report->session == session) {
			ca->session = session;
			ca->reported_segs =
			    report->is_held ? flood_granted_segs(report->grant_bytes, tp->mss_cache)
					    : 0;
		}
		if (ca->session == session)
			host_segs = ca->reported_segs;
	}
	flood_tcp_set_host(tp, &ca->connection, host_segs);
}

/* A connection that begins under a lease is held, unless the host reports otherwise. */
static __always_inline void flood_begin(struct sock *sk)
{
	const struct flood_lease *lease = flood_lease_now();
	struct flood_leased *ca = ca_priv(sk);

	/* It may be older: TCP_CONGESTION changes it at any time. */
	ca->session = lease && tcp_sk(sk)->delivered <= 1 ? lease->session : 0;
	ca->reported_segs = FLOOD_CWND_SEGS;
	flood_look(sk);
}

#endif
