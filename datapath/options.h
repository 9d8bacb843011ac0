/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses TCP options: their values, their offsets, and whether they are valid. Both shells compile
 * this file; each has its own way to the bytes (load_options.h).
 */
#ifndef VCC_OPTIONS_H
#define VCC_OPTIONS_H

#include "abi.h"
#include "sack.h"
#include "tcp_header.h"

/* Option kinds (RFC 9293, 3.1; RFC 2018; RFC 7323). */
#define KIND_END	    0
#define KIND_NOP	    1
#define KIND_MSS	    2
#define KIND_WSCALE	    3
#define KIND_SACK_PERMITTED 4
#define KIND_SACK	    5
#define KIND_TIMESTAMPS	    8
#define KIND_MD5	    19	/* RFC 2385 */
#define KIND_AO		    29	/* RFC 5925 */
#define KIND_MPTCP	    30	/* RFC 8684 */
#define KIND_PACK	    172 /* AccECN0 (RFC 9768, 3.2.3); see feedback.h */
#define KIND_ACCECN1	    174 /* AccECN1, with the ECT counters in the other order */
#define KIND_EXPERIMENT	    253 /* RFC 6994 */

/* Our experimental option: ExID "vc", version, type (RFC 6994). */
#define EXPERIMENT_ID 0x7663
#define OURS_VERSION  1
#define OURS_FACK     3 /* beside enum vcc_hello */

/* NOP NOP Timestamps 10: the only options of nearly every segment (RFC 7323, appendix A). */
#define TIMESTAMPS_ONLY 0x0101080a

/* Offsets of option values from the start of the TCP header; 0: not present. */
struct option_places {
	uint64_t ours; /* mask of the option bytes to strip; bit 0 is the first byte */
	uint8_t mss_off;
	uint8_t wscale_off;
	uint8_t end_off; /* offset of KIND_END; options after it are not read */
	bool malformed;	 /* an invalid option ended the walk */
} __attribute__((packed, aligned(4)));

/*
 * The result goes to the caller's memory, and not through the stack: the verifier follows no values
 * of memory behind a pointer, but on the stack it would follow each set of options that a walk may
 * have found so far.
 */
struct option_walk {
	uint8_t bytes[64]; /* the options; an index masked by 63 is in bounds */
	uint64_t at;
	uint64_t length;
	struct vcc_segment *segment;
	struct option_places *places;
};

VCC_INLINE uint32_t be24(const struct option_walk *w, uint32_t at)
{
	return (uint32_t)w->bytes[at & 63] << 16 | (uint32_t)w->bytes[(at + 1) & 63] << 8 |
	       w->bytes[(at + 2) & 63];
}

VCC_INLINE uint32_t be32(const struct option_walk *w, uint32_t at)
{
	return (uint32_t)w->bytes[at & 63] << 24 | be24(w, at + 1);
}

VCC_INLINE struct vcc_sack_block sack_block(const struct option_walk *w, uint32_t at)
{
	return (struct vcc_sack_block){ .left = be32(w, at), .right = be32(w, at + 4) };
}

/* A mask of `length` bytes of the options from `at`, one bit per byte. */
VCC_INLINE uint64_t option_bytes(uint32_t at, uint32_t length)
{
	return ((1ull << (length & 63)) - 1) << (at & 63);
}

VCC_INLINE void read_counters(const struct option_walk *w, uint32_t at)
{
	w->segment->feedback.ect0_bytes = be24(w, at);
	w->segment->feedback.ce_bytes = be24(w, at + 3);
}

/*
 * Parses an AccECN option of any length but a PACK's: the whole fields that fit are read (RFC 9768,
 * 3.2.3), of which the second one counts CE in both orders.
 */
VCC_INLINE void option_accecn(const struct option_walk *w, uint32_t at, uint8_t length)
{
	w->segment->options |= OPT_ACCECN;
	if (length < OPT_PACK_BYTES)
		return;
	w->segment->options |= OPT_ACCECN_CE;
	read_counters(w, at + 2);
}

/* Parses an option of our kinds (feedback.h). */
VCC_INLINE void option_of_ours(const struct option_walk *w, uint32_t at, uint8_t kind,
			       uint8_t length)
{
	struct vcc_segment *s = w->segment;
	uint32_t id = (uint32_t)w->bytes[(at + 2) & 63] << 8 | w->bytes[(at + 3) & 63];
	uint8_t version = w->bytes[(at + 4) & 63], what = w->bytes[(at + 5) & 63];

	if (kind == KIND_EXPERIMENT && (length < 4 || id != EXPERIMENT_ID))
		return; /* another experiment's option */
	w->places->ours |= option_bytes(at, length);
	if (kind == KIND_PACK && length == OPT_PACK_BYTES) {
		s->options |= OPT_PACK;
		read_counters(w, at + 2);
	} else if (kind != KIND_EXPERIMENT) {
		option_accecn(w, at, length);
	} else if (version == OURS_VERSION && what == OURS_FACK && length == OPT_FACK_BYTES) {
		s->options |= OPT_FACK;
		read_counters(w, at + 6);
	} else if (version == OURS_VERSION && (what == HELLO_OFFER || what == HELLO_ACCEPT) &&
		   length == OPT_HELLO_BYTES && !w->bytes[(at + 6) & 63] &&
		   !w->bytes[(at + 7) & 63]) {
		s->options |= OPT_HELLO;
		s->hello = what;
	} else {
		s->options |= OPT_OURS_BAD;
	}
}

/* Parses a SACK option: DSACK needs the first two blocks (RFC 2883). */
VCC_INLINE void option_sack(const struct option_walk *w, uint32_t at, uint8_t length)
{
	struct vcc_segment *s = w->segment;
	struct vcc_sack_block first = sack_block(w, at + 2), second = {};

	if (length >= 18)
		second = sack_block(w, at + 10);
	s->dsack_bytes = dsack_bytes(s->ack, first, second);
	s->dsack_seq = s->dsack_bytes ? first.left : 0;
}

/*
 * Parses one option, of at most OPTIONS_MAX_BYTES; returns whether it was the last. As in Linux
 * (tcp_parse_options), an invalid option ends the walk, and the options before it are used. A
 * callback of bpf_loop().
 */
static int option_step(uint32_t index, struct option_walk *w)
{
	(void)index;
	if (w->at >= w->length)
		return 1;
	struct vcc_segment *s = w->segment;
	struct option_places *places = w->places;
	uint32_t at = w->at & 63;
	uint8_t kind = w->bytes[at];

	if (kind == KIND_END) {
		places->end_off = (uint8_t)(TCP_HEADER_BYTES + at);
		return 1;
	}
	if (kind == KIND_NOP) {
		w->at++;
		return 0;
	}
	uint8_t length = w->bytes[(at + 1) & 63];

	if (at + 1 >= w->length || length < 2 || at + length > w->length) {
		places->malformed = true;
		/* A receiver would not read an option that follows an invalid one. */
		s->option_room_bytes = 0;
		return 1;
	}
	if (kind == KIND_MSS && length == 4) {
		uint16_t mss = (uint16_t)(w->bytes[(at + 2) & 63] << 8 | w->bytes[(at + 3) & 63]);

		if (mss) {
			s->options |= OPT_MSS;
			places->mss_off = (uint8_t)(TCP_HEADER_BYTES + at + 2);
			s->mss = mss;
		}
	} else if (kind == KIND_WSCALE && length == 3) {
		s->options |= OPT_WSCALE;
		places->wscale_off = (uint8_t)(TCP_HEADER_BYTES + at + 2);
		s->wscale = w->bytes[(at + 2) & 63];
	} else if (kind == KIND_SACK_PERMITTED && length == 2) {
		s->options |= OPT_SACK_PERMITTED;
	} else if (kind == KIND_TIMESTAMPS && length == 10) {
		s->options |= OPT_TIMESTAMPS;
		s->tsval = be32(w, at + 2);
		s->tsecr = be32(w, at + 6);
	} else if (kind == KIND_SACK && length >= 10 && length % 8 == 2) {
		s->options |= OPT_SACK;
		option_sack(w, at, length);
	} else if (kind == KIND_MD5 || kind == KIND_AO) {
		s->options |= OPT_SIGNED;
	} else if (kind == KIND_MPTCP && (s->flags & TCP_SYN)) {
		/* On other segments it does not matter (mptcp.h). */
		s->options |= OPT_MPTCP;
		places->ours |= option_bytes(at, length);
	} else if (kind == KIND_PACK || kind == KIND_ACCECN1 || kind == KIND_EXPERIMENT) {
		option_of_ours(w, at, kind, length);
	}
	w->at += length;
	return 0;
}

/* NOP NOP Timestamps 10, PACK 8: the options of a vcc end's pure ACK. */
struct pack_layout {
	uint32_t timestamps_head;
	uint32_t tsval, tsecr;
	uint8_t kind, length;
	uint8_t ect0_bytes[3], ce_bytes[3];
} __attribute__((packed));

VCC_INLINE uint32_t read_be24(const uint8_t bytes[3])
{
	return (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
}

/* Fast path for the most common option layouts. Returns false if a walk is needed. */
VCC_INLINE bool parse_fast_options(const void *options, const void *end, uint32_t length,
				   struct vcc_segment *s, struct option_places *places)
{
	const struct pack_layout *pack = options;

	if (options + 12 > end || (s->flags & TCP_SYN) ||
	    pack->timestamps_head != vcc_be32(TIMESTAMPS_ONLY))
		return false;
	s->tsval = vcc_be32(pack->tsval);
	s->tsecr = vcc_be32(pack->tsecr);
	if (length == 12) {
		s->options = OPT_TIMESTAMPS;
		return true;
	}
	if (length != sizeof(*pack) || (const void *)(pack + 1) > end || pack->kind != KIND_PACK ||
	    pack->length != OPT_PACK_BYTES)
		return false;
	s->options = OPT_TIMESTAMPS | OPT_PACK;
	s->feedback.ect0_bytes = read_be24(pack->ect0_bytes);
	s->feedback.ce_bytes = read_be24(pack->ce_bytes);
	places->ours = option_bytes(12, OPT_PACK_BYTES);
	return true;
}

#endif
