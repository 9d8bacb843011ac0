/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads the options of a segment in an skb, and parses them. */
#ifndef VCC_LOAD_OPTIONS_H
#define VCC_LOAD_OPTIONS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bounds.h"
#include "options.h"

/*
 * Parses the options into the segment, of which all that they set is 0, and their offsets into
 * `places`, which are 0. Returns PARSED or COUNT_MALFORMED. Out of line, so that its stack is
 * released before the engine runs.
 */
VCC_APART int parse_options(struct __sk_buff *skb, uint32_t l4_off, uint32_t length,
			    struct vcc_segment *s, struct option_places *places)
{
	if (!s || !places)
		return COUNT_MALFORMED;
	/* Zeros that the verifier does not know, or it would follow the walk option by option. */
	uint64_t zero = unknown_zero(skb);
	uint64_t bytes = length;
	struct option_walk w = {
		.at = zero,
		.length = length,
		.segment = s,
		.places = places,
	};

	if (!is_bounded(&bytes, OPTIONS_MAX_BYTES) ||
	    bpf_skb_load_bytes(skb, l4_off + TCP_HEADER_BYTES, w.bytes, bytes))
		return COUNT_MALFORMED;
	bpf_loop(OPTIONS_MAX_BYTES, option_step, &w, 0);
	return PARSED;
}

#endif
