/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Modular arithmetic on sequence numbers and on 32-bit microsecond clocks (RFC 9293, 3.4). */
#ifndef VCC_SEQ_H
#define VCC_SEQ_H

#include "base.h"

VCC_INLINE bool seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

VCC_INLINE bool seq_after(uint32_t a, uint32_t b)
{
	return seq_before(b, a);
}

VCC_INLINE uint32_t seq_max(uint32_t a, uint32_t b)
{
	return seq_after(a, b) ? a : b;
}

VCC_INLINE uint32_t seq_min(uint32_t a, uint32_t b)
{
	return seq_before(a, b) ? a : b;
}

/* The largest window (RFC 7323, 2.3). */
#define SEQ_WINDOW_MAX (1u << 30)

/*
 * Is `seq` within the largest window of `at`? Beyond that distance, modular comparison is
 * meaningless; and between the two ends of the range as well, so the lower one is not in it.
 */
VCC_INLINE bool seq_plausible(uint32_t at, uint32_t seq)
{
	return seq - at + SEQ_WINDOW_MAX - 1 < 2 * SEQ_WINDOW_MAX;
}

/* Bytes from `from` to `to`; 0 if `to` is before `from`. */
VCC_INLINE uint32_t seq_distance(uint32_t from, uint32_t to)
{
	return seq_before(to, from) ? 0 : to - from;
}

#endif
