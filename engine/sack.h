/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What of a SACK option (RFC 2018) tells of data that came twice (RFC 2883). */
#ifndef VCC_SACK_H
#define VCC_SACK_H

#include "seq.h"

/* A range of sequence numbers that the peer has, `right` being one past it (RFC 2018, 3). */
struct vcc_sack_block {
	uint32_t left;
	uint32_t right;
};

/*
 * RFC 2883, 4: a first block of what `ack` acknowledges, or of what lies within the second block,
 * is of data that came twice. So many bytes; 0 if it is not. A second block that is not there is
 * empty.
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
