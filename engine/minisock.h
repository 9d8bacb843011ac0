/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is kept of a connection after its flow is forgotten, as Linux keeps a minisock of one in
 * TIME_WAIT. An end may continue after any time: a guest that was paused answers a SYN that waited
 * in its queue, a peer does not get the guest's RST, one that has closed its half reads for hours.
 * The guest still reads windows at the scale that its handshake showed. A segment of such a
 * connection revives the flow, and it is translated and policed as before.
 */
#ifndef VCC_MINISOCK_H
#define VCC_MINISOCK_H

#include "arrival.h"
#include "unknown_connection.h"

/* The fields that a minisock has of its flow. */
#define MINISOCK_FIELDS(FIELD)                                                                     \
	FIELD(flags)                                                                               \
	FIELD(snd_una)                                                                             \
	FIELD(snd_nxt)                                                                             \
	FIELD(rcv_nxt)                                                                             \
	FIELD(rcv_wup)                                                                             \
	FIELD(rcv_edge)                                                                            \
	FIELD(rcv_max)                                                                             \
	FIELD(right_edge)                                                                          \
	FIELD(iss)                                                                                 \
	FIELD(counted)                                                                             \
	FIELD(syn_seq)                                                                             \
	FIELD(syn_flags)                                                                           \
	FIELD(syn_mss_bytes)                                                                       \
	FIELD(mss_bytes)                                                                           \
	FIELD(mss_max_bytes)                                                                       \
	FIELD(rcv_mss_bytes)                                                                       \
	FIELD(window_shown)                                                                        \
	FIELD(window_received)                                                                     \
	FIELD(stage)                                                                               \
	FIELD(underlay)                                                                            \
	FIELD(accecn)                                                                              \
	FIELD(ace_counted)                                                                         \
	FIELD(ace_heard)                                                                           \
	FIELD(settled)                                                                             \
	FIELD(peer_sends)                                                                          \
	FIELD(wscale_guest)                                                                        \
	FIELD(wscale_peer)                                                                         \
	FIELD(wscale_shown)                                                                        \
	FIELD(syn_wscale)                                                                          \
	FIELD(syn_ip_ecn)

/*
 * Does a forgotten flow leave a minisock? Only if vcc changed its handshake, or its rule rejects
 * what is unknown; and if an end may still continue. After both FINs, retransmissions alone follow:
 * nobody sends by the windows in them, but they must not be mistaken for unknown segments.
 */
VCC_INLINE bool leaves_minisock(const struct vcc_flow *f, const struct vcc_params *p)
{
	const uint32_t fins = FLOW_FIN_GUEST | FLOW_FIN_PEER;
	bool rejects = rejects_unknown(p);

	/* A guest that has refused the SYN reads nothing. */
	bool is_refused = f->stage == STAGE_CLOSED && !(f->flags & FLOW_SYN_SEEN_GUEST);
	bool is_over = (f->flags & fins) == fins && !(rejects && flight_bytes(f));

	return f->stage != STAGE_NONE && (is_kept(f) || rejects) && !is_refused && !is_over;
}

/* Has the handshake completed at some time? That of a guest that has moved here has. */
VCC_INLINE bool has_been_open(const struct vcc_flow *f)
{
	return f->settled || f->stage == STAGE_ESTABLISHED;
}

/*
 * From-guest: does a SYN begin another connection, so that the guest has ended that of the
 * minisock? Only a SYN of the guest is believed: one of the peer can be forged off-path.
 */
VCC_INLINE bool is_superseded(const struct vcc_minisock *m, const struct vcc_segment *s)
{
	/* Unless the minisock has a SYN of the guest, this one may answer a SYN that waited. */
	return (s->flags & TCP_SYN) && (m->flags & FLOW_SYN_SEEN_GUEST) && s->seq != m->iss &&
	       s->seq != m->syn_seq;
}

VCC_INLINE void minisock_keep(struct vcc_minisock *m, const struct vcc_flow *f)
{
#define KEEP(field) m->field = f->field;
	MINISOCK_FIELDS(KEEP)
#undef KEEP
}

/*
 * Restores a new flow from the minisock, and treats it by `p`. A handshake continues where it was.
 * An open connection is one that arrives (arrival.h): the next segments show how far it has come.
 * Where the rule rejects what is unknown, none has passed meanwhile, and the guest's word alone
 * would move its own edge. Returns 0; -1: no flow can have such a state.
 */
VCC_INLINE int vcc_revive(struct vcc_flow *f, const struct vcc_minisock *m,
			  const struct vcc_params *p, uint64_t now_us)
{
	if (!is_underlay(m->underlay))
		return -1;
	flow_init(f, p, STAGE_NONE);
#define REVIVE(field) f->field = m->field;
	MINISOCK_FIELDS(REVIVE)
#undef REVIVE
	cc_init(f->underlay, &f->cc, vcc_max(p->initial_window_segs, 1));
	if (f->stage >= STAGE_ESTABLISHED) {
		f->stage = STAGE_ESTABLISHED;
		if (vcc_arrive(f, p, now_us))
			return -1;
		if (rejects_unknown(p))
			f->lags = 0;
		return 0;
	}
	f->flags &= FLOW_TRAVELS;
	f->last_seen_ms = (uint32_t)(now_us / 1000);
	f->progress_us = f->validated_us = f->sent_us = (uint32_t)now_us;
	numbers_begin(f);
	if (!flow_invariant(f))
		return -1;
	vcc_judge_anew(f, p);
	return 0;
}

#endif
