/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flood.h on a struct tcp_sock, shared by BPF and the guest kernel.
 *
 * It is a cong_control: TCP leaves the window alone, then, also when the sender idles or does not
 * use it (RFC 7661), and PRR is ours.
 */
#ifndef VCC_GUEST_FLOOD_TCP_H
#define VCC_GUEST_FLOOD_TCP_H

#include "flood.h"

struct flood_connection {
	struct flood law;
	/* tcp_sock's variables after the last ACK. */
	uint32_t delivered_segs;
	uint32_t lost_segs;
	uint32_t snd_una;
};

static inline void flood_set_cwnd(struct tcp_sock *tp, uint32_t segs)
{
	tp->snd_cwnd = flood_min(segs, tp->snd_cwnd_clamp);
}

static inline uint32_t flood_in_flight_segs(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/*
 * The host admits a window of host_segs from now on, or none of its own (0). A reduction continues
 * by NewReno's window.
 */
static inline void flood_tcp_set_host(struct tcp_sock *tp, struct flood_connection *ca,
				      uint32_t host_segs)
{
	struct flood *law = &ca->law;

	if (host_segs == law->host_segs)
		return;
	law->host_segs = host_segs;
	if (law->is_online)
		flood_set_cwnd(tp, flood_window_segs(law));
}

/* TCP has set the initial window, which is NewReno's. */
static inline void flood_tcp_init(struct tcp_sock *tp, struct flood_connection *ca)
{
	flood_init(&ca->law, tp->snd_cwnd);
	ca->delivered_segs = tp->delivered;
	ca->lost_segs = tp->lost;
	ca->snd_una = tp->snd_una;
	flood_set_cwnd(tp, FLOOD_CWND_SEGS);
}

static inline void flood_tcp_ack(struct tcp_sock *tp, struct flood_connection *ca)
{
	struct flood_ack ack = {
		.delivered_segs = tp->delivered - ca->delivered_segs,
		.in_flight_segs = flood_in_flight_segs(tp),
		.prr_out_segs = tp->prr_out,
		.most_out_segs = tp->max_packets_out,
		.is_safe = tp->snd_una != ca->snd_una && tp->lost == ca->lost_segs,
	};

	ca->delivered_segs = tp->delivered;
	ca->lost_segs = tp->lost;
	ca->snd_una = tp->snd_una;
	if (ack.delivered_segs)
		flood_set_cwnd(tp, flood_on_ack(&ca->law, &ack));
}

/* TCP has set prr_out to 0. Without an ACK (RACK's timer), this admits the fast retransmission. */
static inline uint32_t flood_tcp_ssthresh(struct tcp_sock *tp, struct flood_connection *ca)
{
	flood_set_cwnd(tp, flood_in_flight_segs(tp) + 1);
	return flood_reduce(&ca->law);
}

static inline void flood_tcp_set_state(struct tcp_sock *tp, struct flood_connection *ca,
				       uint8_t state)
{
	flood_set_cwnd(tp, flood_set_state(&ca->law, state, tp->snd_cwnd));
	/* Metrics of the route take ssthresh from connections that have one, and half of cwnd. */
	if (ca->law.is_online)
		tp->snd_ssthresh = FLOOD_SSTHRESH_INFINITE;
}

/* Data leaves, and none is in flight; lsndtime is that of the data before. */
static inline void flood_tcp_start(const struct tcp_sock *tp, struct flood_connection *ca,
				   uint32_t now_jiffies)
{
	uint32_t rto_jiffies = tp->inet_conn.icsk_rto;

	if (!tp->packets_out && rto_jiffies)
		flood_restart(&ca->law, (now_jiffies - tp->lsndtime) / rto_jiffies);
}

#endif
