/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loss detection of a shell that retains what leaves (hold.h) until it is acknowledged, and
 * retransmits it itself: RACK-TLP (RFC 8985) for peers with SACK, NewReno (RFC 6582) for others,
 * and the retransmission timer (RFC 6298). A guest that is not running then needs no turn for a
 * loss.
 *
 * The segments and the scoreboard are the shell's; each decision about one of them is made here.
 * What the shell retransmits passes vcc_from_guest() like a retransmission of the guest, so loss.h,
 * prr.h and undo.h react to it alike.
 */
#ifndef VCC_REPAIR_H
#define VCC_REPAIR_H

#include "hold_release.h"

/* A segment that has left and is not acknowledged (RFC 8985, 5.1). */
struct vcc_retained {
	uint32_t seq;
	uint32_t end;	  /* one past its last sequence number */
	uint32_t sent_us; /* its last transmission */
	uint8_t sacked;	  /* bool */
	uint8_t lost;	  /* bool: to be sent again */
	uint8_t again;	  /* bool: it was sent more than once */
	uint8_t fin;	  /* bool: its last sequence number is a FIN */
};

/* A flow's state besides its scoreboard. */
struct vcc_repair {
	uint32_t pipe_bytes;   /* in the network, as far as known (RFC 6675, 2) */
	uint32_t sacked_bytes; /* reported by SACK blocks */
	uint32_t lost_bytes;   /* to be sent again */
	uint32_t timer_us;     /* the retransmission timer was last started (RFC 6298, 5) */
	uint32_t unheard_us;   /* since when what awaits an answer has had none */
	uint32_t probe_us;     /* the probe timer was last started (RFC 8985, 7.2) */
	uint32_t probe_end;    /* TLP.end_seq */
	/* RACK's variables (RFC 8985, 5.2): of the segment sent last among those delivered. */
	uint32_t rack_sent_us;
	uint32_t rack_end;
	uint32_t rack_rtt_us;
	uint32_t min_rtt_us;
	uint32_t fack;	      /* the highest sequence number delivered */
	uint32_t dsack_round; /* RACK.dsack_round */
	uint8_t delivered;    /* bool: RACK's variables are valid */
	uint8_t reordered;    /* bool: RACK.reordering_seen */
	uint8_t reo_mult;     /* RACK.reo_wnd_mult, less one */
	uint8_t reo_persist;  /* RACK.reo_wnd_persist */
	uint8_t timeouts;     /* in a row: doublings of the RTO (RFC 6298, 5.5) */
	uint8_t probed;	      /* bool: a tail loss probe is not answered yet (TLP.end_seq) */
	uint8_t persists;     /* persist timeouts in a row (RFC 9293, 3.8.6.1) */
	uint8_t dsacked;      /* bool: in the round trip up to dsack_round */
};

/* Recoveries for which a reordering window that DSACK has widened persists (RFC 8985, 6.2). */
#define REO_WND_PERSIST 16u
/* The delayed ACK for which the probe of a single segment waits (RFC 8985, 7.2: WCDelAckT). */
#define DELAYED_ACK_US 200000u
/* Doublings of the RTO; its maximum is reached before. */
#define TIMEOUTS_MAX 16u
/*
 * What is repaired is given up after this time without an answer, as by a host (R2 of RFC 9293,
 * 3.8.3; Linux: tcp_retries2, 924.6 s).
 */
#define GIVE_UP_US (15u * 60 * 1000000)
/* Never: no deadline. */
#define REPAIR_NEVER_US 0xffffffffu

VCC_INLINE uint32_t retained_bytes(const struct vcc_retained *t)
{
	return t->end - t->seq;
}

/* Is what leaves retained and repaired? */
VCC_INLINE bool acts_by_repair(const struct vcc_flow *f, const struct vcc_params *p)
{
	return is_managed(f) && acts_by_hold(f, p) && (p->retransmit || acts_by_split(f, p));
}

/* The retransmission timer starts (RFC 6298, 5.1). */
VCC_INLINE void repair_starts(struct vcc_repair *r, uint32_t now_us)
{
	r->timer_us = now_us;
	r->unheard_us = now_us;
}

/*
 * Begins or ends retaining what leaves, as the treatment demands. What left before is the guest's
 * to retransmit. Returns whether the shell must discard what it retains.
 */
VCC_INLINE bool repair_judge(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			     const struct vcc_params *p, uint32_t now_us)
{
	bool retains = h->begun && (acts_by_repair(f, p) || split_owes(f, h));
	bool discards = h->retains && !retains;

	if (retains && !h->retains) {
		h->kept_from = f->snd_nxt;
		repair_starts(r, now_us);
		r->probe_us = now_us;
	}
	h->retains = retains;
	h->promises = h->promises && retains;
	VCC_LAW(!discards || !split_owes(f, h)); /* law 16 */
	return discards;
}

/* `bytes` of the buffer are taken by what has left. */
VCC_INLINE void repair_charge(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			      uint32_t bytes)
{
	/* Nothing waits: without this, held_end would be ambiguous after 2 GiB (RFC 9293, 3.4). */
	if (!is_held(f, h))
		h->held_end = f->snd_nxt;
	h->held_bytes += bytes;
	b->used_bytes += bytes;
}

/*
 * New data of the guest is about to leave at once, and takes `bytes` of the buffer while it is
 * retained.
 */
VCC_INLINE void repair_takes(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			     uint32_t data_bytes, uint32_t bytes)
{
	hold_uses_grant(h, b, data_bytes, bytes);
	repair_charge(f, h, b, bytes);
}

/* What was taken so is free, and will be taken again by what becomes of the segment. */
VCC_INLINE void repair_returns(struct vcc_hold *h, struct vcc_buffer *b, uint32_t bytes)
{
	hold_left(h, b, bytes);
	hold_set_grant(h, b, h->granted_bytes + bytes);
}

/* A segment is about to leave for the first time: the timers that await its answer. */
VCC_INLINE void repair_leaves(const struct vcc_flow *f, struct vcc_repair *r, uint32_t now_us)
{
	if (!flight_bytes(f)) {
		repair_starts(r, now_us);
		/*
		 * What was delivered before says nothing about it, and after 36 minutes would seem
		 * to have been sent later.
		 */
		r->delivered = false;
	}
	r->probe_us = now_us;
	r->persists = 0;
}

/* A segment is about to leave for the first time, and is retained. */
VCC_INLINE void repair_sent(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			    const struct vcc_retained *t)
{
	/* What was not retained before it is the guest's to retransmit. */
	if (seq_after(t->seq, f->snd_nxt))
		h->kept_from = t->seq;
	repair_leaves(f, r, t->sent_us);
	r->pipe_bytes += retained_bytes(t);
}

/* A segment is about to be held, and may wait for the peer's window. */
VCC_INLINE void repair_waits(const struct vcc_flow *f, const struct vcc_hold *h,
			     struct vcc_repair *r, uint32_t now_us)
{
	if (flight_bytes(f) || is_held(f, h))
		return;
	repair_starts(r, now_us);
}

/* A segment up to `end` is about to leave, and is not retained: its loss is the guest's. */
VCC_INLINE void repair_passes(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			      uint32_t end, uint32_t now_us)
{
	repair_leaves(f, r, now_us);
	h->kept_from = end;
}

/* RFC 8985, 6.1: was `a` sent after `b`? Of segments sent at once, the one with higher numbers. */
VCC_INLINE bool rack_sent_after(uint32_t a_us, uint32_t a_end, uint32_t b_us, uint32_t b_end)
{
	return (int32_t)(a_us - b_us) > 0 || (a_us == b_us && seq_after(a_end, b_end));
}

/* RFC 8985, 6.2, steps 1 to 3: a segment was delivered. */
VCC_INLINE void rack_delivered(struct vcc_repair *r, const struct vcc_retained *t, uint32_t now_us)
{
	uint32_t rtt_us = now_us - t->sent_us;

	/* Step 3: a segment below the highest one delivered that was sent once. */
	if (!r->delivered || seq_after(t->end, r->fack))
		r->fack = t->end;
	else if (seq_before(t->end, r->fack) && !t->again)
		r->reordered = true;
	/* Step 2: an ACK this early is that of the transmission before. */
	if (t->again && rtt_us < r->min_rtt_us)
		return;
	if (!t->again && (!r->min_rtt_us || rtt_us < r->min_rtt_us))
		r->min_rtt_us = vcc_max(rtt_us, 1);
	if (r->delivered && !rack_sent_after(t->sent_us, t->end, r->rack_sent_us, r->rack_end))
		return;
	r->delivered = true;
	r->rack_rtt_us = rtt_us;
	r->rack_sent_us = t->sent_us;
	r->rack_end = t->end;
}

VCC_INLINE void repair_leaves_pipe(struct vcc_repair *r, const struct vcc_retained *t)
{
	VCC_LAW(t->sacked || t->lost || r->pipe_bytes >= retained_bytes(t));
	if (!t->sacked && !t->lost)
		r->pipe_bytes -= retained_bytes(t);
}

/* The segment is not to be sent again, for now. */
VCC_INLINE void repair_not_lost(struct vcc_repair *r, const struct vcc_retained *t)
{
	VCC_LAW(!t->lost || r->lost_bytes >= retained_bytes(t));
	if (t->lost)
		r->lost_bytes -= retained_bytes(t);
}

/* A SACK block covers the segment. */
VCC_INLINE void repair_sacked(struct vcc_repair *r, struct vcc_retained *t, uint32_t now_us)
{
	if (t->sacked)
		return;
	repair_leaves_pipe(r, t);
	repair_not_lost(r, t);
	rack_delivered(r, t, now_us);
	r->sacked_bytes += retained_bytes(t);
	r->timer_us = now_us;
	t->sacked = true;
	t->lost = false;
}

/* The segment is acknowledged, and no longer retained. */
VCC_INLINE void repair_acked(struct vcc_repair *r, const struct vcc_retained *t, uint32_t now_us)
{
	repair_leaves_pipe(r, t);
	repair_not_lost(r, t);
	if (t->sacked)
		r->sacked_bytes -= retained_bytes(t);
	else
		rack_delivered(r, t, now_us);
}

VCC_INLINE void repair_lost(struct vcc_repair *r, struct vcc_retained *t)
{
	repair_leaves_pipe(r, t);
	repair_not_lost(r, t);
	r->lost_bytes += retained_bytes(t);
	t->lost = true;
}

/* An ACK of the peer, after its segments have been accounted for. */
VCC_INLINE void repair_on_ack(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			      const struct vcc_segment *s, uint32_t una_before,
			      uint32_t state_before)
{
	uint32_t now_us = (uint32_t)s->now_us;

	if (state_before >= CA_RECOVERY && f->ca_state == CA_OPEN && r->reo_persist &&
	    !--r->reo_persist)
		r->reo_mult = 0;
	r->unheard_us = now_us;
	if (seq_before(h->kept_from, f->snd_una))
		h->kept_from = f->snd_una;
	if (seq_after(f->snd_una, una_before)) {
		r->timer_us = now_us; /* RFC 6298, 5.3 */
		r->probe_us = now_us;
		r->timeouts = 0;
	}
	if (r->probed && !seq_before(f->snd_una, r->probe_end))
		r->probed = false;
	if (r->dsacked && !seq_before(f->snd_una, r->dsack_round))
		r->dsacked = false;
	/* RFC 8985, 6.2, step 4: a retransmission was spurious, so reordering is wider than
	 * thought. */
	if (s->dsack_bytes && !r->dsacked) {
		r->dsacked = true;
		r->dsack_round = f->snd_nxt;
		r->reo_mult += r->reo_mult < UINT8_MAX;
		r->reo_persist = REO_WND_PERSIST;
		r->reordered = true;
	}
}

/* RFC 8985, 6.2, step 4. */
VCC_INLINE uint32_t reo_wnd_us(const struct vcc_flow *f, const struct vcc_repair *r)
{
	bool past_threshold = r->sacked_bytes >= DUPACK_THRESHOLD * f->mss_bytes;

	if (!r->reordered && (past_threshold || f->ca_state >= CA_RECOVERY))
		return 0;
	uint64_t wide_us = ((uint64_t)r->reo_mult + 1) * (r->min_rtt_us / 4);
	uint32_t srtt_us = f->srtt_us8 >> 3;

	return wide_us < srtt_us ? (uint32_t)wide_us : srtt_us;
}

/*
 * Time until the segment counts as lost (RFC 8985, 6.2, step 5): 0 if it does, REPAIR_NEVER_US if
 * nothing shows that it is lost. Without SACK the third duplicate ACK shows it, and then each
 * partial ACK (RFC 6582, 3.2), about the first segment in flight.
 */
VCC_INLINE uint32_t repair_lost_in_us(const struct vcc_flow *f, const struct vcc_repair *r,
				      const struct vcc_retained *t, uint32_t now_us)
{
	if (t->sacked || t->lost)
		return REPAIR_NEVER_US;
	if (!(f->flags & FLOW_SACK)) {
		bool first = !seq_after(t->seq, f->snd_una);

		return first && !t->again && f->ca_state == CA_RECOVERY ? 0 : REPAIR_NEVER_US;
	}
	if (!r->delivered || !rack_sent_after(r->rack_sent_us, r->rack_end, t->sent_us, t->end))
		return REPAIR_NEVER_US;
	return vcc_sub_floor0(r->rack_rtt_us + reo_wnd_us(f, r), now_us - t->sent_us);
}

/*
 * The bytes of a lost segment that may be sent again now, its FIN included: the reduction's grant
 * (RFC 6937) or the window less what is in the network, and nothing beyond the peer's window (law
 * 14). A window has room for a segment, where nothing is in the network.
 */
VCC_INLINE uint32_t repair_leaves_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
					const struct vcc_repair *r, const struct vcc_params *p,
					const struct vcc_retained *t, uint32_t unit_bytes)
{
	uint32_t whole_bytes = retained_bytes(t);
	uint32_t peer_bytes = seq_distance(t->seq, h->peer_edge);
	uint32_t leaves_bytes = UINT32_MAX;

	unit_bytes = vcc_max(unit_bytes, 1);
	if (!is_managed(f))
		leaves_bytes = UINT32_MAX;
	else if (f->ca_state == CA_OPEN && !resends_smaller(f))
		leaves_bytes = unit_bytes; /* the fast retransmission, which begins the reduction */
	else if (p->prr && is_reducing(f))
		leaves_bytes = seq_distance(f->snd_nxt, h->grant_edge) + h->resend_bytes;
	else
		leaves_bytes =
		    vcc_sub_floor0(cap_segs(f, p, f->cc.cwnd_segs) * f->mss_bytes, r->pipe_bytes);
	bool partial = !(f->flags & FLOW_SACK) && f->ca_state == CA_RECOVERY;

	/* A partial ACK lets the next segment leave (RFC 6582, 3.2). */
	if (!r->pipe_bytes || partial)
		leaves_bytes = vcc_max(leaves_bytes, unit_bytes);
	/* A FIN takes no room in a congestion window. */
	if (leaves_bytes >= whole_bytes - t->fin)
		leaves_bytes = whole_bytes;
	leaves_bytes = vcc_min(leaves_bytes, peer_bytes);
	if (leaves_bytes >= whole_bytes)
		leaves_bytes = whole_bytes;
	else if (leaves_bytes >= unit_bytes)
		leaves_bytes -= leaves_bytes % unit_bytes;
	else if (r->pipe_bytes || leaves_bytes != peer_bytes)
		leaves_bytes = 0;
	VCC_LAW(!leaves_bytes || !seq_after(t->seq + leaves_bytes, h->peer_edge)); /* law 14 */
	return leaves_bytes;
}

/* The segment has been sent again, and has passed the engine, whose state was `before`. */
VCC_INLINE void repair_resent(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			      struct vcc_retained *t, uint32_t now_us, uint32_t before)
{
	uint32_t bytes = retained_bytes(t);
	uint32_t left_bytes = seq_distance(f->snd_nxt, h->grant_edge);

	if (t->lost)
		r->pipe_bytes += bytes;
	repair_not_lost(r, t);
	r->persists = 0;
	t->lost = false;
	t->again = true;
	t->sent_us = now_us;
	/* A reduction grants at its next ACK; its grant is for retransmissions and for new data. */
	if (f->ca_state != before)
		bytes = UINT32_MAX;
	if (!is_reducing(f))
		return;
	h->grant_edge -= vcc_min(vcc_sub_floor0(bytes, h->resend_bytes), left_bytes);
	h->resend_bytes = vcc_sub_floor0(h->resend_bytes, bytes);
}

/* What a timer of a flow is for. */
enum vcc_repair_timer {
	REPAIR_NO_TIMER = 0,
	REPAIR_PROBE,	/* a tail loss probe (RFC 8985, 7) */
	REPAIR_TIMEOUT, /* the retransmission timer (RFC 6298) */
	REPAIR_PERSIST, /* the persist timer (RFC 9293, 3.8.6.1) */
	REPAIR_GIVE_UP, /* a promise cannot be kept (law 16) */
};

/* The timer that runs, and the time until it expires. */
struct vcc_repair_due {
	uint32_t in_us;
	uint32_t timer; /* enum vcc_repair_timer */
};

/* The RTO of a real sender, whose backoff continues to the RTO's maximum. */
VCC_INLINE uint32_t repair_rto_us(const struct vcc_flow *f, const struct vcc_params *p,
				  uint32_t doublings)
{
	struct vcc_flow without_backoff = *f;

	without_backoff.rto_backoff = 0;
	uint64_t rto = (uint64_t)rto_us(&without_backoff, p->rto_min_us)
		       << vcc_min(doublings, TIMEOUTS_MAX);

	return rto < RTO_MAX_US ? (uint32_t)rto : RTO_MAX_US;
}

/* RFC 8985, 7.2: the PTO. */
VCC_INLINE uint32_t repair_pto_us(const struct vcc_flow *f)
{
	uint32_t pto_us = f->srtt_us8 >> 2;

	return flight_bytes(f) <= f->mss_bytes ? pto_us + DELAYED_ACK_US : pto_us;
}

/* The timer that expires next; `waits`: something is held, or lost, and could not leave. */
VCC_INLINE struct vcc_repair_due repair_due(const struct vcc_flow *f, const struct vcc_hold *h,
					    const struct vcc_repair *r, const struct vcc_params *p,
					    uint32_t now_us, bool waits)
{
	struct vcc_repair_due due = { .in_us = REPAIR_NEVER_US };

	if (!h->retains || (!flight_bytes(f) && !waits))
		return due;
	/* The peer's window admits nothing: neither what is new nor what is lost. */
	bool shut = !flight_bytes(f) || !seq_before(f->snd_una, h->peer_edge);

	/* What SACK blocks have reported and no ACK follows has been reneged on (RFC 2018, 8). */
	due.timer = r->pipe_bytes || !waits || !shut ? REPAIR_TIMEOUT : REPAIR_PERSIST;
	uint32_t doublings = due.timer == REPAIR_TIMEOUT ? r->timeouts : r->persists;

	uint32_t give_up_in_us = vcc_sub_floor0(GIVE_UP_US, elapsed_us(r->unheard_us, now_us));

	due.in_us = vcc_sub_floor0(repair_rto_us(f, p, doublings), elapsed_us(r->timer_us, now_us));
	if (due.timer == REPAIR_TIMEOUT && f->ca_state == CA_OPEN && !r->probed && f->srtt_us8 &&
	    (f->flags & FLOW_SACK)) {
		uint32_t probe_in_us =
		    vcc_sub_floor0(repair_pto_us(f), elapsed_us(r->probe_us, now_us));

		if (probe_in_us < due.in_us)
			due = (struct vcc_repair_due){ probe_in_us, REPAIR_PROBE };
	}
	if (give_up_in_us < due.in_us || !give_up_in_us)
		due = (struct vcc_repair_due){ give_up_in_us, REPAIR_GIVE_UP };
	return due;
}

/* The last segment is sent again as a probe (RFC 8985, 7.3). */
VCC_INLINE void repair_probed(const struct vcc_flow *f, struct vcc_repair *r)
{
	r->probed = true;
	r->probe_end = f->snd_nxt;
}

/*
 * The retransmission timer expired. The shell then counts all that it retains as lost, even what
 * SACK blocks have reported, because the peer may have reneged (RFC 2018, 8).
 */
VCC_INLINE void repair_timeout(struct vcc_flow *f, struct vcc_repair *r, uint32_t now_us)
{
	/* A window that shrank below what is in flight says nothing about the path. */
	if (is_managed(f) && !peer_closed_window(f))
		timeout_begin(f, now_us);
	r->timer_us = now_us;
	r->timeouts += r->timeouts < TIMEOUTS_MAX;
	r->probed = false;
}

/* After a timeout: the segment counts as lost. */
VCC_INLINE void repair_forget_sack(struct vcc_repair *r, struct vcc_retained *t)
{
	if (t->sacked) {
		r->sacked_bytes -= retained_bytes(t);
		r->pipe_bytes += retained_bytes(t);
		t->sacked = false;
	}
	repair_lost(r, t);
}

/* The persist timer expired: the shell sends an empty segment, which the peer answers. */
VCC_INLINE void repair_persisted(struct vcc_repair *r, uint32_t now_us)
{
	r->timer_us = now_us;
	r->persists += r->persists < TIMEOUTS_MAX;
}

#endif
