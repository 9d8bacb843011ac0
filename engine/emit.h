/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments that the shell generates for the guest (AC/DC, 3.3), if the operator enables it:
 * duplicate ACKs, to trigger a fast retransmit long before the guest's RTO, and window updates when
 * the window grew without an ACK to carry it. Both repeat the last acknowledgement, so they
 * acknowledge nothing that the peer has not (law 9).
 */
#ifndef VCC_EMIT_H
#define VCC_EMIT_H

#include "window_cap.h"
#include "window.h"

/* The smallest flight that can cause three duplicate ACKs: a lost segment and three behind it. */
#define PROD_FLIGHT_SEGS (DUPACK_THRESHOLD + 1)

/*
 * Do duplicate ACKs make this guest retransmit? Not a guest with SACK: it needs blocks, and vcc
 * cannot claim what the peer holds. The flight must be large enough to cause them: Linux treats
 * excess duplicates as reordering.
 */
VCC_INLINE bool prods(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->emit && f->srtt_us8 && !(f->flags & (FLOW_SACK | FLOW_PRODDED)) &&
	       f->ca_state == CA_OPEN && (f->flags & FLOW_WINDOW_SHOWN) && f->window_received &&
	       !f->dupacks && bytes_to_segs_ceil(f, flight_bytes(f)) >= PROD_FLIGHT_SEGS;
}

/*
 * Time without progress after which the flight counts as lost: the RTO of RFC 6298, 2.3, with
 * emit_after_us as the minimum of its variance term. Requires an RTT sample.
 */
VCC_INLINE uint32_t prod_after_us(const struct vcc_flow *f, const struct vcc_params *p)
{
	return (f->srtt_us8 >> 3) + vcc_max(f->rttvar_us4, p->emit_after_us);
}

/* Deadline: requests duplicate ACKs if the flight made no progress for prod_after_us(). */
VCC_INLINE void prod(struct vcc_flow *f, const struct vcc_params *p, uint32_t since_us,
		     struct vcc_action *a)
{
	if (!prods(f, p))
		return;
	if (since_us >= prod_after_us(f, p)) {
		f->flags |= FLOW_PRODDED;
		a->dupacks = DUPACK_THRESHOLD;
		return;
	}
	a->deadline_ms = vcc_min(a->deadline_ms, (prod_after_us(f, p) - since_us) / 1000 + 1);
}

/* Deadline: requests a window update if the guest is window-limited and its window has grown. */
VCC_INLINE void update_window(struct vcc_flow *f, const struct vcc_params *p, struct vcc_action *a)
{
	uint32_t left_bytes = seq_distance(f->snd_nxt, f->right_edge);

	/*
	 * The window must not change while the guest counts duplicate ACKs (law 4). A pool's limit
	 * is not known here, so a pool's flows get no updates.
	 */
	if (!p->emit || p->pool_weight || f->ca_state != CA_OPEN || f->dupacks ||
	    (f->flags & FLOW_PRODDED) || left_bytes >= f->mss_bytes ||
	    !(f->flags & FLOW_WINDOW_SHOWN) || !f->window_received)
		return;
	uint32_t granted_bytes = cap_segs(f, p, f->cc.cwnd_segs) * f->mss_bytes;
	uint32_t field =
	    vcc_min(window_units(f, granted_bytes), window_translate(f, f->window_received));

	if (field <= f->window_shown || f->snd_una + (field << f->wscale_shown) == f->right_edge)
		return;
	a->update = true;
	a->window = (uint16_t)field;
	f->window_shown = (uint16_t)field;
	f->right_edge = seq_max(f->right_edge, f->snd_una + (field << f->wscale_shown));
}

#endif
