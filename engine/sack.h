/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DSACK: duplicate data reported in a SACK option (RFC 2883). */
#ifndef VCC_SACK_H
#define VCC_SACK_H

#include "seq.h"

/* A SACK block (RFC 2018, 3): [left, right). */
struct vcc_sack_block {
	uint32_t left;
	uint32_t right;
};

/*
 * The length of the DSACK block, or 0 if there is none. RFC 2883, 4: the first block reports a
 * duplicate if it lies below `ack` or within the second block. A missing second block is empty.
 */
VCC_INLINE uint32_t dsack_bytes(uint32_t ack, struct vcc_sack_block first,
				struct vcc_sack_block second)
{
	bool acknowledged = !seq_after(first.right, ack);
	bool inside = !seq_before(first.left, second.left) && !seq_after(first.right, second.right);

	if (!seq_before(first.left, first.right) || !(acknowledged || inside))
		return 0;
	return first.right - first.left;
}

#endif
