/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP options and flags: which are there, where their values lie, and whether they make sense. */
#ifndef VCC_OPTIONS_H
#define VCC_OPTIONS_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

#define PARSED		  COUNT_MAX /* the frame is TCP and well-formed */
#define OPTIONS_MAX_BYTES 40
#define TCP_HEADER_BYTES  20

/* Option kinds (RFC 9293, 3.1; RFC 2018; RFC 7323). */
#define KIND_END	    0
#define KIND_NOP	    1
#define KIND_MSS	    2
#define KIND_WSCALE	    3
#define KIND_SACK_PERMITTED 4
#define KIND_SACK	    5
#define KIND_TIMESTAMPS	    8
#define KIND_MD5	    19 /* RFC 2385 */
#define KIND_AO		    29 /* RFC 5925 */

/* NOP NOP Timestamps 10: all the options of nearly every segment (RFC 7323, appendix A). */
#define TIMESTAMPS_ONLY 0x0101080a

/* No TCP opens and closes at once, or sends outside of a handshake without ACK. */
static __always_inline bool flags_sane(uint16_t flags)
{
	if (flags & TCP_SYN)
		return !(flags & (TCP_FIN | TCP_RST));
	return flags & (TCP_ACK | TCP_RST);
}

struct option_walk {
	uint8_t bytes[64]; /* the options, then zeros; an index masked by 63 stays inside */
	uint32_t at;
	uint32_t length;
	uint16_t mss;
	uint8_t wscale;
	uint8_t options;
	uint8_t mss_at;
	uint8_t wscale_at;
	bool malformed;
	bool is_signed;
};

/* One option of the walk: bpf_loop's callback. */
static int option_step(uint32_t index, struct option_walk *w)
{
	(void)index;
	if (w->at >= w->length)
		return 1;
	uint32_t at = w->at & 63;
	uint8_t kind = w->bytes[at];

	if (kind == KIND_END)
		return 1;
	if (kind == KIND_NOP) {
		w->at++;
		return 0;
	}
	uint8_t length = w->bytes[(at + 1) & 63];

	if (at + 1 >= w->length || length < 2 || at + length > w->length) {
		w->malformed = true;
		return 1;
	}
	if (kind == KIND_MSS && length == 4) {
		w->options |= OPT_MSS;
		w->mss_at = (uint8_t)(at + 2);
		w->mss = (uint16_t)(w->bytes[(at + 2) & 63] << 8 | w->bytes[(at + 3) & 63]);
	} else if (kind == KIND_WSCALE && length == 3) {
		w->options |= OPT_WSCALE;
		w->wscale_at = (uint8_t)(at + 2);
		w->wscale = w->bytes[(at + 2) & 63];
	} else if (kind == KIND_SACK_PERMITTED && length == 2) {
		w->options |= OPT_SACK_PERMITTED;
	} else if (kind == KIND_TIMESTAMPS && length == 10) {
		w->options |= OPT_TIMESTAMPS;
	} else if (kind == KIND_SACK && length >= 10) {
		w->options |= OPT_SACK;
	} else if (kind == KIND_MD5 || kind == KIND_AO) {
		w->is_signed = true;
	}
	w->at += length;
	return 0;
}

/*
 * Fill in what the options say, and where (from the TCP header) the values of MSS and Window
 * Scale lie. `first` are the first four bytes of the options. Returns PARSED, or what is wrong.
 */
static __always_inline uint32_t parse_options(struct __sk_buff *skb, uint32_t l4_off,
					      uint32_t length, __be32 first, struct vcc_segment *s,
					      uint8_t *mss_off, uint8_t *wscale_off)
{
	s->options = 0;
	s->mss = 0;
	s->wscale = 0;
	*mss_off = 0;
	*wscale_off = 0;
	if (!length)
		return PARSED;
	if (first == bpf_htonl(TIMESTAMPS_ONLY) && length == 12 && !(s->flags & TCP_SYN)) {
		s->options = OPT_TIMESTAMPS;
		return PARSED;
	}
	struct option_walk w = { .length = length };

	/* The verifier loses the bound of a length that the compiler moved to another register. */
	asm volatile("" : "+r"(length));
	if (length < 1 || length > OPTIONS_MAX_BYTES ||
	    bpf_skb_load_bytes(skb, l4_off + TCP_HEADER_BYTES, w.bytes, length))
		return COUNT_BAD_OPTIONS;
	bpf_loop(OPTIONS_MAX_BYTES, option_step, &w, 0);
	if (w.malformed)
		return COUNT_BAD_OPTIONS;
	if (w.is_signed)
		return COUNT_SIGNED;
	s->options = w.options;
	s->mss = w.mss;
	s->wscale = w.wscale;
	if (w.options & OPT_MSS)
		*mss_off = TCP_HEADER_BYTES + w.mss_at;
	if (w.options & OPT_WSCALE)
		*wscale_off = TCP_HEADER_BYTES + w.wscale_at;
	return PARSED;
}

#endif
