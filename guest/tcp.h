/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's TCP as a congestion control sees it. The structures declare only the members used
 * here; the loader relocates them to the running kernel's layout (CO-RE).
 */
#ifndef VCC_GUEST_TCP_H
#define VCC_GUEST_TCP_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/bpf.h>
#include <linux/tcp.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* BPF_PROG adds a parameter `ctx`, and not every hook uses all of its parameters. */
#pragma clang diagnostic ignored "-Wunused-parameter"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CA_PRIV_WORDS 13

/* tcp_sock.ecn_flags */
#define TCP_ECN_OK	   1
#define TCP_ECN_DEMAND_CWR 4

/* inet_connection_sock.icsk_ack.pending */
#define ICSK_ACK_NOW 16

/* tcp_congestion_ops.flags */
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN	2

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		uint32_t u6_addr32[4];
	} in6_u;
};

struct sock_common {
	uint32_t skc_daddr;
	uint32_t skc_rcv_saddr;
	uint16_t skc_dport;
	uint16_t skc_num;
	uint16_t skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
};

struct inet_connection_sock {
	uint32_t icsk_rto;
	uint8_t icsk_ca_state : 5;
	struct {
		uint8_t pending;
	} icsk_ack;
	uint64_t icsk_ca_priv[CA_PRIV_WORDS];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	uint32_t snd_cwnd;
	uint32_t snd_cwnd_cnt;
	uint32_t snd_cwnd_clamp;
	uint32_t snd_ssthresh;
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t mss_cache;
	uint32_t rcv_nxt;
	uint32_t segs_out;
	uint32_t packets_out;
	uint32_t retrans_out;
	uint32_t sacked_out;
	uint32_t lost_out;
	uint32_t max_packets_out;
	uint32_t prr_out;
	uint32_t delivered;
	uint32_t delivered_ce;
	uint32_t lost;
	uint32_t lsndtime;
	uint8_t ecn_flags;
	uint8_t is_cwnd_limited : 1;
};

struct ack_sample {
	uint32_t pkts_acked;
	int32_t rtt_us;
};

#pragma clang attribute pop

/*
 * The name is the first member here, wherever the kernel has it: before loading, the loader
 * overwrites it with one that no other process uses.
 */
struct tcp_congestion_ops {
	char name[16];
	uint32_t flags;
	void (*init)(struct sock *sk);
	uint32_t (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, uint32_t ack, uint32_t acked);
	/* The kernel passes more, of which not every version has the same. */
	void (*cong_control)(struct sock *sk);
	void (*set_state)(struct sock *sk, uint8_t new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
#ifdef HAS_TX_START
	/* Since Linux 7.1. Older loaders refuse a member that the kernel lacks. */
	void (*cwnd_event_tx_start)(struct sock *sk);
#endif
	void (*in_ack_event)(struct sock *sk, uint32_t flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	uint32_t (*undo_cwnd)(struct sock *sk);
	uint32_t (*min_tso_segs)(struct sock *sk);
};

/* The kernel's functions. */
extern uint32_t tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, uint32_t ack, uint32_t acked) __ksym;
extern uint32_t tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern uint32_t tcp_slow_start(struct tcp_sock *tp, uint32_t acked) __ksym;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* The congestion control's private state of the connection. */
static __always_inline void *ca_priv(struct sock *sk)
{
	return tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

static __always_inline uint8_t ca_state(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_state);
}

static __always_inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Linux's tcp_is_cwnd_limited(): is the window in use (RFC 7661)? In slow start, at least half. */
static __always_inline bool is_cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline uint32_t at_most(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit;
}

/* Linux's tcp_current_ssthresh(): at least 3/4 of the window, outside of a reduction. */
static __always_inline uint32_t current_ssthresh(struct tcp_sock *tp)
{
	uint32_t three_quarters_segs = tp->snd_cwnd / 2 + tp->snd_cwnd / 4;
	uint8_t state = ca_state((struct sock *)tp);

	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		return tp->snd_ssthresh;
	return three_quarters_segs > tp->snd_ssthresh ? three_quarters_segs : tp->snd_ssthresh;
}

/* Sequence numbers are modular (RFC 9293, 3.4). */
static __always_inline bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#endif
