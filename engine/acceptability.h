/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Acceptability of segments (RFC 9293, 3.10.7.4; RFC 5961). A segment that its receiver discards
 * may be forged or stale, so it must not change the flow's state (law 17).
 */
#ifndef VCC_ACCEPTABILITY_H
#define VCC_ACCEPTABILITY_H

#include "sequence_tracking.h"

VCC_INLINE void note_seen(struct vcc_flow *f, const struct vcc_segment *s)
{
	f->last_seen_ms = (uint32_t)(s->now_us / 1000);
}

/* The guest's receive window at the start: acknowledged up to `ack`, and `window_bytes` beyond. */
VCC_INLINE void receive_from(struct vcc_flow *f, uint32_t ack, uint32_t window_bytes)
{
	f->rcv_wup = ack;
	f->rcv_max = ack;
	f->rcv_edge = ack + window_bytes;
}

/* From-guest: the right edge of the window that a segment offers. */
VCC_INLINE uint32_t guests_edge(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return s->ack + ((uint32_t)s->window << f->wscale_guest);
}

/*
 * From-guest: does the guest open its window by a segment? While its application does not read, the
 * edge still creeps by what the scale rounds.
 */
VCC_INLINE bool opens_window(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return !seq_before(guests_edge(f, s), f->rcv_edge + f->mss_bytes);
}

/*
 * From-guest: the guest's acknowledgement and receive window. The guest may have received segments
 * that passed untracked while another CPU held the flow, so its acknowledgement is authoritative.
 */
VCC_INLINE void track_receiver(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!(s->flags & TCP_ACK))
		return;
	/* The first ACK shows which of the peer's SYN-ACKs the guest accepted. */
	if (!f->settled || seq_plausible(f->rcv_wup, s->ack)) {
		f->rcv_wup = f->settled ? seq_max(f->rcv_wup, s->ack) : s->ack;
		f->rcv_max =
		    seq_plausible(f->rcv_max, s->ack) ? seq_max(f->rcv_max, s->ack) : s->ack;
		f->rcv_nxt = seq_max(f->rcv_nxt, s->ack);
		f->rcv_edge = seq_max(f->rcv_edge, guests_edge(f, s));
		f->settled = true;
	}
}

/*
 * From-guest: does the segment acknowledge data that has not arrived? A receiver that does so shows
 * its peer a shorter round trip and hides losses (Savage et al. 1999, 2.3). The first one is
 * believed: data on a SYN (RFC 7413) is not tracked.
 */
VCC_INLINE bool acks_unseen(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return (s->flags & TCP_ACK) && f->settled && seq_after(s->ack, f->rcv_max);
}

/*
 * To-guest: tracks rcv_nxt and rcv_max. Guest and engine accept a RST only at exactly rcv_nxt (RFC
 * 5961, 3.2).
 */
VCC_INLINE void track_peer(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t end = segment_end(s);

	if (!seq_after(s->seq, f->rcv_nxt) && seq_after(end, f->rcv_nxt))
		f->rcv_nxt = end;
	f->rcv_max = seq_max(f->rcv_max, end);
	if (s->payload_bytes && !f->peer_sends)
		f->peer_sends = true;
}

/*
 * To-guest: is the segment in the guest's receive window (RFC 9293, 3.10.7.4)? As Linux's
 * tcp_sequence: from the last acknowledgement, the latest that the peer can know, to the window's
 * edge inclusive, where an ACK is acceptable even if the window is closed.
 */
VCC_INLINE bool in_guests_window(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return !seq_before(segment_end(s), f->rcv_wup) && !seq_after(s->seq, f->rcv_edge);
}

/*
 * To-guest: is the acknowledgement acceptable (RFC 5961, 5.2)? It may not exceed snd_nxt, nor lie
 * below snd_una by more than the largest window that the field can express, or than was
 * acknowledged at all (Linux: bytes_acked). That number wraps: for a window's length after each 4
 * GiB, nothing is learned from segments that were overtaken.
 */
VCC_INLINE bool ack_acceptable(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t most_bytes = (uint32_t)UINT16_MAX << f->wscale_shown;
	uint32_t oldest = f->snd_una - vcc_min(most_bytes, f->snd_una - f->iss);

	return (s->flags & TCP_ACK) && s->ack - oldest <= f->snd_nxt - oldest;
}

/* To-guest: does the guest accept this segment? */
VCC_INLINE bool guest_accepts(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return in_guests_window(f, s) && ack_acceptable(f, s);
}

/* The highest right edge that the peer has offered, or snd_nxt if that is higher. */
VCC_INLINE uint32_t offered_edge(const struct vcc_flow *f)
{
	uint32_t offered = f->snd_una + ((uint32_t)f->window_received << f->wscale_peer);

	return seq_max(seq_max(f->right_edge, f->snd_nxt), offered);
}

/* From-guest: may the peer accept this segment (RFC 9293, 3.10.7.4)? */
VCC_INLINE bool peer_accepts(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return !seq_before(segment_end(s), f->snd_una) && !seq_after(s->seq, offered_edge(f));
}

/*
 * From-guest: may the peer accept this FIN? In the first flight it may overtake data, within the
 * window of the SYN-ACK.
 */
VCC_INLINE bool peer_accepts_fin(const struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t first_bytes = f->overdraft_until - f->snd_una;

	return peer_accepts(f, s) ||
	       (first_bytes <= UINT16_MAX && s->seq - f->snd_una <= first_bytes);
}

/* Tracks FINs. After both, only retransmissions follow. */
VCC_INLINE void note_fin(struct vcc_flow *f, uint16_t flags, uint32_t whose)
{
	const uint32_t both = FLOW_FIN_GUEST | FLOW_FIN_PEER;

	if (flags & TCP_FIN)
		f->flags |= whose;
	if ((f->flags & both) == both)
		f->stage = STAGE_CLOSED;
}

/*
 * Does the peer believe a RST from the guest? A RST that answers a stray segment does not close the
 * connection: its sequence number is that segment's acknowledgement (RFC 9293, 3.10.7.2 to
 * 3.10.7.4). In SYN-SENT the guest sends no other kind; a guest that refuses a SYN acknowledges it
 * (3.10.7.1).
 */
VCC_INLINE bool is_guests_rst(const struct vcc_flow *f, const struct vcc_segment *s)
{
	if (f->stage == STAGE_SYN_SENT)
		return false;
	/* Its numbers show where the guest is (arrival.h). */
	if (f->lags & LAGS_GUEST)
		return true;
	if (f->flags & FLOW_SYN_SEEN_GUEST)
		return peer_accepts(f, s);
	return (s->flags & TCP_ACK) && s->ack - f->rcv_nxt <= UINT16_MAX;
}

VCC_INLINE void rst_from_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!is_guests_rst(f, s))
		return;
	note_seen(f, s);
	f->stage = STAGE_CLOSED;
}

/*
 * Does the guest believe a RST from the peer? One that answers a SYN must acknowledge it (RFC 9293,
 * 3.10.7.3). Otherwise it must be at rcv_nxt, or at the guest's last acknowledgement if later data
 * was lost between port and guest, or at the peer's FIN, where some stacks send it (Linux:
 * tcp_reset_check).
 */
VCC_INLINE bool is_peers_rst(const struct vcc_flow *f, const struct vcc_segment *s)
{
	if (f->stage == STAGE_SYN_SENT)
		return (s->flags & TCP_ACK) && !seq_before(s->ack, f->snd_una) &&
		       !seq_after(s->ack, f->snd_nxt);
	if ((f->flags & FLOW_FIN_PEER) && s->seq + 1 == f->rcv_nxt)
		return true;
	return s->seq == f->rcv_nxt || s->seq == f->rcv_wup;
}

VCC_INLINE void rst_to_guest(struct vcc_flow *f, const struct vcc_segment *s)
{
	if (!is_peers_rst(f, s))
		return;
	note_seen(f, s);
	f->stage = STAGE_CLOSED;
}

#endif
