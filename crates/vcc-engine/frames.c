/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parsing of frames compiled for user space: the same source that the datapath compiles. */
#include "frames.h"
#include "holds_tcp.h"

/* Notes where an option is that only this shell changes. */
static void note_place(const struct option_walk *w, uint8_t at, uint16_t option,
		       struct vcc_tcp_layout *layout)
{
	uint8_t off = TCP_HEADER_BYTES + at;

	if (option & OPT_TIMESTAMPS)
		layout->timestamps_off = off + 2;
	if (option & OPT_SACK) {
		layout->sack_off = off;
		layout->sack_bytes = w->bytes[(at + 1) & 63];
	}
}

static void walk_options(struct option_walk *w, struct vcc_tcp_layout *layout)
{
	struct vcc_segment *s = w->segment;
	uint16_t options = 0;
	bool last = false;

	for (uint32_t i = 0; i < OPTIONS_MAX_BYTES && !last; i++) {
		uint8_t at = (uint8_t)w->at;

		/* Alone, to see which one it is. */
		s->options = 0;
		last = option_step(i, w);
		note_place(w, at, s->options, layout);
		options |= s->options;
	}
	s->options = options;
}

/* Parses options as parse_options() does: what they set is 0 before. */
uint32_t vcc_native_parse_options(const uint8_t *bytes, uint32_t length, struct vcc_segment *s,
				  struct vcc_tcp_layout *layout)
{
	const frame_bytes all = { .bytes = bytes, .length = length };
	struct option_walk w = { .length = length, .segment = s, .places = &layout->options };

	if (parse_fast_options(bytes, bytes + length, length, s, &layout->options)) {
		layout->timestamps_off = TCP_HEADER_BYTES + 4;
		return PARSED;
	}
	if (length > OPTIONS_MAX_BYTES || load_bytes(&all, 0, w.bytes, length))
		return COUNT_MALFORMED;
	walk_options(&w, layout);
	return PARSED;
}

/* Parses the TCP header of a segment of `tcp_bytes`, which are all there. */
uint32_t vcc_native_parse_tcp(const uint8_t *bytes, uint32_t tcp_bytes, uint32_t gso_size,
			      struct vcc_segment *s, struct vcc_tcp_layout *layout)
{
	const frame_bytes all = { .bytes = bytes, .length = tcp_bytes };
	struct tcp_header tcp;

	*s = (struct vcc_segment){};
	*layout = (struct vcc_tcp_layout){};
	if (load_bytes(&all, 0, &tcp, sizeof(tcp)))
		return COUNT_MALFORMED;
	uint16_t data_off_flags = vcc_be16(tcp.data_off_flags);
	uint32_t header_bytes = data_offset_bytes(data_off_flags);

	if (header_bytes < sizeof(tcp) || tcp_bytes < header_bytes)
		return COUNT_MALFORMED;
	layout->header_bytes = (uint8_t)header_bytes;
	read_numbers(s, &tcp);
	s->flags = data_off_flags & TCP_FLAGS_MASK;
	s->payload_bytes = tcp_bytes - header_bytes;
	s->seg_bytes = seg_bytes_of(s->payload_bytes, gso_size);
	if (!flags_sane(s->flags))
		return COUNT_BAD_FLAGS;
	find_option_room(s, header_bytes, true);
	if (header_bytes == sizeof(tcp))
		return PARSED;
	return vcc_native_parse_options(bytes + sizeof(tcp), header_bytes - sizeof(tcp), s, layout);
}

bool vcc_native_holds_tcp(const uint8_t *bytes, uint64_t length)
{
	frame_bytes frame = { .bytes = bytes, .length = length };

	return holds_tcp(&frame);
}

uint64_t vcc_native_option_bytes(uint32_t at, uint32_t length)
{
	return option_bytes(at, length);
}

struct our_option vcc_native_option_hello(uint8_t hello)
{
	return option_hello(hello);
}

struct our_option vcc_native_option_pack(const struct vcc_feedback *feedback)
{
	return option_pack(feedback);
}

struct our_option vcc_native_option_fack(const struct vcc_feedback *feedback)
{
	return option_fack(feedback);
}
