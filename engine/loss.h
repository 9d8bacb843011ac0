/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Losses, inferred from what the guest and the peer do about them. */
#ifndef VCC_LOSS_H
#define VCC_LOSS_H

#include "prr.h"

/* A guest that probes a closed window tells nothing about the path (RFC 9293, 3.8.6.1). */
VCC_INLINE bool peer_closed_window(const struct vcc_flow *f)
{
	return (f->flags & FLOW_WINDOW_SHOWN) && !f->window_received;
}

/* Has the retransmission timer of a sender in our place run out? */
VCC_INLINE bool rto_passed(const struct vcc_flow *f, const struct vcc_params *p, uint32_t now_us)
{
	return flight_bytes(f) && !peer_closed_window(f) &&
	       elapsed_us(f->progress_us, now_us) >= rto_us(f, p->rto_min_us);
}

/* The guest sent something again: which of its mechanisms was it? */
VCC_INLINE void loss_from_guest(struct vcc_flow *f, const struct vcc_params *p, enum vcc_sent sent,
				const struct vcc_segment *s)
{
	bool told = f->dupacks >= DUPACK_THRESHOLD;

	/* The missing segment may be the head of something new. */
	if (sent == SENT_NOTHING || sent == SENT_NEW || (sent == SENT_PARTLY_NEW && !told) ||
	    peer_closed_window(f))
		return;
	if (s->seq == f->snd_una && rto_passed(f, p, (uint32_t)s->now_us)) {
		timeout_begin(f, (uint32_t)s->now_us);
		f->prr_out_bytes = s->payload_bytes;
		return;
	}
	/*
	 * A guest that its window holds back cannot probe with new data and sends its tail again
	 * (RFC 8985, 7.3). That is no loss; if it was one, duplicates or a timeout will tell.
	 */
	if (sent == SENT_TAIL_AGAIN && !told)
		return;
	if (f->ca_state == CA_OPEN) {
		reduction_begin(f, p, CONGESTION_LOSS);
		f->prr_out_bytes = s->payload_bytes;
	} else if (f->ca_state == CA_CWR) {
		reduction_to_recovery(f);
	}
}

/*
 * RFC 5681, 3.2: the third duplicate ACK. A guest with SACK knows better (RFC 6675; RFC 8985, which
 * learns how far segments overtake each other): what it takes for lost, it sends again, and until
 * then its window stays shut.
 */
VCC_INLINE void loss_from_dupacks(struct vcc_flow *f, const struct vcc_params *p,
				  const struct vcc_segment *s)
{
	if (f->dupacks < DUPACK_THRESHOLD || (s->options & OPT_SACK))
		return;
	if (f->ca_state == CA_OPEN)
		reduction_begin(f, p, CONGESTION_LOSS);
	else if (f->ca_state == CA_CWR)
		reduction_to_recovery(f);
}

#endif
