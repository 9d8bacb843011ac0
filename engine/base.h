/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compiler basics for freestanding code: fixed-width integers, inlining, assertions, minima. */
#ifndef VCC_BASE_H
#define VCC_BASE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Always inline: BPF limits all frames of a call chain to 512 bytes of stack together, and inlining
 * lets the compiler optimise a whole call of the engine.
 */
#define VCC_INLINE static inline __attribute__((always_inline))

/*
 * A function that a shell may compile out of line. The BPF verifier checks a global function once
 * instead of at every call site. It assumes that pointer arguments may be null and that the result
 * is a scalar, so such a function checks its pointers and returns an int.
 */
#ifndef VCC_APART
#define VCC_APART VCC_INLINE
#endif

/*
 * Asserts one of the engine's laws (vcc.h) where the state changes. Native debug builds check it;
 * in BPF it is empty, because the verifier would only see dead branches.
 */
#if defined(VCC_LAW)
/* A checker's own. */
#elif defined(VCC_CHECK_LAWS)
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

/* Saturating subtraction: a - b, or 0 if b > a. */
VCC_INLINE uint32_t vcc_sub_floor0(uint32_t a, uint32_t b)
{
	return a > b ? a - b : 0;
}

/* Hides the origin of a value from the compiler, which could otherwise turn it into a branch. */
VCC_INLINE uint64_t vcc_opaque(uint64_t value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

#endif
