/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the guest has sent and what the peer has acknowledged (RFC 9293, 3.3.1; RFC 5681, 2). */
#ifndef VCC_TRACK_H
#define VCC_TRACK_H

#include "rtt.h"
#include "seq.h"
#include "vcc.h"

/* RFC 5681, 3.2: so many duplicate ACKs tell of a loss. */
#define DUPACK_THRESHOLD 3u

VCC_INLINE uint32_t flight_bytes(const struct vcc_flow *f)
{
	return f->snd_nxt - f->snd_una;
}

VCC_INLINE void count_drop(struct vcc_flow *f)
{
	f->drops += f->drops < UINT16_MAX;
}

VCC_INLINE uint32_t bytes_to_segs_ceil(const struct vcc_flow *f, uint32_t bytes)
{
	return (bytes + f->mss_bytes - 1) / f->mss_bytes;
}

/* A runt is less than an eighth of a segment. */
#define RUNT_SHIFT 3

/*
 * The flight, its last segment as if it were full. What a guest has sent into the rounding of its
 * window stays a runt, or each ACK of a reduction would make a segment of it, and the guest would
 * reduce nothing.
 */
VCC_INLINE uint32_t flight_filled_bytes(const struct vcc_flow *f)
{
	uint32_t flight = flight_bytes(f);
	uint32_t runt_bytes = flight % f->mss_bytes;

	if (runt_bytes <= (uint32_t)f->mss_bytes >> RUNT_SHIFT)
		return flight;
	return flight - runt_bytes + f->mss_bytes;
}

/*
 * Bytes that have left the network above snd_una, as far as duplicate ACKs tell: one segment
 * each, never more than the flight (RFC 6582, 3.2 step 2, and Linux for a peer without SACK).
 */
VCC_INLINE uint32_t sacked_bytes(const struct vcc_flow *f)
{
	return vcc_min((uint32_t)f->dupacks * f->mss_bytes, flight_bytes(f));
}

/* One past the last sequence number that a segment occupies. */
VCC_INLINE uint32_t segment_end(const struct vcc_segment *s)
{
	return s->seq + s->payload_bytes + !!(s->flags & TCP_SYN) + !!(s->flags & TCP_FIN);
}

/* How a data segment of the guest relates to what it sent before. */
enum vcc_sent {
	SENT_NOTHING, /* occupies no sequence space */
	SENT_NEW,
	SENT_PARTLY_NEW, /* begins with what was sent before: not to be timed or marked */
	SENT_TAIL_AGAIN, /* a retransmission that ends at snd_nxt: perhaps a probe (RFC 8985, 7) */
	SENT_AGAIN,
};

/* Take note of a segment from the guest. */
VCC_INLINE enum vcc_sent track_sent(struct vcc_flow *f, const struct vcc_segment *s)
{
	uint32_t end = segment_end(s);
	uint32_t now_us = (uint32_t)s->now_us;

	if (end == s->seq || !seq_plausible(f->snd_una, end))
		return SENT_NOTHING;
	if (seq_after(end, f->snd_nxt)) {
		if (f->snd_nxt == f->snd_una)
			f->progress_us = now_us; /* RFC 6298, 5.1 */
		if (f->ca_state != CA_OPEN)
			f->prr_out_bytes += end - f->snd_nxt;
		bool partly_again = s->seq != f->snd_nxt;

		f->snd_nxt = end;
		if (partly_again) {
			rtt_cancel(f);
			return SENT_PARTLY_NEW;
		}
		rtt_start(f, end, now_us);
		return SENT_NEW;
	}
	rtt_cancel(f);
	if (!seq_after(end, f->snd_una))
		return SENT_NOTHING; /* old news: a keep-alive, or a copy that crossed its ACK */
	f->retransmissions++;
	if (f->ca_state != CA_OPEN)
		f->prr_out_bytes += end - s->seq;
	if (end == f->snd_nxt)
		return SENT_TAIL_AGAIN;
	return SENT_AGAIN;
}

/* What one ACK from the peer says. */
struct ack_news {
	uint32_t acked_bytes;	  /* by which snd_una moved */
	uint32_t delivered_bytes; /* acknowledged or inferred to have left the network */
	uint32_t rtt_us;	  /* a sample, or 0 */
	bool duplicate;		  /* by RFC 5681, 2 */
	bool same_ack;		  /* acknowledges just what was acknowledged, but is no duplicate */
};

/*
 * New data is acknowledged after duplicates: the first segment closes the hole, the others were
 * counted by the duplicates. Returns the bytes not counted yet (Linux: tcp_remove_reno_sacks).
 */
VCC_INLINE uint32_t close_hole(struct vcc_flow *f, uint32_t acked_bytes)
{
	uint32_t acked_segs = bytes_to_segs_ceil(f, acked_bytes);
	uint32_t uncounted_segs = vcc_max(vcc_sub_floor0(acked_segs, f->dupacks), 1);

	if (f->ca_state == CA_RECOVERY)
		f->dupacks = (uint16_t)vcc_sub_floor0(f->dupacks, acked_segs - 1);
	else
		f->dupacks = 0;
	return uncounted_segs * f->mss_bytes;
}

/* Take note of an ACK on its way to the guest. An ACK of data never sent changes nothing. */
VCC_INLINE struct ack_news track_acked(struct vcc_flow *f, const struct vcc_segment *s)
{
	struct ack_news news = {};
	uint32_t now_us = (uint32_t)s->now_us;

	if (seq_after(s->ack, f->snd_una) && !seq_after(s->ack, f->snd_nxt)) {
		news.acked_bytes = s->ack - f->snd_una;
		news.delivered_bytes = news.acked_bytes;
		if (f->dupacks)
			news.delivered_bytes = close_hole(f, news.acked_bytes);
		f->snd_una = s->ack;
		f->flags &= ~(uint32_t)FLOW_PRODDED;
		f->progress_us = now_us; /* RFC 6298, 5.3 */
		f->rto_backoff = 0;
		news.rtt_us = rtt_sample(f, s->ack, now_us);
	} else if (s->ack == f->snd_una && !s->payload_bytes && !(s->flags & TCP_FIN) &&
		   flight_bytes(f) && (f->flags & FLOW_WINDOW_SHOWN)) {
		/*
		 * A receiver with SACK says by its blocks that a segment arrived out of order; its
		 * window may move with it, which RFC 5681 would not count as a duplicate.
		 */
		if (s->window == f->window_received || (s->options & OPT_SACK)) {
			news.duplicate = true;
			/* What came twice has left the network before. */
			if (!s->dsack_bytes) {
				news.delivered_bytes = f->mss_bytes;
				f->dupacks += f->dupacks < UINT16_MAX;
			}
		} else {
			news.same_ack = true;
		}
	}
	VCC_LAW(!seq_after(f->snd_una, f->snd_nxt));
	return news;
}

#endif
