// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a connection's state from the kernel, with the congestion control's private state. */
#include <linux/pkt_cls.h>
#include "tcp.h"

struct seen {
	uint32_t cwnd_segs;
	uint32_t cwnd_cnt;
	uint32_t ssthresh_segs;
	uint32_t ca_state;
	uint32_t ecn_flags;
	uint32_t ca_priv[2 * CA_PRIV_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct bpf_sock_tuple);
} asked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct seen);
} seen SEC(".maps");

/* Run by BPF_PROG_RUN in the connection's network namespace; returns whether it was found. */
SEC("tc") int read_state(struct __sk_buff *skb)
{
	uint32_t zero = 0;
	struct bpf_sock_tuple *a = bpf_map_lookup_elem(&asked, &zero);
	struct seen *s = bpf_map_lookup_elem(&seen, &zero);

	if (!a || !s)
		return 0;
	struct bpf_sock *sk = bpf_sk_lookup_tcp(skb, a, sizeof(a->ipv4), BPF_F_CURRENT_NETNS, 0);

	if (!sk)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (tp) {
		s->cwnd_segs = tp->snd_cwnd;
		s->cwnd_cnt = tp->snd_cwnd_cnt;
		s->ssthresh_segs = tp->snd_ssthresh;
		s->ca_state = ca_state((struct sock *)tp);
		s->ecn_flags = tp->ecn_flags;
		bpf_probe_read_kernel(s->ca_priv, sizeof(s->ca_priv), ca_priv((struct sock *)tp));
	}
	bpf_sk_release(sk);
	return !!tp;
}
