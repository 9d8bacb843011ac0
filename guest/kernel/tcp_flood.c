// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vFlood's guest (Gamage et al. 2011): see flood.h. In the lab's kernels, and in others by DKMS. */
#include <linux/module.h>
#include <linux/version.h>
#include <net/tcp.h>
#include "flood_tcp.h"

static void flood_on_init(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct flood_connection) > ICSK_CA_PRIV_SIZE);
	flood_tcp_init(tcp_sk(sk), inet_csk_ca(sk));
	/* Small queues and segment sizes follow this rate, and the queue is the driver domain. */
	WRITE_ONCE(sk->sk_pacing_rate, ~0ul);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void flood_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void flood_cong_control(struct sock *sk, const struct rate_sample *rs)
#endif
{
	flood_tcp_ack(tcp_sk(sk), inet_csk_ca(sk));
}

static u32 flood_ssthresh(struct sock *sk)
{
	return flood_tcp_ssthresh(tcp_sk(sk), inet_csk_ca(sk));
}

static void flood_on_state(struct sock *sk, u8 new_state)
{
	flood_tcp_set_state(tcp_sk(sk), inet_csk_ca(sk), new_state);
}

static void flood_on_start(struct sock *sk)
{
	flood_tcp_start(tcp_sk(sk), inet_csk_ca(sk), tcp_jiffies32);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
static void flood_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		flood_on_start(sk);
}
#endif

static u32 flood_undo_cwnd(struct sock *sk)
{
	struct flood_connection *ca = inet_csk_ca(sk);

	return flood_undo(&ca->law);
}

static struct tcp_congestion_ops flood __read_mostly = {
	.name = "flood",
	.owner = THIS_MODULE,
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = flood_on_init,
	.ssthresh = flood_ssthresh,
	.cong_control = flood_cong_control,
	.set_state = flood_on_state,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
	.cwnd_event_tx_start = flood_on_start,
#else
	.cwnd_event = flood_cwnd_event,
#endif
	.undo_cwnd = flood_undo_cwnd,
};

static int __init flood_register(void)
{
	return tcp_register_congestion_control(&flood);
}
module_init(flood_register);

static void __exit flood_unregister(void)
{
	tcp_unregister_congestion_control(&flood);
}
module_exit(flood_unregister);

MODULE_DESCRIPTION("vFlood's guest");
MODULE_LICENSE("Dual BSD/GPL");
