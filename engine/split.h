/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `split`: the shell acknowledges what it holds (hold.h) and owns its delivery (repair.h). Nothing
 * is asked of the guest. The acknowledgement is a promise: it is given only for bytes that the
 * shell has, in sequence, and none is given for a FIN, which the peer acknowledges itself. A
 * promise that cannot be kept ends the connection at both ends (law 16).
 */
#ifndef VCC_SPLIT_H
#define VCC_SPLIT_H

#include "hold.h"
#include "repair.h"

/*
 * Has the guest used up its window, without room for another segment? An acknowledgement would have
 * to show a window (law 3) that the buffer does not have. The peer's next ACK makes room.
 */
VCC_INLINE bool split_lacks_room(const struct vcc_flow *f, const struct vcc_hold *h,
				 const struct vcc_buffer *b, const struct vcc_params *p)
{
	uint32_t edge = seq_max(f->right_edge, hold_shown_edge(f, h, b, p, 0));

	return (is_held(f, h) || flight_bytes(f)) &&
	       seq_distance(hold_guest_nxt(f, h), edge) < f->mss_bytes;
}

/*
 * After a segment of the guest: is an acknowledgement due, with `promised` and the flow's window?
 * `end` is one past the last byte that the shell has in sequence, without a FIN. The first segments
 * may have passed without being retained; no promise is given until the peer has acknowledged them.
 */
VCC_INLINE bool split_promises(struct vcc_flow *f, struct vcc_hold *h, const struct vcc_buffer *b,
			       const struct vcc_params *p, const struct vcc_segment *s,
			       uint32_t end)
{
	bool repeats =
	    h->promises && seq_before(s->seq, h->promised) && (flight_bytes(f) || is_held(f, h));

	if (!h->retains || (s->flags & (TCP_SYN | TCP_RST)))
		return false;
	if (is_managed(f) && acts_by_split(f, p) && hold_covers(f, h) &&
	    !split_lacks_room(f, h, b, p)) {
		if (!h->promises)
			h->promised = f->snd_una;
		h->promises = true;
		repeats |= seq_after(end, h->promised);
		h->promised = seq_max(h->promised, end);
		VCC_LAW(!seq_after(h->promised, hold_guest_nxt(f, h))); /* law 16 */
	}
	if (!repeats)
		return false;
	f->window_shown = hold_field(f, h, b, p, h->promised, 0);
	f->right_edge =
	    seq_max(f->right_edge, h->promised + ((uint32_t)f->window_shown << f->wscale_shown));
	return true;
}

#endif
