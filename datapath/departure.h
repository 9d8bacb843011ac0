/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a segment leaves the port's device: its earliest departure time, which the device's queueing
 * discipline heeds if it is sch_fq. Any other sends the segment at once.
 */
#ifndef VCC_DEPARTURE_H
#define VCC_DEPARTURE_H

#include "kernel.h"

#define NS_PER_US 1000ull

static __always_inline void depart_after(struct __sk_buff *skb, uint32_t delay_us)
{
	skb->tstamp = bpf_ktime_get_ns() + delay_us * NS_PER_US;
}

#endif
