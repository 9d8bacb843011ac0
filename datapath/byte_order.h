/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers in network byte order, for code that is compiled without libbpf's headers, too. */
#ifndef VCC_BYTE_ORDER_H
#define VCC_BYTE_ORDER_H

#include "base.h"

/* From and to network byte order. */
VCC_INLINE uint16_t vcc_be16(uint16_t number)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(number);
#else
	return number;
#endif
}

VCC_INLINE uint32_t vcc_be32(uint32_t number)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap32(number);
#else
	return number;
#endif
}

#endif
