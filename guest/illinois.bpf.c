// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TCP-Illinois (Liu, Basar, Srikant 2008): loss triggers a reduction, delay sets its size. */
#include "tcp.h"
#include "illinois.h"

struct connection {
	struct illinois law;
	uint32_t round_end_seq;
	uint32_t acked_segs; /* acknowledged by the current ACK */
};

_Static_assert(sizeof(struct connection) <= CA_PRIV_WORDS * sizeof(uint64_t), "too large");

SEC("struct_ops") void BPF_PROG(illinois_on_init, struct sock *sk)
{
	struct connection *ca = ca_priv(sk);

	illinois_init(&ca->law);
	ca->round_end_seq = tcp_sk(sk)->snd_nxt;
	ca->acked_segs = 0;
}

SEC("struct_ops")
void BPF_PROG(illinois_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct connection *ca = ca_priv(sk);

	ca->acked_segs = sample->pkts_acked;
	/* Negative if the segment was retransmitted (RFC 6298, 3). */
	if (sample->rtt_us >= 0)
		illinois_sample(&ca->law, sample->rtt_us);
}

SEC("struct_ops") void BPF_PROG(illinois_cong_avoid, struct sock *sk, uint32_t ack, uint32_t acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *ca = ca_priv(sk);

	if (before(ca->round_end_seq, ack)) {
		illinois_end_round(&ca->law, tp->snd_cwnd);
		ca->round_end_seq = tp->snd_nxt;
	}
	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
		return;
	}
	tp->snd_cwnd_cnt += ca->acked_segs;
	/* The default: not every ACK comes with a sample. */
	ca->acked_segs = 1;

	uint32_t growth_segs = illinois_growth_segs(&ca->law, tp->snd_cwnd, tp->snd_cwnd_cnt);

	if (growth_segs) {
		tp->snd_cwnd = at_most(tp->snd_cwnd + growth_segs, tp->snd_cwnd_clamp);
		tp->snd_cwnd_cnt = 0;
	}
}

SEC("struct_ops") uint32_t BPF_PROG(illinois_ssthresh, struct sock *sk)
{
	struct connection *ca = ca_priv(sk);

	return illinois_reduced_segs(&ca->law, tcp_sk(sk)->snd_cwnd);
}

/* After a timeout, delays are unknown: restart with Reno's parameters. */
SEC("struct_ops") void BPF_PROG(illinois_set_state, struct sock *sk, uint8_t new_state)
{
	struct connection *ca = ca_priv(sk);

	if (new_state != TCP_CA_Loss)
		return;
	illinois_be_reno(&ca->law);
	ca->law.rounds_low = 0;
	ca->law.was_large = false;
	illinois_start_round(&ca->law);
	ca->round_end_seq = tcp_sk(sk)->snd_nxt;
}

SEC("struct_ops") uint32_t BPF_PROG(illinois_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops illinois = {
	.name = "illinois",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)illinois_on_init,
	.ssthresh = (void *)illinois_ssthresh,
	.cong_avoid = (void *)illinois_cong_avoid,
	.set_state = (void *)illinois_set_state,
	.pkts_acked = (void *)illinois_pkts_acked,
	.undo_cwnd = (void *)illinois_undo_cwnd,
};
