/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that come to a port with their guest (engine/arrive.h). User space describes them. */
#ifndef VCC_DATAPATH_ARRIVE_H
#define VCC_DATAPATH_ARRIVE_H

#include <linux/errno.h>

#include "wheel.h"

/* Brings a held flow under the policy's rule for it. Null: the policy leaves it alone. */
static __always_inline struct vcc_params *place_under(struct vcc_entry *e,
						      const struct vcc_key *key)
{
	uint8_t epoch = current_epoch();
	int rule = judge(key, e->flow.flags & FLOW_GUEST_OPENED, epoch);
	struct vcc_params *p = rule < 0 ? 0 : rule_params(epoch, (uint32_t)rule);

	if (!p || (p->mode == MODE_IGNORE && !is_kept(&e->flow)))
		return 0;
	come_under(&e->flow, epoch, (uint32_t)rule);
	return p;
}

VCC_APART int engine_arrive(struct vcc_flow *f, const struct vcc_params *p, uint64_t now)
{
	return f && p ? vcc_arrive(f, p, now) : -EINVAL;
}

/*
 * Takes over the connection that the frame describes: behind the place of an Ethernet header, a
 * struct vcc_arrival. Returns 0 or an error: the port drains (ESHUTDOWN), it knows the connection
 * (EEXIST), it or the host has no room (ENOSPC), its policy leaves it alone (ENOENT), or no
 * connection is like that (EINVAL).
 */
static __noinline int flow_arrive(struct __sk_buff *skb, uint32_t index)
{
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_port *port = port_at(index);
	struct vcc_usage *used = usage_of(index);
	struct vcc_entry *there;

	if (!port || !used || bpf_skb_load_bytes(skb, ETH_HLEN, &key, sizeof(key)))
		return -EINVAL;
	if (port->params.mode == MODE_DRAIN)
		return -ESHUTDOWN;
	key.port = (uint16_t)index;
	if (bpf_map_lookup_elem(&flows, &key))
		return -EEXIST;
	struct vcc_entry *e = entry_create(&key, port, used, &there);

	if (!e)
		return there ? -EEXIST : -ENOSPC;
	uint64_t now = now_us();
	struct vcc_params *p = &port->params;
	int err = (int)bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(key), &e->flow, sizeof(e->flow));

	if (!err && port->by_policy) {
		p = place_under(e, &key);
		err = p ? 0 : -ENOENT;
	}
	if (!err && (engine_arrive(&e->flow, p, now) ||
		     file(e, &key, (uint32_t)(now / 1000), LOOK_MIN_MS, true)))
		err = -EINVAL;
	if (err)
		flow_forget(e, &key);
	else
		flow_unlock(&e->lock, false);
	return err;
}

#endif
