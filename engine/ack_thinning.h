/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ACKs to a guest that does not read its receive ring. Each one of a held connection would take a
 * buffer there, until SYNs and data find none. So the last one waits in the shell, as if the
 * network had lost those before it (RFC 9293, 3.4: an acknowledgement is cumulative).
 */
#ifndef VCC_ACK_THINNING_H
#define VCC_ACK_THINNING_H

#include "hold.h"

/* What becomes of a segment to the guest, and of the ACK that waits. */
enum vcc_thin {
	THIN_PASS = 0, /* it passes, and nothing waits */
	THIN_BEHIND,   /* it passes behind what waits */
	THIN_INSTEAD,  /* it passes, and covers all that the waiting ACK says */
	THIN_WAIT,     /* it waits, instead of what does */
};

/* The last acknowledgement and window field that the guest was shown. */
struct vcc_shown {
	uint32_t ack;
	uint32_t window;
};

/*
 * Does the guest have frames to read? Its driver adds buffers at the latest when half of those that
 * it had added are used up (Linux: virtnet_receive), so half are free after it has read all.
 */
VCC_INLINE bool is_ring_crowded(uint32_t free_segs, uint32_t added_segs)
{
	return free_segs < added_segs / 2;
}

/*
 * Does the segment carry nothing but an acknowledgement and a window? SACK blocks and ECN's bits
 * are counted by each segment. A keep-alive, before rcv_nxt, must be answered (RFC 9293, 3.8.4).
 */
VCC_INLINE bool is_pure_ack(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (s->flags & ~(uint32_t)TCP_PSH) == TCP_ACK && !s->payload_bytes &&
	       !(s->options & OPT_SACK) && !seq_before(s->seq, f->rcv_nxt);
}

/* A repetition may be a duplicate ACK, of which the guest counts each (RFC 5681, 2). */
VCC_INLINE bool is_new_ack(const struct vcc_shown *last, const struct vcc_segment *s)
{
	return seq_after(s->ack, last->ack) || (s->ack == last->ack && s->window != last->window);
}

/* The right edge of the window that it shows. */
VCC_INLINE uint32_t shown_edge(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return s->ack + ((uint32_t)s->window << f->wscale_shown);
}

/*
 * To-guest, after the engine has passed a segment that the guest accepts: `s` as the guest would
 * see it, `waiting` the ACK that waits or null, `last` as of before the segment.
 */
VCC_INLINE enum vcc_thin thin_ack(const struct vcc_flow *f, const struct vcc_hold *h,
				  const struct vcc_params *p, const struct vcc_segment *waiting,
				  const struct vcc_shown *last, const struct vcc_segment *s,
				  bool crowded)
{
	bool acks = (s->flags & TCP_ACK) && !(s->flags & (TCP_SYN | TCP_RST));
	bool waits = crowded && is_holding(f, h, p) && acts_by_hold(f, p) && is_pure_ack(f, s) &&
		     is_new_ack(last, s);

	if (!waiting)
		return waits ? THIN_WAIT : THIN_PASS;
	/* Reordered, or a retransmission, whose window is ignored (RFC 9293, 3.10.7.4). */
	if (!acks || seq_before(s->ack, waiting->ack) || seq_before(s->seq, waiting->seq))
		return THIN_BEHIND;
	if (waits) {
		/* Law 18, and law 2, as far as the field reaches. */
		VCC_LAW(s->window == UINT16_MAX ||
			!seq_before(shown_edge(f, s), shown_edge(f, waiting)));
		return THIN_WAIT;
	}
	if (segment_end(s) != s->seq || seq_after(s->ack, waiting->ack))
		return THIN_INSTEAD;
	return THIN_BEHIND;
}

#endif
