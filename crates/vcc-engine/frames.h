/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What user space keeps of a TCP header, besides the segment. */
#ifndef VCC_FRAMES_H
#define VCC_FRAMES_H

#include "our_options.h"

/* Offsets are from the start of the TCP header; 0: not present. */
struct vcc_tcp_layout {
	struct option_places options;
	uint8_t header_bytes;
	uint8_t timestamps_off; /* of TSval; TSecr follows */
	uint8_t sack_off;	/* of the option's kind */
	uint8_t sack_bytes;	/* with kind and length */
};

#endif
