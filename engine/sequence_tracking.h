/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sequence tracking: the guest's data and the peer's acknowledgements (RFC 9293, 3.3.1). */
#ifndef VCC_SEQUENCE_TRACKING_H
#define VCC_SEQUENCE_TRACKING_H

#include "rtt.h"
#include "seq.h"
#include "vcc.h"

/* Duplicate ACKs that signal a loss (RFC 5681, 3.2). */
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
 * The flight, with a short last segment counted as full. A runt, which a guest sends into the
 * rounding of its window, is not: otherwise each ACK of a reduction would grant a segment for it,
 * and the guest would not reduce.
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
 * Bytes above snd_una that have left the network, inferred as one segment per duplicate ACK and at
 * most the flight (RFC 6582, 3.2 step 2; Linux for a peer without SACK).
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

/* A segment's place among the sequence numbers that the guest has sent. */
enum vcc_sent {
	SENT_NOTHING, /* occupies no sequence space */
	SENT_NEW,
	SENT_PARTLY_NEW, /* retransmits data and extends it: neither timed nor ECT */
	SENT_TAIL_AGAIN, /* a retransmission up to snd_nxt: perhaps a tail loss probe (RFC 8985, 7)
			  */
	SENT_AGAIN,
};

/* Of what is sent up to `end`, the new bytes that do not belong to the window that was reduced. */
VCC_INLINE uint32_t beyond_recover_bytes(const struct vcc_flow *f, uint32_t end)
{
	return seq_distance(seq_max(f->snd_nxt, f->recover), end);
}

/* Tracks a segment from the guest. */
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
			f->prr_out_bytes += beyond_recover_bytes(f, end);
		bool partly_again = s->seq != f->snd_nxt;

		f->snd_nxt = end;
		if (partly_again) {
			rtt_cancel(f);
			return SENT_PARTLY_NEW;
		}
		rtt_start(f, end, now_us);
		return SENT_NEW;
	}
	if (!seq_after(end, f->snd_una))
		return SENT_NOTHING; /* a keep-alive, or a retransmission that crossed its ACK */
	/* Of what comes behind the timed segment, another copy makes its ACK no less certain. */
	if (seq_before(s->seq, f->rtt_seq))
		rtt_cancel(f);
	f->retransmissions++;
	if (f->ca_state != CA_OPEN)
		f->prr_out_bytes += end - s->seq;
	if (end == f->snd_nxt)
		return SENT_TAIL_AGAIN;
	return SENT_AGAIN;
}

/* News in one ACK from the peer. */
struct ack_news {
	uint32_t acked_bytes;	  /* advance of snd_una */
	uint32_t delivered_bytes; /* acknowledged or inferred to have left the network */
	uint32_t rtt_us; /* a sample, or 0; from path_measure() on, only the fabric's delay */
	bool timed;	 /* it is a sample of the path (path.h) */
	bool duplicate;	 /* a duplicate ACK (RFC 5681, 2) */
	bool same_ack;	 /* repeats snd_una but is no duplicate: a window update */
};

/*
 * An ACK of new data after duplicates: the first segment fills the hole, the duplicates have
 * counted the others. Returns the bytes that were not counted yet (Linux: tcp_remove_reno_sacks):
 * of a part of a segment, no more than that part.
 */
VCC_INLINE uint32_t close_hole(struct vcc_flow *f, uint32_t acked_bytes)
{
	uint32_t acked_segs = bytes_to_segs_ceil(f, acked_bytes);
	uint32_t uncounted_segs = vcc_max(vcc_sub_floor0(acked_segs, f->dupacks), 1);

	if (f->ca_state == CA_RECOVERY)
		f->dupacks = (uint16_t)vcc_sub_floor0(f->dupacks, acked_segs - 1);
	else
		f->dupacks = 0;
	return vcc_min(uncounted_segs * f->mss_bytes, acked_bytes);
}

/* Tracks an ACK of new data. Returns an RTT sample in us, or 0. */
VCC_INLINE uint32_t track_advance(struct vcc_flow *f, const struct vcc_segment *s)
{
	f->snd_una = s->ack;
	f->flags &= ~(uint32_t)FLOW_PRODDED;
	f->progress_us = (uint32_t)s->now_us; /* RFC 6298, 5.3 */
	f->rto_backoff = 0;
	return rtt_sample(f, s->ack, (uint32_t)s->now_us);
}

/* Tracks an ACK to the guest. An ACK beyond snd_nxt changes nothing. */
VCC_INLINE struct ack_news track_acked(struct vcc_flow *f, const struct vcc_segment *s)
{
	struct ack_news news = {};

	if (seq_after(s->ack, f->snd_una) && !seq_after(s->ack, f->snd_nxt)) {
		news.acked_bytes = s->ack - f->snd_una;
		news.delivered_bytes = news.acked_bytes;
		if (f->dupacks)
			news.delivered_bytes = close_hole(f, news.acked_bytes);
		news.rtt_us = track_advance(f, s);
	} else if (s->ack == f->snd_una && !s->payload_bytes && !(s->flags & TCP_FIN) &&
		   flight_bytes(f) && (f->flags & FLOW_WINDOW_SHOWN)) {
		/*
		 * SACK blocks identify a duplicate ACK even if the window moved with it, which
		 * RFC 5681 would not count.
		 */
		if (s->window == f->window_received || (s->options & OPT_SACK)) {
			news.duplicate = true;
			/*
			 * A DSACK reports a segment that had left the network before. With SACK,
			 * only blocks say that one has left now (RFC 6675, 2): a receiver can
			 * repeat the rest as often as it likes.
			 */
			if (!s->dsack_bytes &&
			    (!(f->flags & FLOW_SACK) || (s->options & OPT_SACK))) {
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
