/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the engine needs of its compiler: fixed-width integers, inlining, assertions. */
#ifndef VCC_BASE_H
#define VCC_BASE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The engine is always inlined: the BPF stack is 512 bytes for all frames together, and the
 * compiler sees through a whole call of the engine.
 */
#define VCC_INLINE static inline __attribute__((always_inline))

/*
 * A law of the design, stated where the state changes. Natively a broken law ends the process
 * (the tests run with it on); in the kernel the verifier would only see dead branches.
 */
#if defined(VCC_CHECK_LAWS)
void vcc_law_broken(const char *law, const char *file, int line);
#define VCC_LAW(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			vcc_law_broken(#cond, __FILE__, __LINE__);                                 \
	} while (0)
#else
#define VCC_LAW(cond) ((void)0)
#endif

VCC_INLINE uint32_t vcc_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

VCC_INLINE uint32_t vcc_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* a - b, or 0 where that would be negative. */
VCC_INLINE uint32_t vcc_sub_floor0(uint32_t a, uint32_t b)
{
	return a > b ? a - b : 0;
}

#endif
