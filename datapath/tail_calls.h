/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a port's own program (port.bpf.c) reaches the host's (vcc.bpf.c). */
#ifndef VCC_TAIL_CALLS_H
#define VCC_TAIL_CALLS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

/* An array for each direction: the programs of an array are of one attach type. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, CALLS);
	__type(key, uint32_t);
	__type(value, uint32_t);
} call_from_guest SEC(".maps"), call_to_guest SEC(".maps");

#endif
