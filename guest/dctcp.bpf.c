// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Data Center TCP (RFC 8257), with Linux's choices where the RFC leaves one. */
#include "tcp.h"
#include "dctcp.h"

#define SOL_TCP 6

struct dctcp {
	uint32_t alpha;		 /* DCTCP.Alpha */
	uint32_t window_end_seq; /* DCTCP.WindowEnd */
	/* tcp_sock's counters at the start of this observation window. */
	uint32_t delivered_segs;
	uint32_t delivered_ce_segs;
	uint32_t undo_cwnd_segs;
	uint32_t ce;		/* DCTCP.CE: was the last data received marked? */
	uint32_t prior_rcv_nxt; /* end of that data */
	uint32_t segs_out;	/* tcp_sock's counter when it arrived */
};

_Static_assert(sizeof(struct dctcp) <= CA_PRIV_WORDS * sizeof(uint64_t), "too large for ca_priv");

static const char reno[] = "reno";

static __always_inline void start_window(const struct tcp_sock *tp, struct dctcp *ca)
{
	ca->window_end_seq = tp->snd_nxt;
	ca->delivered_segs = tp->delivered;
	ca->delivered_ce_segs = tp->delivered_ce;
}

SEC("struct_ops") void BPF_PROG(dctcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = ca_priv(sk);

	/*
	 * Without ECN, only losses remain to react to. Changing to Reno also stops the kernel from
	 * sending every segment as ECT(0), which it does since the handshake.
	 */
	if (!(tp->ecn_flags & TCP_ECN_OK)) {
		bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)reno, sizeof(reno));
		return;
	}
	/*
	 * The first reduction halves the window, because there is no estimate yet (RFC 8257, 4.2).
	 */
	ca->alpha = DCTCP_ALPHA_ONE;
	ca->undo_cwnd_segs = 0;
	ca->ce = 0;
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->segs_out = tp->segs_out - 1; /* no data to acknowledge yet */
	start_window(tp, ca);
}

/* Called once per window with marks or losses; the kernel sends CWR (RFC 3168, 6.1.2). */
SEC("struct_ops") uint32_t BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = ca_priv(sk);

	ca->undo_cwnd_segs = tp->snd_cwnd;
	return dctcp_reduced_segs(tp->snd_cwnd, ca->alpha);
}

/* Updates alpha once per observation window (RFC 8257, 3.3). */
SEC("struct_ops") void BPF_PROG(dctcp_in_ack_event, struct sock *sk, uint32_t flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = ca_priv(sk);

	if (before(tp->snd_una, ca->window_end_seq))
		return;
	ca->alpha = dctcp_next_alpha(ca->alpha, tp->delivered - ca->delivered_segs,
				     tp->delivered_ce - ca->delivered_ce_segs);
	start_window(tp, ca);
}

static __always_inline void react_to_loss(struct tcp_sock *tp, struct dctcp *ca)
{
	ca->undo_cwnd_segs = tp->snd_cwnd;
	tp->snd_ssthresh = dctcp_halved_segs(tp->snd_cwnd);
}

SEC("struct_ops") void BPF_PROG(dctcp_set_state, struct sock *sk, uint8_t new_state)
{
	/* The kernel has just called ssthresh, which does not distinguish losses from marks. */
	if (new_state == TCP_CA_Recovery && ca_state(sk) != TCP_CA_Recovery)
		react_to_loss(tcp_sk(sk), ca_priv(sk));
}

/* Sets ECE on all further ACKs or on none, independent of CWR, unlike RFC 3168. */
static __always_inline void echo(struct tcp_sock *tp, bool ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/*
 * When DCTCP.CE changes, data received before is acknowledged at once with the old value (RFC 8257,
 * 3.2). A delayed ACK then never covers both marked and unmarked data, so the sender knows exactly
 * how much was marked.
 *
 * Every segment sent acknowledges, so earlier data is unacknowledged if no segment has left since.
 * The delayed-ACK timer is no indication: while the kernel processes its backlog, it delays ACKs
 * without a timer.
 */
static __always_inline void ce_arrived(struct tcp_sock *tp, struct dctcp *ca, bool ce)
{
	if (ce != ca->ce) {
		if (tp->segs_out == ca->segs_out) {
			echo(tp, ca->ce);
			bpf_tcp_send_ack(tp, ca->prior_rcv_nxt);
		}
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
		ca->ce = ce;
	}
	/* rcv_nxt already includes the data of this event. */
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->segs_out = tp->segs_out;
	echo(tp, ce);
}

SEC("struct_ops") void BPF_PROG(dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = ca_priv(sk);

	switch (event) {
	case CA_EVENT_ECN_IS_CE:
		ce_arrived(tp, ca, true);
		break;
	case CA_EVENT_ECN_NO_CE:
		ce_arrived(tp, ca, false);
		break;
	case CA_EVENT_LOSS: /* a retransmission timeout */
		react_to_loss(tp, ca);
		break;
	default:
		break;
	}
}

/* DCTCP grows like Reno (RFC 8257, 3.4). */
SEC("struct_ops") void BPF_PROG(dctcp_cong_avoid, struct sock *sk, uint32_t ack, uint32_t acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops") uint32_t BPF_PROG(dctcp_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = ca_priv(sk);

	return ca->undo_cwnd_segs > tp->snd_cwnd ? ca->undo_cwnd_segs : tp->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops dctcp = {
	.name = "dctcp",
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
	.init = (void *)dctcp_init,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
};
