/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bounded access to a frame's bytes, for code that both shells compile. */
#ifndef VCC_FRAME_BYTES_H
#define VCC_FRAME_BYTES_H

#include "base.h"

#if defined(__bpf__)

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* An skb, of which a part may not be linear. */
typedef struct __sk_buff frame_bytes;

/* Copies `length` bytes at `off`; not 0: the frame ends before. */
VCC_INLINE long load_bytes(const frame_bytes *frame, uint32_t off, void *to, uint32_t length)
{
	return bpf_skb_load_bytes(frame, off, to, length);
}

#else

/* A frame in memory. */
typedef struct {
	const uint8_t *bytes;
	uint64_t length;
} frame_bytes;

VCC_INLINE long load_bytes(const frame_bytes *frame, uint32_t off, void *to, uint32_t length)
{
	if (off > frame->length || length > frame->length - off)
		return -1;
	for (uint32_t i = 0; i < length; i++)
		((uint8_t *)to)[i] = frame->bytes[off + i];
	return 0;
}

#endif

#endif
