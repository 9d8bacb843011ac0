// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* HighSpeed TCP (RFC 3649), with Linux's choices where the RFC leaves one. */
#include "tcp.h"
#include "highspeed.h"

struct highspeed {
	uint32_t row; /* the window's row when it last grew in congestion avoidance */
};

SEC("struct_ops") void BPF_PROG(highspeed_init, struct sock *sk)
{
	struct highspeed *ca = ca_priv(sk);

	/* Until congestion avoidance, congestion halves the window as in Standard TCP. */
	ca->row = 0;
}

SEC("struct_ops") void BPF_PROG(highspeed_cong_avoid, struct sock *sk, uint32_t ack, uint32_t acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct highspeed *ca = ca_priv(sk);

	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
		return;
	}
	ca->row = highspeed_row(tp->snd_cwnd);
	if (tp->snd_cwnd >= tp->snd_cwnd_clamp)
		return;
	/* Per ACK, not per acknowledged segment (section 5; Linux). */
	tp->snd_cwnd_cnt += highspeed_a_segs(ca->row);
	if (tp->snd_cwnd_cnt >= tp->snd_cwnd) {
		tp->snd_cwnd_cnt -= tp->snd_cwnd;
		tp->snd_cwnd++;
	}
}

SEC("struct_ops") uint32_t BPF_PROG(highspeed_ssthresh, struct sock *sk)
{
	struct highspeed *ca = ca_priv(sk);

	return highspeed_reduced_segs(tcp_sk(sk)->snd_cwnd, ca->row);
}

SEC("struct_ops") uint32_t BPF_PROG(highspeed_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops highspeed = {
	.name = "highspeed",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)highspeed_init,
	.ssthresh = (void *)highspeed_ssthresh,
	.cong_avoid = (void *)highspeed_cong_avoid,
	.undo_cwnd = (void *)highspeed_undo_cwnd,
};
