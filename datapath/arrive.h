/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that come to a port with their guest (engine/arrive.h). User space describes them. */
#ifndef VCC_DATAPATH_ARRIVE_H
#define VCC_DATAPATH_ARRIVE_H

#include <linux/errno.h>

#include "timers.h"
#include "wheel.h"

VCC_APART int engine_arrive(struct vcc_flow *f, const struct vcc_params *p, uint64_t now)
{
	return f && p ? vcc_arrive(f, p, now) : -EINVAL;
}

/* Lets a held flow arrive under the policy's rule for it. Returns 0 or an error. */
static __always_inline int arrive_under_policy(struct vcc_entry *e, const struct vcc_key *key,
					       uint64_t now)
{
	uint8_t epoch = current_epoch();
	int rule = judge(key, e->flow.flags & FLOW_GUEST_OPENED, epoch);
	struct vcc_params *p = rule < 0 ? 0 : rule_params(epoch, (uint32_t)rule);

	if (!p || (p->mode == MODE_IGNORE && !is_kept(&e->flow)))
		return -ENOENT;
	if (engine_arrive(&e->flow, p, now))
		return -EINVAL;
	come_under(&e->flow, epoch, (uint32_t)rule);
	return 0;
}

/* Where the frame of a run has the described flow, behind the place of an Ethernet header. */
#define ARRIVAL_AT	      ETH_HLEN
#define ARRIVAL_FLOW_AT	      (ARRIVAL_AT + sizeof(struct vcc_key))
#define ARRIVAL_NUMBER(field) (ARRIVAL_FLOW_AT + __builtin_offsetof(struct vcc_flow, field))

/*
 * Holds the flow that the port has of the connection, and takes it from its rule, if the
 * description says more or is to hold instead. Returns 0, or EEXIST: the port knows better.
 */
static __always_inline int hold_outdone(struct __sk_buff *skb, struct vcc_entry *e,
					const struct vcc_port *port, const struct vcc_key *key,
					uint64_t tag)
{
	uint32_t snd_una, rcv_wup;

	if (bpf_skb_load_bytes(skb, ARRIVAL_NUMBER(snd_una), &snd_una, sizeof(snd_una)) ||
	    bpf_skb_load_bytes(skb, ARRIVAL_NUMBER(rcv_wup), &rcv_wup, sizeof(rcv_wup)))
		return -EINVAL;
	if (hold(e, key, tag) != LOCK_FREE)
		return -EEXIST;
	if (e->half_open ||
	    (skb->mark != INSTEAD_MARK && !is_outdone(&e->flow, snd_una, rcv_wup))) {
		flow_unlock(&e->lock, false);
		return -EEXIST;
	}
	if (port->by_policy)
		leave_rule(&e->flow);
	return 0;
}

/*
 * Takes over the connection that the frame describes by a struct vcc_arrival. Returns 0 or an
 * error: the port drains (ESHUTDOWN), it knows better (EEXIST), it or the host has no room
 * (ENOSPC), its policy leaves the connection alone (ENOENT), or no connection is like that
 * (EINVAL).
 */
static __noinline int flow_arrive(struct __sk_buff *skb, uint32_t index)
{
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_port *port = port_at(index);
	struct vcc_usage *used = usage_of(index);
	uint64_t now = now_us();
	uint32_t now_ms = (uint32_t)(now / 1000);
	struct vcc_entry *there;
	int err;

	if (!port || !used || bpf_skb_load_bytes(skb, ARRIVAL_AT, &key, sizeof(key)))
		return -EINVAL;
	if (port->params.mode == MODE_DRAIN && skb->mark == ARRIVE_MARK)
		return -ESHUTDOWN;
	key.port = (uint16_t)index;
	timer_check(index, now_ms);
	uint64_t tag = flow_tag_apart(&key);
	struct vcc_entry *e = flow_of(tag);
	bool is_new = !e;

	if (e) {
		err = hold_outdone(skb, e, port, &key, tag);
		if (err)
			return err;
	} else {
		e = entry_create(&key, port, used, &there);
		if (!e)
			return there ? -EEXIST : -ENOSPC;
	}
	err = (int)bpf_skb_load_bytes(skb, ARRIVAL_FLOW_AT, &e->flow, sizeof(e->flow));
	if (!err && port->by_policy)
		err = arrive_under_policy(e, &key, now);
	else if (!err && engine_arrive(&e->flow, &port->params, now))
		err = -EINVAL;
	if (!err)
		err = (int)file(e, &key, now_ms, LOOK_MIN_MS, is_new);
	if (err)
		flow_forget(e, &key);
	else
		flow_unlock(&e->lock, false);
	return err;
}

#endif
