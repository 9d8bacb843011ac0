// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TCP Vegas (Brakmo, Peterson 1995): keeps between alpha and beta of its segments queued. */
#include "tcp.h"
#include "vegas.h"

struct connection {
	struct vegas law;
	uint32_t round_end_seq;
	uint32_t enabled; /* false during recovery, when RTTs do not reflect queues */
};

_Static_assert(sizeof(struct connection) <= CA_PRIV_WORDS * sizeof(uint64_t), "too large");

static __always_inline void enable(struct tcp_sock *tp, struct connection *ca)
{
	ca->enabled = true;
	/* Samples before this point may be of segments sent earlier. */
	ca->round_end_seq = tp->snd_nxt;
	vegas_start_round(&ca->law);
}

SEC("struct_ops") void BPF_PROG(vegas_init, struct sock *sk)
{
	struct connection *ca = ca_priv(sk);

	ca->law.base_rtt_us = VEGAS_NO_RTT_US;
	enable(tcp_sk(sk), ca);
}

SEC("struct_ops")
void BPF_PROG(vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct connection *ca = ca_priv(sk);

	/* Negative if the segment was retransmitted (RFC 6298, 3). */
	if (sample->rtt_us >= 0)
		vegas_sample(&ca->law, sample->rtt_us);
}

SEC("struct_ops") void BPF_PROG(vegas_set_state, struct sock *sk, uint8_t new_state)
{
	struct connection *ca = ca_priv(sk);

	if (new_state == TCP_CA_Open)
		enable(tcp_sk(sk), ca);
	else
		ca->enabled = false;
}

/* After an idle period, earlier RTTs are outdated. */
SEC("struct_ops") void BPF_PROG(vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct connection *ca = ca_priv(sk);

	if (event != CA_EVENT_CWND_RESTART && event != CA_EVENT_TX_START)
		return;
	ca->law.base_rtt_us = VEGAS_NO_RTT_US;
	enable(tcp_sk(sk), ca);
}

static __always_inline void decide(struct tcp_sock *tp, const struct vegas *law, uint32_t acked)
{
	struct vegas_window w = { tp->snd_cwnd, tp->snd_ssthresh };

	if (vegas_decide(law, &w)) {
		tcp_slow_start(tp, acked);
	} else {
		tp->snd_cwnd = at_most(w.cwnd_segs, tp->snd_cwnd_clamp);
		tp->snd_ssthresh = w.ssthresh_segs;
	}
	tp->snd_ssthresh = current_ssthresh(tp);
}

SEC("struct_ops") void BPF_PROG(vegas_cong_avoid, struct sock *sk, uint32_t ack, uint32_t acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *ca = ca_priv(sk);

	if (!ca->enabled) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!before(ca->round_end_seq, ack)) {
		if (in_slow_start(tp))
			tcp_slow_start(tp, acked);
		return;
	}
	ca->round_end_seq = tp->snd_nxt;
	if (ca->law.samples <= VEGAS_FEW_SAMPLES)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		decide(tp, &ca->law, acked);
	vegas_start_round(&ca->law);
}

SEC("struct_ops") uint32_t BPF_PROG(vegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops") uint32_t BPF_PROG(vegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops vegas = {
	.name = "vegas",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)vegas_init,
	.ssthresh = (void *)vegas_ssthresh,
	.cong_avoid = (void *)vegas_cong_avoid,
	.set_state = (void *)vegas_set_state,
	.cwnd_event = (void *)vegas_cwnd_event,
	.pkts_acked = (void *)vegas_pkts_acked,
	.undo_cwnd = (void *)vegas_undo_cwnd,
};
