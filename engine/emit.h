/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments that the shell sends to the guest on its own (AC/DC, 3.3), by the operator's choice:
 * duplicate ACKs for a guest whose own timeout is far off, and window updates when the window has
 * grown without an ACK to say so. Both repeat the last acknowledgement: nothing is acknowledged
 * that the peer has not.
 */
#ifndef VCC_EMIT_H
#define VCC_EMIT_H

#include "cap.h"
#include "window.h"

/* So many segments in flight can make a receiver send three duplicate ACKs: one is missing. */
#define PROD_FLIGHT_SEGS (DUPACK_THRESHOLD + 1)

/*
 * Will duplicate ACKs make this guest retransmit? Not one with SACK, which believes only blocks,
 * and blocks would be a lie. Nor more of them than its flight can cause: Linux takes those for a
 * sign of reordering.
 */
VCC_INLINE bool prods(const struct vcc_flow *f, const struct vcc_params *p)
{
	return p->emit && f->srtt_us8 && !(f->flags & (FLOW_SACK | FLOW_PRODDED)) &&
	       f->ca_state == CA_OPEN && (f->flags & FLOW_WINDOW_SHOWN) && f->window_received &&
	       !f->dupacks && bytes_to_segs_ceil(f, flight_bytes(f)) >= PROD_FLIGHT_SEGS;
}

/*
 * Without progress for so long, what is in flight must be lost: the RTO of RFC 6298, 2.3, with the
 * operator's margin for its minimum. Never before a path's round trip is known.
 */
VCC_INLINE uint32_t prod_after_us(const struct vcc_flow *f, const struct vcc_params *p)
{
	return (f->srtt_us8 >> 3) + vcc_max(f->rttvar_us4, p->emit_after_us);
}

/* Deadline: nothing was acknowledged for so long that the last segments must be lost. */
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

/* Deadline: may the guest send more than it was told with the last ACK, and does it wait? */
VCC_INLINE void update_window(struct vcc_flow *f, const struct vcc_params *p, struct vcc_action *a)
{
	uint32_t left_bytes = seq_distance(f->snd_nxt, f->right_edge);

	/*
	 * While the guest counts duplicates, ours or the peer's, its window does not change. What a
	 * pool leaves is not known here.
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
