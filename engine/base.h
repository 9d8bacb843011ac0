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
 * A function that a shell may want compiled on its own, because what checks its code goes through
 * every path of it at every call. Such functions take pointers that may be null as far as their
 * checker knows, and return an int.
 */
#ifndef VCC_APART
#define VCC_APART VCC_INLINE
#endif

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

/* The same value; the compiler does not know that, and makes no branch of how it came about. */
VCC_INLINE uint64_t vcc_opaque(uint64_t value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

#endif
