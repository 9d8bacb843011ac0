/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options that both shells append to segments, in the layout of feedback.h. */
#ifndef VCC_OUR_OPTIONS_H
#define VCC_OUR_OPTIONS_H

#include "options.h"

/* In network byte order; a FACK is the longest. */
struct our_option {
	uint16_t words[OPT_FACK_BYTES / 2];
};

VCC_INLINE void write_counters(uint16_t words[3], const struct vcc_feedback *feedback)
{
	uint32_t ect0_bytes = feedback->ect0_bytes, ce_bytes = feedback->ce_bytes;

	words[0] = vcc_be16((uint16_t)(ect0_bytes >> 8));
	words[1] = vcc_be16((uint16_t)(ect0_bytes << 8 | (ce_bytes >> 16 & 0xff)));
	words[2] = vcc_be16((uint16_t)ce_bytes);
}

VCC_INLINE struct our_option option_pack(const struct vcc_feedback *feedback)
{
	struct our_option option = { .words = { vcc_be16(KIND_PACK << 8 | OPT_PACK_BYTES) } };

	write_counters(option.words + 1, feedback);
	return option;
}

VCC_INLINE struct our_option option_hello(uint8_t hello)
{
	return (struct our_option){ .words = {
					vcc_be16(KIND_EXPERIMENT << 8 | OPT_HELLO_BYTES),
					vcc_be16(EXPERIMENT_ID),
					vcc_be16((uint16_t)(OURS_VERSION << 8 | hello)),
				    } };
}

VCC_INLINE struct our_option option_fack(const struct vcc_feedback *feedback)
{
	struct our_option option = { .words = {
					 vcc_be16(KIND_EXPERIMENT << 8 | OPT_FACK_BYTES),
					 vcc_be16(EXPERIMENT_ID),
					 vcc_be16(OURS_VERSION << 8 | OURS_FACK),
				     } };

	write_counters(option.words + 3, feedback);
	return option;
}

#endif
