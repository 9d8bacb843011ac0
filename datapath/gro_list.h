/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trains: with `rx-gro-list`, a device's GRO keeps TCP segments as a list of whole packets, of
 * which a program sees the first one's headers, and the kernel copies only changes of addresses and
 * ports to the others. A train whose list is gone is segmented like any super-segment, each part
 * with the headers as they were rewritten (Linux 6.12, tcp4_gso_segment()).
 */
#ifndef VCC_GRO_LIST_H
#define VCC_GRO_LIST_H

#include "kernel.h"

/* Makes one packet of a train. Returns 0, or an error: there is no memory for it. */
static __always_inline long train_join(struct __sk_buff *skb)
{
	if (!skb->gso_size || (uint32_t)(skb->data_end - skb->data) >= skb->len)
		return 0;
	uint32_t type = gso_type(skb);

	if (!(type & SKB_GSO_FRAGLIST) || !(type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)))
		return 0;
	return bpf_skb_pull_data(skb, skb->len);
}

#endif
