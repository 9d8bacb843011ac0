/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Policing (AC/DC, 3.3): data beyond the window shown to the guest is dropped, so a guest that
 * ignores its window gains nothing.
 *
 * A super-segment cannot be split here. One that starts inside the window passes whole if its
 * excess can be withheld from the next window, so that the average stays within the window.
 */
#ifndef VCC_POLICING_H
#define VCC_POLICING_H

#include "acceptability.h"
#include "window_cap.h"

/*
 * Is overdraft_until still to be acknowledged? While nothing is policed, nothing advances it. One
 * farther ahead than any window or flight is left from before a wrap.
 */
VCC_INLINE bool is_overdraft_ahead(const struct vcc_flow *f)
{
	uint32_t ahead_bytes = f->overdraft_until - f->snd_una;
	uint32_t edge = seq_max(f->right_edge, f->snd_nxt) + f->mss_bytes;

	return ahead_bytes && ahead_bytes <= vcc_max(seq_distance(f->snd_una, edge), UINT16_MAX);
}

/*
 * Advances an overdraft. It is owed until its flight is acknowledged, and then until a window
 * reduced by it has been sent and acknowledged as well. While nothing is owed, overdraft_until is
 * at or below the right edge of the SYN-ACK's window.
 */
VCC_INLINE void police_repay(struct vcc_flow *f)
{
	if (is_overdraft_ahead(f))
		return;
	if (f->overdraft_bytes && !(f->flags & FLOW_WITHHOLDING)) {
		f->flags |= FLOW_WITHHOLDING;
		/* A window smaller than the overdraft is withheld down to one segment. */
		f->overdraft_until =
		    seq_max(f->right_edge - f->overdraft_bytes, f->snd_una + f->mss_bytes);
		return;
	}
	f->flags &= ~(uint32_t)FLOW_WITHHOLDING;
	f->overdraft_bytes = 0;
	f->overdraft_until = f->snd_una;
}

VCC_INLINE void count_policed(struct vcc_flow *f)
{
	f->policed += f->policed < UINT16_MAX;
	count_drop(f);
}

VCC_INLINE void drop_policed(struct vcc_action *a)
{
	a->verdict = VCC_DROP;
	a->police = POLICED_WINDOW;
}

/*
 * Policing before the handshake completes. Data is then sent by a server after TCP Fast Open
 * (RFC 7413, 4.2), limited by the unscaled window of the peer's SYN as the guest was shown it.
 */
VCC_INLINE bool police_handshake(struct vcc_flow *f, const struct vcc_params *p,
				 const struct vcc_segment *s)
{
	const uint32_t both = FLOW_SYN_SEEN_GUEST | FLOW_SYN_SEEN_PEER;
	uint32_t end = s->seq + s->payload_bytes;

	if (!s->payload_bytes ||
	    ((f->flags & both) == both && !seq_before(s->seq, f->snd_una) &&
	     seq_distance(f->snd_una, end) <= first_flight_bytes(f, p, f->mss_max_bytes)))
		return false;
	count_policed(f);
	return true;
}

/* Is the flow policed? */
VCC_INLINE bool is_policed(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->police && is_controlled(f) && acts_by_window(f, p);
}

/* Does this segment from the guest exceed its window? Must be called before it is tracked. */
VCC_INLINE bool police(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t end = s->seq + s->payload_bytes;

	/* Retransmissions are within the window. */
	if (!s->payload_bytes || !seq_after(end, f->snd_nxt))
		return false;
	police_repay(f);
	uint32_t edge = f->right_edge - f->overdraft_bytes;

	/* The SYN-ACK's window is an offer, too. */
	if (!f->overdraft_bytes)
		edge = seq_max(edge, f->overdraft_until);
	if (!seq_after(end, edge))
		return false;
	/* A zero-window probe of up to a segment (RFC 9293, 3.8.6.1). */
	if (!flight_bytes(f) && s->seq == f->snd_nxt && s->payload_bytes <= f->mss_bytes)
		return false;
	uint32_t beyond_bytes = end - edge;
	uint32_t window_bytes = seq_distance(f->snd_una, f->right_edge);

	/* The window that the overdraft is withheld from must keep at least one segment. */
	if (f->overdraft_bytes || !seq_before(s->seq, edge) || beyond_bytes > UINT16_MAX ||
	    beyond_bytes + f->mss_bytes > window_bytes) {
		count_policed(f);
		return true;
	}
	f->overdraft_bytes = (uint16_t)beyond_bytes;
	f->overdraft_until = end;
	return false;
}

/*
 * A FIN without payload occupies a sequence number too. Beyond the window it would advance snd_nxt,
 * and data below it would then pass as a retransmission.
 */
VCC_INLINE bool police_fin(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (s->payload_bytes || !(s->flags & TCP_FIN))
		return false;
	police_repay(f);
	uint32_t edge = seq_max(seq_max(f->right_edge, f->overdraft_until), f->snd_nxt);

	if (!seq_after(s->seq, edge))
		return false;
	count_policed(f);
	return true;
}

/*
 * An acknowledgement of data that has not arrived is dropped. Should the guest have it
 * nevertheless, by a segment that passed while nothing was policed, the peer retransmits it, and
 * the port sees it.
 */
VCC_INLINE bool police_ack(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!acks_unseen(f, s))
		return false;
	count_policed(f);
	return true;
}

#endif
