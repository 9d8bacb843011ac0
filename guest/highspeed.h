/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* HighSpeed TCP's response function (RFC 3649), shared by the kernel and the tests. */
#ifndef VCC_GUEST_HIGHSPEED_H
#define VCC_GUEST_HIGHSPEED_H

#include <stdint.h>

#define HIGHSPEED_ROWS 72u
/* Minimum of ssthresh (RFC 5681, 3.1). */
#define HIGHSPEED_MIN_CWND_SEGS 2u

struct highspeed_row {
	uint32_t cwnd_segs;
	uint32_t b_256ths;
};

/*
 * RFC 3649, appendix B. In row i, counted from 1, a(w) is i. b(w) is computed by section 5 in
 * 256ths; the appendix rounds it to two decimals. The first row is Standard TCP's response
 * (Low_Window, section 5).
 */
static const struct highspeed_row highspeed_table[HIGHSPEED_ROWS] = {
	/* clang-format off */
	{ 38, 128 }, { 118, 112 }, { 221, 104 }, { 347, 98 },
	{ 495, 93 }, { 663, 89 }, { 851, 86 }, { 1058, 83 },
	{ 1284, 81 }, { 1529, 78 }, { 1793, 76 }, { 2076, 74 },
	{ 2378, 72 }, { 2699, 71 }, { 3039, 69 }, { 3399, 68 },
	{ 3778, 66 }, { 4177, 65 }, { 4596, 64 }, { 5036, 62 },
	{ 5497, 61 }, { 5979, 60 }, { 6483, 59 }, { 7009, 58 },
	{ 7558, 57 }, { 8130, 56 }, { 8726, 55 }, { 9346, 54 },
	{ 9991, 53 }, { 10661, 52 }, { 11358, 52 }, { 12082, 51 },
	{ 12834, 50 }, { 13614, 49 }, { 14424, 48 }, { 15265, 48 },
	{ 16137, 47 }, { 17042, 46 }, { 17981, 45 }, { 18955, 45 },
	{ 19965, 44 }, { 21013, 43 }, { 22101, 43 }, { 23230, 42 },
	{ 24402, 41 }, { 25618, 41 }, { 26881, 40 }, { 28193, 39 },
	{ 29557, 39 }, { 30975, 38 }, { 32450, 38 }, { 33986, 37 },
	{ 35586, 36 }, { 37253, 36 }, { 38992, 35 }, { 40808, 35 },
	{ 42707, 34 }, { 44694, 33 }, { 46776, 33 }, { 48961, 32 },
	{ 51258, 32 }, { 53677, 31 }, { 56230, 30 }, { 58932, 30 },
	{ 61799, 29 }, { 64851, 28 }, { 68113, 28 }, { 71617, 27 },
	{ 75401, 26 }, { 79517, 26 }, { 84035, 25 }, { 89053, 24 },
	/* clang-format on */
};

/* The index of a window's row: the first whose window is not smaller, or the last. */
static inline uint32_t highspeed_row(uint32_t cwnd_segs)
{
	uint32_t row = 0;

	while (row < HIGHSPEED_ROWS - 1 && highspeed_table[row].cwnd_segs < cwnd_segs)
		row++;
	return row;
}

/* w = w + a(w) / w on an ACK (RFC 3649, 5). */
static inline uint32_t highspeed_a_segs(uint32_t row)
{
	return row + 1;
}

/* w = (1 - b(w)) * w on congestion (RFC 3649, 5). */
static inline uint32_t highspeed_reduced_segs(uint32_t cwnd_segs, uint32_t row)
{
	uint32_t left_segs;

	if (row >= HIGHSPEED_ROWS)
		row = HIGHSPEED_ROWS - 1;
	left_segs = cwnd_segs - ((uint64_t)cwnd_segs * highspeed_table[row].b_256ths >> 8);
	return left_segs > HIGHSPEED_MIN_CWND_SEGS ? left_segs : HIGHSPEED_MIN_CWND_SEGS;
}

#endif
