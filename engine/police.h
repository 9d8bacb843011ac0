/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Policing (AC/DC, 3.3): data beyond the window that the guest was shown is dropped, so that who
 * ignores his window gains nothing.
 *
 * A super-segment cannot be cut here, so one that begins inside the window passes whole, if what it
 * takes beyond can be withheld from the window that follows: on average, nobody has more than his
 * window.
 */
#ifndef VCC_POLICE_H
#define VCC_POLICE_H

#include "track.h"
#include "treat.h"

/*
 * Where an overdraft stands. It is owed until the flight that it was part of is acknowledged, and
 * until a window without it has been sent and acknowledged as well. While nothing is owed,
 * overdraft_until is the edge of the SYN-ACK's window, or behind.
 */
VCC_INLINE void police_repay(struct vcc_flow *f)
{
	if (seq_before(f->snd_una, f->overdraft_until))
		return;
	if (f->overdraft_bytes && !(f->flags & FLOW_WITHHOLDING)) {
		f->flags |= FLOW_WITHHOLDING;
		/* If the window has become so small, by a segment. */
		f->overdraft_until =
		    seq_max(f->right_edge - f->overdraft_bytes, f->snd_una + f->mss_bytes);
		return;
	}
	f->flags &= ~(uint32_t)FLOW_WITHHOLDING;
	f->overdraft_bytes = 0;
	f->overdraft_until = f->snd_una; /* stays near, or it would mean the future one day */
}

VCC_INLINE void count_policed(struct vcc_flow *f)
{
	f->policed += f->policed < UINT16_MAX;
	count_drop(f);
}

VCC_INLINE void drop_policed(struct vcc_action *a)
{
	a->verdict = VCC_DROP;
	a->police = true;
}

/*
 * The same before the handshake has ended. Data without SYN is then a server's that does not wait
 * (RFC 7413, 4.2), and no more than the window of the peer's SYN, to which no scale applies.
 */
VCC_INLINE bool police_handshake(struct vcc_flow *f, const struct vcc_segment *s)
{
	const uint32_t both = FLOW_SYN_SEEN_GUEST | FLOW_SYN_SEEN_PEER;
	uint32_t end = s->seq + s->payload_bytes;

	if (!s->payload_bytes ||
	    ((f->flags & both) == both && seq_distance(f->snd_una, end) <= UINT16_MAX &&
	     !seq_before(s->seq, f->snd_una)))
		return false;
	count_policed(f);
	return true;
}

/* Is what this flow's rule cannot allow, or cannot judge, dropped? */
VCC_INLINE bool is_policed(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->police && is_controlled(f) && imposes(f, p);
}

/* Is this segment of the guest beyond what it may send? Call before it is tracked. */
VCC_INLINE bool police(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t end = s->seq + s->payload_bytes;

	/* Retransmissions are the guest's right. */
	if (!s->payload_bytes || !seq_after(end, f->snd_nxt))
		return false;
	police_repay(f);
	uint32_t edge = f->right_edge - f->overdraft_bytes;

	/* The guest has seen the window of the SYN-ACK too, though it was not ours to limit. */
	if (!f->overdraft_bytes)
		edge = seq_max(edge, f->overdraft_until);
	if (!seq_after(end, edge))
		return false;
	/* A probe of a closed window is a byte, perhaps with a segment's rest (RFC 9293, 3.8.6.1).
	 */
	if (!flight_bytes(f) && s->seq == f->snd_nxt && s->payload_bytes <= f->mss_bytes)
		return false;
	uint32_t beyond_bytes = end - edge;
	uint32_t window_bytes = seq_distance(f->snd_una, f->right_edge);

	/* Of the window that it is withheld from, a segment must be left. */
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
 * A FIN alone takes a number too. Beyond the window it would make all before it look like what was
 * sent already.
 */
VCC_INLINE bool police_fin(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t edge = seq_max(seq_max(f->right_edge, f->overdraft_until), f->snd_nxt);

	if (s->payload_bytes || !(s->flags & TCP_FIN) || !seq_after(s->seq, edge))
		return false;
	count_policed(f);
	return true;
}

#endif
