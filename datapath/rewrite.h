/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Applies an action to the frame. Checksums are updated by the kernel's helpers, which know whether
 * a checksum is full, partial (CHECKSUM_PARTIAL) or of a super-segment; the usual one, of a segment
 * to the guest, is updated here, because the call would take longer than the engine.
 */
#ifndef VCC_REWRITE_H
#define VCC_REWRITE_H

#include "kernel.h"
#include "wire.h"

/* Replaces a byte at any offset of the TCP header and adds the checksum difference to `diff`. */
static __always_inline long replace_byte(struct __sk_buff *skb, uint32_t l4_off, uint32_t at,
					 uint8_t to, uint64_t *diff)
{
	uint8_t word[2];
	uint32_t even = at & ~1u;

	if (bpf_skb_load_bytes(skb, l4_off + even, word, 2))
		return -1;
	__be16 before = *(__be16 *)word;

	if (at & 1)
		word[1] = to;
	else
		word[0] = to;
	*diff += sum_diff(before, *(__be16 *)word);
	return bpf_skb_store_bytes(skb, l4_off + even, word, 2, 0);
}

struct flags_window {
	__be16 flags, window;
};

/*
 * A direct packet write saves a helper call, but makes the kernel unclone every segment before the
 * program starts, even if it is not translated. Segments from a guest usually are clones, because
 * its TCP keeps the original for retransmission; segments to it are not.
 */
static __always_inline long write_flags_window(struct __sk_buff *skb, enum direction dir,
					       uint32_t l4_off, struct flags_window now,
					       uint64_t diff)
{
	if (dir == FROM_GUEST)
		return bpf_skb_store_bytes(skb, l4_off + 12, &now, sizeof(now), 0) |
		       bpf_l4_csum_replace(skb, l4_off + TCP_CHECK_OFF, 0, sum_fold(diff), 0);
	/* The verifier no longer knows the bound from parse.h. */
	asm volatile("" : "+r"(l4_off));
	if (l4_off > L4_OFF_MAX)
		return -1;
	struct tcp_header *tcp = (void *)(long)skb->data + l4_off;
	uint32_t word;

	if ((void *)(tcp + 1) > (void *)(long)skb->data_end)
		return -1;
	/* One word: clang would split it into two stores, one through an unchecked pointer. */
	__builtin_memcpy(&word, &now, sizeof(word));
	*((uint32_t *)tcp + 3) = word;
	if (checksum_state(skb) != CHECKSUM_PARTIAL)
		tcp->check = sum_mend(tcp->check, diff);
	return 0;
}

struct blank {
	uint8_t options[64]; /* zero-padded; an index masked by 63 is in bounds */
	uint64_t bytes;
};

/* bpf_loop's callback: one byte per call. */
static int blank_step(uint32_t index, struct blank *b)
{
	if (b->bytes >> (index & 63) & 1)
		b->options[index & 63] = KIND_NOP;
	return 0;
}

/* Changes of the TCP header except flags and window. */
struct resize {
	int32_t words; /* growth in 32-bit words; negative: it shrinks */
	uint64_t diff; /* checksum difference, without length and data offset */
};

/* Replaces the masked bytes of the options by NOPs. */
static __always_inline long blank_options(struct __sk_buff *skb, const struct frame *fr,
					  uint64_t bytes, struct resize *resize)
{
	struct blank b = { .bytes = bytes };
	uint32_t options_off = fr->l4_off + TCP_HEADER_BYTES;
	uint64_t options_bytes = tcp_header_bytes(fr) - TCP_HEADER_BYTES;

	if (!is_bounded(&options_bytes, OPTIONS_MAX_BYTES) ||
	    bpf_skb_load_bytes(skb, options_off, b.options, options_bytes))
		return -1;
	int64_t sum = bpf_csum_diff((__be32 *)b.options, OPTIONS_MAX_BYTES, 0, 0, 0);

	bpf_loop(OPTIONS_MAX_BYTES, blank_step, &b, 0);
	sum = bpf_csum_diff(0, 0, (__be32 *)b.options, OPTIONS_MAX_BYTES, (__u32)sum);
	resize->diff += (uint32_t)sum;
	return bpf_skb_store_bytes(skb, options_off, b.options, options_bytes, 0);
}

/* Appends the action's option after all others. The segment has no payload. */
static __always_inline long append_option(struct __sk_buff *skb, const struct frame *fr,
					  const struct vcc_action *a, struct resize *resize)
{
	struct our_option option =
	    a->emit == EMIT_PACK ? option_pack(&a->feedback) : option_hello(a->hello);
	uint32_t end = fr->l4_off + tcp_header_bytes(fr);

	if (bpf_skb_change_tail(skb, end + OPT_PACK_BYTES, 0))
		return -1;
	resize->words += OPT_PACK_BYTES / 4;
	resize->diff += sum_words(option.words, OPT_PACK_BYTES / 2);
	return bpf_skb_store_bytes(skb, end, option.words, OPT_PACK_BYTES, 0);
}

/* Is our only option at the end of the segment, so that the frame can be trimmed? */
static __always_inline bool cuttable(const struct frame *fr, const struct vcc_segment *s)
{
	uint32_t at = tcp_header_bytes(fr) - TCP_HEADER_BYTES - OPT_PACK_BYTES;
	uint32_t ours = s->options & OPT_OURS;

	return !s->payload_bytes && (ours == OPT_PACK || ours == OPT_HELLO) &&
	       fr->options.ours == option_bytes(at, OPT_PACK_BYTES);
}

static __always_inline long cut_option(struct __sk_buff *skb, const struct frame *fr,
				       const struct vcc_segment *s, struct resize *resize)
{
	struct our_option option =
	    (s->options & OPT_PACK) ? option_pack(&s->feedback) : option_hello(s->hello);

	resize->words -= OPT_PACK_BYTES / 4;
	resize->diff += sum_removed(option.words, OPT_PACK_BYTES / 2);
	return bpf_skb_change_tail(skb, fr->l4_off + tcp_header_bytes(fr) - OPT_PACK_BYTES, 0);
}

/* Removes and appends our options. */
static __always_inline long change_options(struct __sk_buff *skb, enum direction dir,
					   const struct frame *fr, const struct vcc_segment *s,
					   const struct vcc_action *a, struct resize *resize)
{
	bool append = a->emit == EMIT_PACK || a->emit == EMIT_HELLO;
	uint64_t blank = 0;
	long err = 0;

	if (a->strip && dir == TO_GUEST && cuttable(fr, s))
		err |= cut_option(skb, fr, s, resize);
	else if (a->strip)
		blank = fr->options.ours;
	/* Receivers do not read options after KIND_END, which some guests send. */
	if (append && fr->options.end_off)
		blank |= option_bytes(fr->options.end_off - TCP_HEADER_BYTES,
				      tcp_header_bytes(fr) - fr->options.end_off);
	if (blank)
		err |= blank_options(skb, fr, blank, resize);
	if (append)
		err |= append_option(skb, fr, a, resize);
	return err;
}

/* Rewrites the values of MSS and Window Scale. */
static __always_inline long change_values(struct __sk_buff *skb, const struct frame *fr,
					  const struct vcc_segment *s, const struct vcc_action *a,
					  struct resize *resize)
{
	long err = 0;

	if (fr->options.mss_off && a->mss != s->mss) {
		uint32_t at = fr->options.mss_off;

		err |= replace_byte(skb, fr->l4_off, at, a->mss >> 8, &resize->diff);
		err |= replace_byte(skb, fr->l4_off, at + 1, a->mss & 0xff, &resize->diff);
	}
	if (fr->options.wscale_off && a->wscale != s->wscale)
		err |=
		    replace_byte(skb, fr->l4_off, fr->options.wscale_off, a->wscale, &resize->diff);
	return err;
}

static __always_inline struct flags_window
flags_window_now(const struct frame *fr, const struct vcc_action *a, int32_t words)
{
	uint16_t data_off = (uint16_t)((fr->data_off_flags & 0xfe00) + words * 0x1000);

	return (struct flags_window){ bpf_htons(data_off | a->flags), bpf_htons(a->window) };
}

static __always_inline uint64_t flags_window_diff(const struct frame *fr,
						  const struct vcc_segment *s,
						  struct flags_window now)
{
	return sum_diff(bpf_htons(fr->data_off_flags), now.flags) +
	       sum_diff(bpf_htons(s->window), now.window);
}

/* IPv4 without options, and TCP up to the checksum. */
struct heads {
	struct ipv4_head ip;
	__be32 saddr, daddr;
	uint8_t tcp[12]; /* ports, sequence and acknowledgement number */
	struct flags_window flags_window;
	__be16 check, urgent;
};

_Static_assert(sizeof(struct heads) == 40, "IPv4 and TCP");

/*
 * Writes both headers of a segment in one call, where each helper's would take longer than the
 * rest. Fails on frames for which write_each() is there.
 */
static __always_inline bool write_heads(struct __sk_buff *skb, const struct frame *fr,
					const struct resize *resize, struct flags_window now,
					uint64_t length_diff, uint8_t ip_ecn, uint16_t ip_length)
{
	const uint32_t *at = (void *)(long)skb->data + fr->l3_off;
	uint64_t state = checksum_state(skb);
	union {
		struct heads heads;
		uint32_t words[sizeof(struct heads) / sizeof(*at)];
	} both;

	if (fr->ipv6 || fr->l4_off != fr->l3_off + sizeof(struct iphdr) ||
	    state == CHECKSUM_COMPLETE || (void *)at + sizeof(both) > (void *)(long)skb->data_end)
		return false;
	for (uint32_t i = 0; i < sizeof(both) / sizeof(*at); i++)
		both.words[i] = at[i];
	struct heads *heads = &both.heads;

	ipv4_change(&heads->ip, ip_ecn, ip_length);
	heads->flags_window = now;
	/* The kernel completes a partial sum over TCP's fields. */
	heads->check = state == CHECKSUM_PARTIAL
			   ? sum_fold16(heads->check + length_diff)
			   : sum_mend(heads->check, resize->diff + length_diff);
	return !bpf_skb_store_bytes(skb, fr->l3_off, heads, sizeof(*heads), 0);
}

/* Writes both headers by the helpers that know all kinds of checksums. */
static __always_inline long write_each(struct __sk_buff *skb, const struct frame *fr,
				       const struct resize *resize, struct flags_window now,
				       uint64_t length_diff, uint8_t ip_ecn, uint16_t ip_length)
{
	uint32_t check_off = fr->l4_off + TCP_CHECK_OFF;
	long err = bpf_skb_store_bytes(skb, fr->l4_off + 12, &now, sizeof(now), 0);

	err |= bpf_l4_csum_replace(skb, check_off, 0, sum_fold(length_diff), BPF_F_PSEUDO_HDR);
	err |= bpf_l4_csum_replace(skb, check_off, 0, sum_fold(resize->diff), 0);
	return err | rewrite_ip(skb, fr, ip_ecn, ip_length);
}

/*
 * Rewrites a segment whose options change, the rare case. Out of line, so that the verifier does
 * not check it once per path that leads here.
 */
VCC_APART int rewrite_with_options(struct __sk_buff *skb, const struct frame *fr,
				   const struct vcc_segment *s, const struct vcc_action *a,
				   uint32_t dir)
{
	if (!fr || !s || !a)
		return -1;
	struct resize resize = {};
	long err = change_options(skb, (enum direction)dir, fr, s, a, &resize);

	if (err)
		return -1;
	err |= change_values(skb, fr, s, a, &resize);

	struct flags_window now = flags_window_now(fr, a, resize.words);
	uint16_t ip_length = (uint16_t)(fr->ip_length + resize.words * 4);
	/* Of the pseudo-header's length. */
	uint64_t length_diff = sum_diff(bpf_htons(tcp_header_bytes(fr)),
					bpf_htons(tcp_header_bytes(fr) + resize.words * 4));

	resize.diff += flags_window_diff(fr, s, now);
	if (!write_heads(skb, fr, &resize, now, length_diff, a->ip_ecn, ip_length))
		err |= write_each(skb, fr, &resize, now, length_diff, a->ip_ecn, ip_length);
	return err ? -1 : 0;
}

static __always_inline bool changes_options(const struct frame *fr, const struct vcc_segment *s,
					    const struct vcc_action *a)
{
	return a->strip || a->emit == EMIT_PACK || a->emit == EMIT_HELLO ||
	       (fr->options.mss_off && a->mss != s->mss) ||
	       (fr->options.wscale_off && a->wscale != s->wscale);
}

/* Writes flags, window and ECN field where the options stay as they are. */
static __always_inline long rewrite_fields(struct __sk_buff *skb, enum direction dir,
					   const struct frame *fr, const struct vcc_segment *s,
					   const struct vcc_action *a)
{
	long err = 0;

	if (a->flags != s->flags || a->window != s->window) {
		struct flags_window now = flags_window_now(fr, a, 0);
		uint64_t diff = flags_window_diff(fr, s, now);

		err |= write_flags_window(skb, dir, fr->l4_off, now, diff);
	}
	if (a->ip_ecn != s->ip_ecn)
		err |= rewrite_ip(skb, fr, a->ip_ecn, fr->ip_length);
	return err;
}

static __always_inline long rewrite(struct __sk_buff *skb, enum direction dir,
				    const struct frame *fr, const struct vcc_segment *s,
				    const struct vcc_action *a)
{
	if (changes_options(fr, s, a))
		return rewrite_with_options(skb, fr, s, a, dir);
	return rewrite_fields(skb, dir, fr, s, a);
}

#endif
