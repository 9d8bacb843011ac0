/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that come to a port with their guest (engine/arrival.h). User space describes them.
 */
#ifndef VCC_DATAPATH_FLOW_ARRIVAL_H
#define VCC_DATAPATH_FLOW_ARRIVAL_H

#include <linux/errno.h>

#include "timers.h"
#include "wheel.h"

VCC_APART int engine_arrive(struct vcc_flow *f, const struct vcc_params *p, uint64_t now)
{
	return f && p ? vcc_arrive(f, p, now) : -EINVAL;
}

/*
 * Where the frame of a run has the connection, behind the place of an Ethernet header: where the
 * kernel aligns it as structs are.
 */
#define ARRIVAL_AT	16
#define ARRIVAL_FLOW_AT (ARRIVAL_AT + sizeof(struct vcc_key))

/* The flow that the frame describes, where it lies; null if the frame is too short. */
static __always_inline struct vcc_flow *described_flow(struct __sk_buff *skb)
{
	struct vcc_flow *f = (void *)(long)skb->data + ARRIVAL_FLOW_AT;

	return (void *)(f + 1) > (void *)(long)skb->data_end ? 0 : f;
}

/*
 * Judges the described flow where it lies, so that a refusal changes nothing at the port. Returns
 * 0, with its rule if the port has a policy, or an error as flow_arrive() does.
 */
static __always_inline int arrival_judge(struct vcc_flow *f, const struct vcc_key *key,
					 const struct vcc_port *port, uint64_t now, uint8_t epoch,
					 int *rule)
{
	const struct vcc_params *p = &port->params;

	if (port->by_policy) {
		*rule = judge(key, f->flags & FLOW_GUEST_OPENED, epoch);
		p = *rule < 0 ? 0 : rule_params(epoch, (uint32_t)*rule);
		if (!p)
			return -ENOENT;
	}
	if (engine_arrive(f, p, now))
		return -EINVAL;
	return port->by_policy && p->mode == MODE_IGNORE && !is_kept(f) ? -ENOENT : 0;
}

/*
 * Holds the flow that the port has of the connection. Returns 0 if the description must take its
 * place: the flow has left its rule then. Else it is not held: EALREADY, its guest comes back to
 * it; EEXIST, the port keeps it.
 */
static __always_inline int hold_outdone(struct vcc_entry *e, const struct vcc_flow *described,
					const struct vcc_port *port, const struct vcc_key *key,
					uint64_t tag, bool instead, uint32_t now_ms)
{
	struct vcc_flow *f = &e->flow;

	if (hold(e, key, tag) != LOCK_FREE)
		return -EEXIST;
	if (!e->half_open && (instead || gives_way_to_description(f))) {
		if (port->by_policy)
			leave_rule(f);
		return 0;
	}
	bool comes_back = vcc_come_back(f, described->snd_una, described->rcv_wup, now_ms);

	flow_unlock(&e->lock, false);
	return comes_back ? -EALREADY : -EEXIST;
}

/*
 * Takes over the connection that the frame describes by a struct vcc_arrival. Returns 0 or an
 * error: the port drains (ESHUTDOWN), it knows better (EEXIST), it or the host has no room
 * (ENOSPC), its policy leaves the connection alone (ENOENT), or no connection can have such a state
 * (EINVAL). An error leaves the port's flow of the connection as it was.
 */
static __noinline int flow_arrive(struct __sk_buff *skb, uint32_t index)
{
	struct vcc_key key __attribute__((aligned(8)));
	struct vcc_port *port = port_at(index);
	struct vcc_usage *used = usage_of(index);
	struct vcc_flow *described = described_flow(skb);
	uint64_t now = now_us();
	uint32_t now_ms = (uint32_t)(now / 1000);
	uint8_t epoch = current_epoch();
	struct vcc_entry *there;
	int rule = 0;

	if (!port || !used || !described || bpf_skb_load_bytes(skb, ARRIVAL_AT, &key, sizeof(key)))
		return -EINVAL;
	if (port->params.mode == MODE_DRAIN && skb->mark == ARRIVE_MARK)
		return -ESHUTDOWN;
	key.port = (uint16_t)index;
	int err = arrival_judge(described, &key, port, now, epoch, &rule);

	if (err)
		return err;
	timer_check(index, now_ms);
	uint64_t tag = flow_tag_apart(&key);
	struct vcc_entry *e = flow_of(tag);
	bool is_new = !e;

	if (e) {
		err =
		    hold_outdone(e, described, port, &key, tag, skb->mark == INSTEAD_MARK, now_ms);
		if (err)
			return err == -EALREADY ? 0 : err;
	} else {
		e = entry_create(&key, port, used, &there);
		if (!e)
			return there ? -EEXIST : -ENOSPC;
	}
	e->flow = *described;
	if (port->by_policy)
		come_under(&e->flow, epoch, (uint32_t)rule);
	err = (int)file(e, &key, now_ms, LOOK_MIN_MS, is_new);
	if (err)
		flow_forget(e, &key);
	else
		flow_unlock(&e->lock, false);
	return err;
}

#endif
