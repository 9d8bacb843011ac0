/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounds of a length that a helper takes.
 *
 * Before Linux 7.2 the verifier keeps signed and unsigned bounds of a register apart; since then it
 * keeps one range, which may wrap around zero. The lower bound of a difference is lost there if it
 * is tested first: the result still wraps, and the test of the upper bound then gives [0, most].
 * With the upper bound first nothing wraps any more.
 */
#ifndef VCC_BOUNDS_H
#define VCC_BOUNDS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "base.h"

/*
 * Is a length between 1 and `most` bytes? The helper must be given the same variable. The barriers
 * keep the compiler from joining the two comparisons, swapping them, or testing a copy.
 */
static __always_inline bool is_bounded(uint64_t *length, uint32_t most)
{
	asm volatile("" : "+r"(*length));
	if (*length > most)
		return false;
	asm volatile("" : "+r"(*length));
	return *length >= 1;
}

/*
 * A 0 that the verifier does not know as such. It follows each value that it knows separately, and
 * those that it does not know together.
 */
static __always_inline uint32_t unknown_zero(const struct __sk_buff *skb)
{
	return (uint32_t)vcc_opaque(skb->len) ^ skb->len;
}

#endif
