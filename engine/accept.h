/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an end takes of a segment, and what it throws away (RFC 9293, 3.10.7.4; RFC 5961). What it
 * throws away says nothing about the connection: it may be forged, or have lain somewhere for long.
 */
#ifndef VCC_ACCEPT_H
#define VCC_ACCEPT_H

#include "track.h"

VCC_INLINE void note_seen(struct vcc_flow *f, const struct vcc_segment *s)
{
	f->last_seen_ms = (uint32_t)(s->now_us / 1000);
}

/* The guest acknowledges the peer's SYN, or all up to `ack`, and takes so much more. */
VCC_INLINE void receive_from(struct vcc_flow *f, uint32_t ack, uint32_t window_bytes)
{
	f->rcv_wup = ack;
	f->rcv_edge = ack + window_bytes;
}

/*
 * From-guest: what it has of the peer's data, and up to where it takes more. It may have seen what
 * passed while its flow was held elsewhere, so its word counts, however far it goes.
 */
VCC_INLINE void track_receiver(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!(s->flags & TCP_ACK))
		return;
	/* The first one says which of the peer's SYN-ACKs has reached the guest. */
	if (!f->settled || seq_plausible(f->rcv_wup, s->ack)) {
		uint32_t edge = s->ack + ((uint32_t)s->window << f->wscale_guest);

		f->rcv_wup = f->settled ? seq_max(f->rcv_wup, s->ack) : s->ack;
		f->rcv_nxt = seq_max(f->rcv_nxt, s->ack);
		f->rcv_edge = seq_max(f->rcv_edge, edge);
		f->settled = true;
	}
}

/*
 * What the peer has sent up to now, so that a RST can be told from a forged one: the guest
 * believes only a RST at just the number that it expects (RFC 5961, 3.2), and so do we.
 */
VCC_INLINE void track_peer(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t end = segment_end(s);

	if (!seq_after(s->seq, f->rcv_nxt) && seq_after(end, f->rcv_nxt))
		f->rcv_nxt = end;
}

/*
 * To-guest: does it lie in the guest's window (RFC 9293, 3.10.7.4)? Judged as in Linux's
 * tcp_sequence: from what the guest has acknowledged, for the peer knows of no more, and up to the
 * edge itself, for an ACK is taken there also where the window is closed.
 */
VCC_INLINE bool in_guests_window(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return !seq_before(segment_end(s), f->rcv_wup) && !seq_after(s->seq, f->rcv_edge);
}

/*
 * To-guest: RFC 5961, 5.2. Not of what was never sent, nor older than any window; the guest has
 * seen none larger than the field can say.
 */
VCC_INLINE bool ack_acceptable(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t oldest = f->snd_una - ((uint32_t)UINT16_MAX << f->wscale_shown);

	return (s->flags & TCP_ACK) && s->ack - oldest <= f->snd_nxt - oldest;
}

/* Does the guest take this segment? */
VCC_INLINE bool guest_accepts(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return in_guests_window(f, s) && ack_acceptable(f, s);
}

/* The furthest that the peer has offered to take, or that the guest has sent. */
VCC_INLINE uint32_t offered_edge(const struct vcc_flow *f)
{
	uint32_t offered = f->snd_una + ((uint32_t)f->window_received << f->wscale_peer);

	return seq_max(seq_max(f->right_edge, f->snd_nxt), offered);
}

/* From-guest: may the peer take it (RFC 9293, 3.10.7.4)? */
VCC_INLINE bool peer_accepts(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return !seq_before(segment_end(s), f->snd_una) && !seq_after(s->seq, offered_edge(f));
}

/* Both FINs: what still comes are retransmissions. */
VCC_INLINE void note_fin(struct vcc_flow *f, uint16_t flags, uint32_t whose)
{
	const uint32_t both = FLOW_FIN_GUEST | FLOW_FIN_PEER;

	if (flags & TCP_FIN)
		f->flags |= whose;
	if ((f->flags & both) == both)
		f->stage = STAGE_CLOSED;
}

/*
 * A RST of the guest. One that answers a stray segment ends nothing: it has that segment's ACK for
 * its number, and the guest goes on (RFC 9293, 3.10.7.2 to 3.10.7.4). In SYN-SENT it sends no
 * other; a listening guest that refuses names the SYN (3.10.7.1).
 */
VCC_INLINE void rst_from_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	bool believed;

	if (f->stage == STAGE_SYN_SENT)
		believed = false;
	else if (f->flags & FLOW_SYN_SEEN_GUEST)
		believed = peer_accepts(f, s);
	else
		believed = (s->flags & TCP_ACK) && s->ack - f->rcv_nxt <= UINT16_MAX;
	if (!believed)
		return;
	note_seen(f, s);
	f->stage = STAGE_CLOSED;
}

/*
 * A RST from the peer. In answer to a SYN it must acknowledge it (RFC 9293, 3.10.7.3). What the
 * guest expects is what has passed, or, where that was lost behind us, what it says itself.
 */
VCC_INLINE void rst_to_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	bool believed;

	if (f->stage == STAGE_SYN_SENT)
		believed = (s->flags & TCP_ACK) && !seq_before(s->ack, f->snd_una) &&
			   !seq_after(s->ack, f->snd_nxt);
	else
		believed = s->seq == f->rcv_nxt || s->seq == f->rcv_wup;
	if (!believed)
		return;
	note_seen(f, s);
	f->stage = STAGE_CLOSED;
}

#endif
