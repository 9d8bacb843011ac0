// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vFlood's guest (Gamage et al. 2011): see flood.h. */
#include "tcp.h"
#include "flood_tcp.h"

#ifdef HAS_CHANNEL
#include "flood_channel.h"

_Static_assert(sizeof(struct flood_leased) <= CA_PRIV_WORDS * sizeof(uint64_t), "too large");

/* Linux's default of tcp_min_tso_segs. */
#define MIN_TSO_SEGS 2u

/* TCP asks for it before it sends, also after a pause in which the lease may have ended. */
SEC("struct_ops") uint32_t BPF_PROG(flood_min_tso_segs, struct sock *sk)
{
	flood_look(sk);
	return MIN_TSO_SEGS;
}
#else
_Static_assert(sizeof(struct flood_connection) <= CA_PRIV_WORDS * sizeof(uint64_t), "too large");
#endif

SEC("struct_ops") void BPF_PROG(flood_on_init, struct sock *sk)
{
	flood_tcp_init(tcp_sk(sk), ca_priv(sk));
#ifdef HAS_CHANNEL
	flood_begin(sk);
#endif
	/* Small queues and segment sizes follow this rate, and the queue is the driver domain. */
	sk->sk_pacing_rate = ~0ul;
}

SEC("struct_ops") void BPF_PROG(flood_cong_control, struct sock *sk)
{
#ifdef HAS_CHANNEL
	flood_look(sk);
#endif
	flood_tcp_ack(tcp_sk(sk), ca_priv(sk));
}

SEC("struct_ops") uint32_t BPF_PROG(flood_ssthresh, struct sock *sk)
{
	return flood_tcp_ssthresh(tcp_sk(sk), ca_priv(sk));
}

SEC("struct_ops") void BPF_PROG(flood_on_state, struct sock *sk, uint8_t new_state)
{
	flood_tcp_set_state(tcp_sk(sk), ca_priv(sk), new_state);
}

static __always_inline void flood_on_start(struct sock *sk)
{
	flood_tcp_start(tcp_sk(sk), ca_priv(sk), bpf_jiffies64());
}

#ifdef HAS_TX_START
SEC("struct_ops") void BPF_PROG(flood_cwnd_event_tx_start, struct sock *sk)
{
	flood_on_start(sk);
}
#else
SEC("struct_ops") void BPF_PROG(flood_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		flood_on_start(sk);
}
#endif

SEC("struct_ops") uint32_t BPF_PROG(flood_undo_cwnd, struct sock *sk)
{
	struct flood_connection *ca = ca_priv(sk);

	return flood_undo(&ca->law);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops flood = {
	.name = "flood",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)flood_on_init,
	.ssthresh = (void *)flood_ssthresh,
	.cong_control = (void *)flood_cong_control,
	.set_state = (void *)flood_on_state,
#ifdef HAS_TX_START
	.cwnd_event_tx_start = (void *)flood_cwnd_event_tx_start,
#else
	.cwnd_event = (void *)flood_cwnd_event,
#endif
	.undo_cwnd = (void *)flood_undo_cwnd,
#ifdef HAS_CHANNEL
	.min_tso_segs = (void *)flood_min_tso_segs,
#endif
};
