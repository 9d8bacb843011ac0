/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine compiled for user space: the same source that the datapath inlines. */
/* src/loaded.rs has the underlays that are loaded at run time. */
#define VCC_LOADED extern
#include "abi.h"
#include "accept.h"
#include "guest_rate.h"
#include "handover.h"
#include "hold.h"
#include "hold_pool.h"
#include "invariant.h"
#include "pmtu.h"
#include "snoop_ack.h"
#include "split.h"
#include "ack_thinning.h"

bool vcc_native_is_predicted(const struct vcc_flow *f, const struct vcc_params *p,
			     const struct vcc_segment *s, bool to_guest)
{
	return to_guest ? is_predicted_to_guest(f, p, s) : is_predicted_from_guest(f, p, s);
}

bool vcc_native_needs_time(const struct vcc_flow *f, const struct vcc_params *p,
			   const struct vcc_segment *s, bool to_guest)
{
	return to_guest ? needs_time_to_guest(f, p, s) : needs_time_from_guest(f, p, s);
}

#if defined(VCC_CHECK_LAWS)
static bool is_same_flow(const struct vcc_flow *f, const struct vcc_flow *g)
{
	const unsigned char *a = (const void *)f, *b = (const void *)g;

	for (unsigned i = 0; i < sizeof(*f); i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static bool is_same_action(const struct vcc_action *a, const struct vcc_action *b)
{
	return a->verdict == b->verdict && a->ip_ecn == b->ip_ecn && a->wscale == b->wscale &&
	       a->forget == b->forget && a->strip == b->strip && a->emit == b->emit &&
	       a->hello == b->hello && a->police == b->police && a->forged == b->forged &&
	       a->flags == b->flags && a->window == b->window && a->mss == b->mss &&
	       a->fabric_us == b->fabric_us && a->guest_us == b->guest_us &&
	       a->feedback.ect0_bytes == b->feedback.ect0_bytes &&
	       a->feedback.ce_bytes == b->feedback.ce_bytes;
}

/* With every segment: does header prediction do the same as the engine's concerns in order? */
void vcc_native_from_guest(struct vcc_flow *f, const struct vcc_params *p,
			   const struct vcc_segment *s, struct vcc_action *a)
{
	struct vcc_flow predicted = *f;
	struct vcc_action action;
	bool expected = is_predicted_from_guest(f, p, s);

	if (expected)
		predicted_from_guest(&predicted, p, s, &action);
	vcc_from_guest(f, p, s, a);
	VCC_LAW(!expected || is_same_flow(&predicted, f));
	VCC_LAW(!expected || is_same_action(&action, a));
	VCC_LAW(a->forget || flow_invariant(f));
}

void vcc_native_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			 const struct vcc_segment *s, struct vcc_action *a)
{
	struct vcc_flow predicted = *f;
	struct vcc_action action;
	bool expected = is_predicted_to_guest(f, p, s);

	if (expected)
		predicted_to_guest(&predicted, p, s, &action);
	vcc_to_guest(f, p, s, a);
	VCC_LAW(!expected || is_same_flow(&predicted, f));
	VCC_LAW(!expected || is_same_action(&action, a));
	VCC_LAW(a->forget || flow_invariant(f));
}
#else
/* As in the datapath, the shell provides the action: a copy costs as much as a concern. */
void vcc_native_from_guest(struct vcc_flow *f, const struct vcc_params *p,
			   const struct vcc_segment *s, struct vcc_action *a)
{
	vcc_from_guest(f, p, s, a);
}

void vcc_native_to_guest(struct vcc_flow *f, const struct vcc_params *p,
			 const struct vcc_segment *s, struct vcc_action *a)
{
	vcc_to_guest(f, p, s, a);
}
#endif

struct vcc_action vcc_native_deadline(struct vcc_flow *f, const struct vcc_params *p,
				      uint64_t now_us, bool crowded)
{
	struct vcc_action a = vcc_deadline(f, p, now_us, crowded);

	VCC_LAW(a.forget || flow_invariant(f));
	return a;
}

int vcc_native_arrive(struct vcc_flow *f, const struct vcc_params *p, uint64_t now_us)
{
	int err = vcc_arrive(f, p, now_us);

	VCC_LAW(err || flow_invariant(f));
	return err;
}

bool vcc_native_leave_minisock(const struct vcc_flow *f, const struct vcc_params *p,
			       struct vcc_minisock *m)
{
	if (!leaves_minisock(f, p))
		return false;
	minisock_keep(m, f);
	return true;
}

bool vcc_native_is_superseded(const struct vcc_minisock *m, const struct vcc_segment *s)
{
	return is_superseded(m, s);
}

bool vcc_native_has_been_open(const struct vcc_flow *f)
{
	return has_been_open(f);
}

int vcc_native_revive(struct vcc_flow *f, const struct vcc_minisock *m, const struct vcc_params *p,
		      uint64_t now_us)
{
	int err = vcc_revive(f, m, p, now_us);

	VCC_LAW(err || flow_invariant(f));
	return err;
}

bool vcc_native_rejects_unknown(const struct vcc_params *p)
{
	return rejects_unknown(p);
}

uint32_t vcc_native_unknown_grace_left_s(const struct vcc_params *p, uint32_t attached_s,
					 uint32_t now_s)
{
	return unknown_grace_left_s(p, attached_s, now_s);
}

bool vcc_native_drops_unknown(const struct vcc_params *p, const struct vcc_segment *s,
			      uint32_t attached_s, uint32_t now_s)
{
	return drops_unknown(p, s, attached_s, now_s);
}

bool vcc_native_come_back(struct vcc_flow *f, uint32_t snd_una, uint32_t rcv_wup, uint32_t now_ms)
{
	bool comes_back = vcc_come_back(f, snd_una, rcv_wup, now_ms);

	VCC_LAW(flow_invariant(f));
	return comes_back;
}

int vcc_native_answered(struct vcc_flow *f, uint64_t now_us)
{
	const uint32_t both = FLOW_SYN_SEEN_GUEST | FLOW_SYN_SEEN_PEER;

	if (f->stage != STAGE_SYN_RECEIVED || (f->flags & both) != both)
		return -1;
	establish(f, now_us);
	VCC_LAW(flow_invariant(f));
	return 0;
}

int vcc_native_take_over(struct vcc_flow *f, const struct vcc_params *p, uint64_t now_us)
{
	int err = vcc_take_over(f, p, now_us);

	VCC_LAW(err || flow_invariant(f));
	return err;
}

void vcc_native_resume(struct vcc_flow *f, struct vcc_repair *r, uint64_t now_us)
{
	vcc_resume(f, r, now_us);
	VCC_LAW(flow_invariant(f));
}

bool vcc_native_fragment_from_guest(struct vcc_flow *f, const struct vcc_params *p,
				    const struct vcc_segment *s)
{
	bool releases = vcc_fragment_from_guest(f, p, s);

	VCC_LAW(flow_invariant(f));
	return releases;
}

void vcc_native_judge_anew(struct vcc_flow *f, const struct vcc_params *p)
{
	vcc_judge_anew(f, p);
	VCC_LAW(flow_invariant(f));
}

bool vcc_native_is_sound(const struct vcc_flow *f)
{
	return flow_invariant(f);
}

bool vcc_native_is_bound(const struct vcc_flow *f)
{
	return is_bound(f);
}

bool vcc_native_depends_on_translation(const struct vcc_flow *f)
{
	return depends_on_translation(f);
}

bool vcc_native_is_kept(const struct vcc_flow *f)
{
	return is_kept(f);
}

bool vcc_native_is_managed(const struct vcc_flow *f)
{
	return is_managed(f);
}

uint32_t vcc_native_rto_us(const struct vcc_flow *f, uint32_t rto_min_us)
{
	return rto_us(f, rto_min_us);
}

uint32_t vcc_native_look_within_ms(const struct vcc_flow *f, const struct vcc_params *p)
{
	return look_within_ms(f, p);
}

bool vcc_native_is_crowded(uint32_t flows, uint32_t flows_max)
{
	return is_crowded(flows, flows_max);
}

uint32_t vcc_native_half_open_max(uint32_t flows_max)
{
	return half_open_max(flows_max);
}

uint32_t vcc_native_cap_segs(const struct vcc_flow *f, const struct vcc_params *p,
			     uint32_t granted_segs)
{
	return cap_segs(f, p, granted_segs);
}

bool vcc_native_fills_window(const struct vcc_flow *f, uint32_t window_bytes, uint32_t used_bytes,
			     bool tso)
{
	return fills_window(f, window_bytes, used_bytes, tso);
}

void vcc_native_guest_answered(struct vcc_flow *f, uint32_t now_us, bool may_be_delayed)
{
	guest_answered(f, now_us, may_be_delayed);
}

void vcc_native_unheld(const struct vcc_flow *f, const struct vcc_params *p,
		       const struct vcc_segment *s, bool to_guest, struct vcc_action *a)
{
	if (to_guest)
		unheld_to_guest(f, p, s, a);
	else
		unheld_from_guest(f, p, s, a);
	VCC_LAW(a->verdict != VCC_PASS || !to_guest || a->window <= window_translate(f, s->window));
}

void vcc_native_cap_guest_rate(uint64_t *full_ns, struct vcc_flow *f, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a)
{
	if (!exceeds_guest_rate(full_ns, f, p, s, a))
		return;
	drop_policed(a);
	count_policed(f);
}

bool vcc_native_guest_rate_take(uint64_t *full_ns, uint32_t bytes_per_ms, uint32_t bytes,
				uint64_t now_ns)
{
	return guest_rate_take(full_ns, bytes_per_ms, bytes, now_ns);
}

uint32_t vcc_native_unknown_rate_bytes_per_ms(const struct vcc_params *p)
{
	return unknown_rate_bytes_per_ms(p);
}

bool vcc_native_is_rate_capped(const struct vcc_flow *f, const struct vcc_params *p)
{
	return is_rate_capped(f, p);
}

uint64_t vcc_native_guest_rate_due_us(uint64_t full_ns, uint32_t bytes_per_ms, uint64_t now_us)
{
	return guest_rate_due_us(full_ns, bytes_per_ms, now_us);
}

void vcc_native_delays_count(struct vcc_delays *d, const struct vcc_action *a)
{
	delays_count(d, a);
}

/* src/loaded.rs: runs one hook of the underlay in a slot. */
int vcc_loaded_hook(uint32_t slot, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
		    const struct vcc_params *p, uint64_t call);

int loaded_run(uint32_t slot, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
	       const struct vcc_params *p, uint64_t call)
{
	bool was_infinite = cc->ssthresh_segs == SSTHRESH_INFINITE;

	if (call_hook(call) != HOOK_ADVANCE)
		return vcc_loaded_hook(slot, cc, ack, p, call);
	vcc_loaded_hook(slot, cc, ack, p, call_of(HOOK_FEEDBACK, 0));
	cc_bound(cc, was_infinite, loaded_traits(slot) & CC_ALPHA);
	return vcc_loaded_hook(slot, cc, ack, p, call_of(HOOK_ACK, 0));
}

/* What a slot without an underlay does. */
void vcc_native_reno_run(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
			 const struct vcc_params *p, uint64_t call)
{
	CC_CALL(reno, 0, cc, ack, p, call);
}

void vcc_native_move_underlay(struct vcc_flow *f, uint8_t from, uint8_t to)
{
	move_underlay(f, from, to);
	VCC_LAW(flow_invariant(f));
}

const char *vcc_native_underlay_name(uint32_t underlay)
{
	return cc_name(underlay);
}

const char *vcc_native_underlay_about(uint32_t underlay)
{
	return cc_about(underlay);
}

uint32_t vcc_native_underlay_traits(uint32_t underlay)
{
	return cc_traits(underlay);
}

void vcc_native_params_default(struct vcc_params *p)
{
	*p = (struct vcc_params)VCC_PARAMS_DEFAULT;
}

void vcc_native_pool_begin(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			   bool to_guest, struct vcc_segment *s)
{
	pool_begin(pool, f, p, to_guest, s);
}

void vcc_native_pool_end(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			 const struct vcc_segment *s)
{
	pool_end(pool, f, p, s);
}

void vcc_native_pool_idle(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p,
			  uint32_t now_ms)
{
	pool_idle(pool, f, p, now_ms);
}

void vcc_native_pool_leave(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_params *p)
{
	pool_leave(pool, f, pool_flow_bytes(f), p->pool_weight);
}

void vcc_native_hold_pool_settle(struct vcc_pool *pool, const struct vcc_flow *f,
				 const struct vcc_hold *h, const struct vcc_params *p,
				 uint32_t *charged_bytes)
{
	hold_pool_settle(pool, f, h, p, charged_bytes);
}

void vcc_native_hold_pool_begin(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_hold *h,
				const struct vcc_params *p, bool to_guest, struct vcc_segment *s,
				uint32_t *charged_bytes)
{
	hold_pool_begin(pool, f, h, p, to_guest, s, charged_bytes);
}

void vcc_native_hold_pool_end(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_hold *h,
			      const struct vcc_params *p, const struct vcc_segment *s,
			      uint32_t *charged_bytes)
{
	hold_pool_end(pool, f, h, p, s, charged_bytes);
}

void vcc_native_hold_pool_idle(struct vcc_pool *pool, struct vcc_flow *f, const struct vcc_hold *h,
			       const struct vcc_params *p, uint32_t now_ms, uint32_t *charged_bytes)
{
	hold_pool_idle(pool, f, h, p, now_ms, charged_bytes);
}

void vcc_native_hold_pool_arrive(struct vcc_pool *pool, struct vcc_flow *f,
				 const struct vcc_hold *h, const struct vcc_params *p,
				 uint32_t *charged_bytes)
{
	hold_pool_arrive(pool, f, h, p, charged_bytes);
}

void vcc_native_hold_pool_leave(struct vcc_pool *pool, struct vcc_flow *f, uint32_t charged_bytes,
				uint16_t weight)
{
	pool_leave(pool, f, charged_bytes, weight);
}

struct vcc_admission vcc_native_hold_admit(struct vcc_flow *f, struct vcc_hold *h,
					   const struct vcc_params *p, const struct vcc_segment *s)
{
	return hold_admit(f, h, p, s);
}

uint32_t vcc_native_hold_guest_nxt(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return hold_guest_nxt(f, h);
}

uint32_t vcc_native_hold_seq(const struct vcc_flow *f, const struct vcc_hold *h,
			     const struct vcc_segment *s)
{
	return hold_seq(f, h, s);
}

bool vcc_native_hold_acks(const struct vcc_flow *f, const struct vcc_segment *s)
{
	return hold_acks(f, s);
}

uint32_t vcc_native_hold_leaves_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				      const struct vcc_params *p, const struct vcc_segment *s)
{
	return hold_leaves_bytes(f, h, p, s);
}

uint32_t vcc_native_segment_interval_us(const struct vcc_flow *f, const struct vcc_params *p,
					uint32_t now_us)
{
	return segment_interval_us(f, p, now_us);
}

uint32_t vcc_native_hold_leaving_edge(const struct vcc_flow *f, const struct vcc_hold *h,
				      const struct vcc_params *p)
{
	return hold_leaving_edge(f, h, p);
}

void vcc_native_hold_kept(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			  const struct vcc_params *p, const struct vcc_segment *s, uint32_t bytes)
{
	hold_kept(f, h, b, p, s, bytes);
}

uint32_t vcc_native_hold_room_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				    const struct vcc_buffer *b, const struct vcc_params *p,
				    uint32_t end)
{
	return hold_room_bytes(f, h, b, p, end);
}

uint32_t vcc_native_hold_share_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
				     const struct vcc_buffer *b, const struct vcc_params *p)
{
	return hold_share_bytes(f, h, b, p);
}

bool vcc_native_hold_exceeds_share(const struct vcc_flow *f, const struct vcc_hold *h,
				   const struct vcc_buffer *b, const struct vcc_params *p)
{
	return hold_exceeds_share(f, h, b, p);
}

void vcc_native_hold_settle(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			    const struct vcc_params *p, uint32_t now_ms)
{
	hold_settle(f, h, b, p, now_ms);
}

uint32_t vcc_native_hold_idle_ms(const struct vcc_flow *f, const struct vcc_hold *h,
				 uint32_t now_ms)
{
	return hold_idle_ms(f, h, now_ms);
}

void vcc_native_hold_gives_back(struct vcc_hold *h, struct vcc_buffer *b)
{
	hold_gives_back(h, b);
}

void vcc_native_hold_left(struct vcc_hold *h, struct vcc_buffer *b, uint32_t bytes)
{
	hold_left(h, b, bytes);
}

bool vcc_native_hold_opens(struct vcc_flow *f, const struct vcc_hold *h, const struct vcc_buffer *b,
			   const struct vcc_params *p)
{
	return hold_opens(f, h, b, p);
}

bool vcc_native_is_holding(const struct vcc_flow *f, const struct vcc_hold *h,
			   const struct vcc_params *p)
{
	return is_holding(f, h, p);
}

bool vcc_native_hold_covers(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return hold_covers(f, h);
}

bool vcc_native_is_reset(const struct vcc_flow *f, const struct vcc_segment *s, bool from_guest)
{
	return (s->flags & TCP_RST) && (from_guest ? is_guests_rst(f, s) : is_peers_rst(f, s));
}

bool vcc_native_repair_judge(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			     const struct vcc_params *p, uint32_t now_us)
{
	return repair_judge(f, h, r, p, now_us);
}

void vcc_native_repair_charge(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			      uint32_t bytes)
{
	repair_charge(f, h, b, bytes);
}

void vcc_native_repair_takes(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			     uint32_t data_bytes, uint32_t bytes)
{
	repair_takes(f, h, b, data_bytes, bytes);
}

void vcc_native_repair_returns(struct vcc_hold *h, struct vcc_buffer *b, uint32_t bytes)
{
	repair_returns(h, b, bytes);
}

void vcc_native_repair_sent(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			    const struct vcc_retained *t)
{
	repair_sent(f, h, r, t);
}

void vcc_native_repair_passes(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			      uint32_t end, uint32_t now_us)
{
	repair_passes(f, h, r, end, now_us);
}

void vcc_native_repair_sacked(struct vcc_repair *r, struct vcc_retained *t, uint32_t now_us)
{
	repair_sacked(r, t, now_us);
}

void vcc_native_repair_acked(struct vcc_repair *r, const struct vcc_retained *t, uint32_t now_us)
{
	repair_acked(r, t, now_us);
}

void vcc_native_repair_lost(struct vcc_repair *r, struct vcc_retained *t)
{
	repair_lost(r, t);
}

void vcc_native_repair_on_ack(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			      const struct vcc_segment *s, uint32_t una_before,
			      uint32_t state_before)
{
	repair_on_ack(f, h, r, s, una_before, state_before);
}

uint32_t vcc_native_repair_lost_in_us(const struct vcc_flow *f, const struct vcc_repair *r,
				      const struct vcc_retained *t, uint32_t now_us)
{
	return repair_lost_in_us(f, r, t, now_us);
}

uint32_t vcc_native_repair_leaves_bytes(const struct vcc_flow *f, const struct vcc_hold *h,
					const struct vcc_repair *r, const struct vcc_params *p,
					const struct vcc_retained *t, uint32_t unit_bytes)
{
	return repair_leaves_bytes(f, h, r, p, t, unit_bytes);
}

void vcc_native_repair_resent(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_repair *r,
			      struct vcc_retained *t, uint32_t now_us, uint32_t before)
{
	repair_resent(f, h, r, t, now_us, before);
}

struct vcc_repair_due vcc_native_repair_due(const struct vcc_flow *f, const struct vcc_hold *h,
					    const struct vcc_repair *r, const struct vcc_params *p,
					    uint32_t now_us, bool waits)
{
	return repair_due(f, h, r, p, now_us, waits);
}

void vcc_native_repair_probed(const struct vcc_flow *f, struct vcc_repair *r)
{
	repair_probed(f, r);
}

void vcc_native_repair_timeout(struct vcc_flow *f, struct vcc_repair *r, uint32_t now_us)
{
	repair_timeout(f, r, now_us);
}

void vcc_native_repair_forget_sack(struct vcc_repair *r, struct vcc_retained *t)
{
	repair_forget_sack(r, t);
}

void vcc_native_repair_persisted(struct vcc_repair *r, uint32_t now_us)
{
	repair_persisted(r, now_us);
}

void vcc_native_repair_waits(const struct vcc_flow *f, const struct vcc_hold *h,
			     struct vcc_repair *r, uint32_t now_us)
{
	repair_waits(f, h, r, now_us);
}

bool vcc_native_pmtu_shrinks(struct vcc_flow *f, const struct vcc_hold *h, struct vcc_repair *r,
			     struct vcc_pmtu *m, const struct vcc_params *p,
			     const struct vcc_too_big *s)
{
	return pmtu_shrinks(f, h, r, m, p, s);
}

uint32_t vcc_native_pmtu_limit_bytes(const struct vcc_pmtu *m, uint64_t now_us,
				     uint32_t headers_bytes)
{
	return pmtu_limit_bytes(m, now_us, headers_bytes);
}

void vcc_native_pmtu_lost(struct vcc_repair *r, struct vcc_retained *t, uint32_t payload_bytes,
			  uint32_t limit_bytes)
{
	pmtu_lost(r, t, payload_bytes, limit_bytes);
}

enum vcc_thin vcc_native_thin_ack(const struct vcc_flow *f, const struct vcc_hold *h,
				  const struct vcc_params *p, const struct vcc_segment *waiting,
				  const struct vcc_shown *last, const struct vcc_segment *s,
				  bool crowded)
{
	return thin_ack(f, h, p, waiting, last, s, crowded);
}

bool vcc_native_is_ring_crowded(uint32_t free_segs, uint32_t added_segs)
{
	return is_ring_crowded(free_segs, added_segs);
}

bool vcc_native_split_promises(struct vcc_flow *f, struct vcc_hold *h, const struct vcc_buffer *b,
			       const struct vcc_params *p, const struct vcc_segment *s,
			       uint32_t end)
{
	return split_promises(f, h, b, p, s, end);
}

bool vcc_native_split_owes(const struct vcc_flow *f, const struct vcc_hold *h)
{
	return split_owes(f, h);
}

uint32_t vcc_native_split_ack(const struct vcc_hold *h, uint32_t ack)
{
	return split_ack(h, ack);
}

void vcc_native_snoop_peer_syn(struct vcc_snoop *sn, const struct vcc_segment *s, uint32_t tsval,
			       bool stripped)
{
	snoop_peer_syn(sn, s, tsval, stripped);
}

bool vcc_native_snoop_guest_acked(const struct vcc_flow *f, struct vcc_snoop *sn,
				  const struct vcc_segment *s)
{
	return snoop_guest_acked(f, sn, s);
}

void vcc_native_snoop_sacked(struct vcc_snoop *sn, uint32_t from, uint32_t end)
{
	snoop_sacked(sn, from, end);
}

bool vcc_native_snoop_absorbs(const struct vcc_flow *f, const struct vcc_snoop *sn,
			      const struct vcc_params *p, const struct vcc_room *room,
			      const struct vcc_segment *s)
{
	return snoop_absorbs(f, sn, p, room, s);
}

uint8_t vcc_native_snoop_leave_begin(struct vcc_flow *f, const struct vcc_snoop *sn,
				     const struct vcc_segment *s)
{
	return snoop_leave_begin(f, sn, s);
}

bool vcc_native_waits_for_room(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	return waits_for_room(f, sn);
}

void vcc_native_snoop_leave_end(struct vcc_flow *f, uint8_t asked)
{
	snoop_leave_end(f, asked);
}

void vcc_native_snoop_absorbed(struct vcc_flow *f, const struct vcc_segment *s)
{
	snoop_absorbed(f, s);
}

struct vcc_snoop_ack vcc_native_snoop_ack_to_send(const struct vcc_flow *f,
						  const struct vcc_snoop *sn,
						  const struct vcc_params *p,
						  const struct vcc_room *room,
						  const struct vcc_segment *s)
{
	return snoop_ack_to_send(f, sn, p, room, s);
}

void vcc_native_snoop_ack_sent(const struct vcc_flow *f, struct vcc_snoop *sn,
			       const struct vcc_snoop_ack *answer)
{
	snoop_ack_sent(f, sn, answer);
}

struct vcc_placed vcc_native_snoop_placed(const struct vcc_flow *f, struct vcc_snoop *sn,
					  const struct vcc_params *p, const struct vcc_segment *s,
					  uint32_t sent, bool stamped, uint32_t tsval)
{
	return snoop_placed(f, sn, p, s, sent, stamped, tsval);
}

bool vcc_native_snoop_covered(const struct vcc_flow *f, struct vcc_snoop *sn,
			      const struct vcc_params *p, uint32_t nxt)
{
	return snoop_covered(f, sn, p, nxt);
}

bool vcc_native_buffers(const struct vcc_flow *f, const struct vcc_snoop *sn,
			const struct vcc_params *p)
{
	return buffers(f, sn, p);
}

/* The way of a segment; and if the shell stores it, as it can, what is due for that. */
uint8_t vcc_native_receive(const struct vcc_flow *f, struct vcc_snoop *sn,
			   const struct vcc_params *p, const struct vcc_room *room,
			   const struct vcc_segment *s, uint32_t sent, bool stamped, uint32_t tsval,
			   bool can_store, struct vcc_placed *placed)
{
	uint8_t way = receive_way(f, sn, p, room, s, sent, stamped, tsval);

	if (way == WAY_STORE && can_store)
		*placed = snoop_stored(f, sn, p, s, sent, stamped, tsval);
	return way;
}

uint32_t vcc_native_receive_gives_bytes(const struct vcc_snoop *sn, uint32_t end,
					uint32_t seg_bytes)
{
	return receive_gives_bytes(sn, end, seg_bytes);
}

void vcc_native_receive_gave(struct vcc_snoop *sn, uint32_t end)
{
	receive_gave(sn, end);
}

bool vcc_native_receive_probes(const struct vcc_snoop *sn)
{
	return receive_probes(sn);
}

bool vcc_native_receive_updates(const struct vcc_flow *f, const struct vcc_snoop *sn,
				const struct vcc_params *p, const struct vcc_room *room)
{
	return receive_updates(f, sn, p, room);
}

bool vcc_native_is_shut(const struct vcc_flow *f, const struct vcc_snoop *sn,
			const struct vcc_params *p)
{
	return is_shut(f, sn, p);
}

bool vcc_native_is_promise_due(const struct vcc_snoop *sn)
{
	return is_promise_due(sn);
}

/* A segment to the guest, and whether it is a RST that the guest believes. */
bool vcc_native_snoop_to_guest(struct vcc_flow *f, const struct vcc_snoop *sn, struct vcc_hold *h,
			       const struct vcc_buffer *b, const struct vcc_params *p,
			       const struct vcc_segment *s, struct vcc_action *a, bool *reset)
{
	bool live = snoop_outlives_syn(f, sn, s);
	uint32_t rcv_wup;
	bool hears;

	if (live)
		f->stage = STAGE_ESTABLISHED;
	rcv_wup = snoop_judge_begin(f, sn);
	hears = vcc_hold_to_guest(f, h, b, p, s, a);
	if (live && f->stage == STAGE_ESTABLISHED)
		f->stage = STAGE_CLOSED;
	VCC_LAW(a->forget || flow_invariant(f));
	*reset = vcc_native_is_reset(f, s, false);
	snoop_judge_end(f, sn, rcv_wup);
	return hears;
}

bool vcc_native_is_answer_due(const struct vcc_flow *f, const struct vcc_snoop *sn)
{
	return is_answer_due(f, sn);
}

bool vcc_native_snoop_has_room(const struct vcc_flow *f, const struct vcc_snoop *sn,
			       const struct vcc_room *room)
{
	return snoop_has_room(f, sn, room);
}

bool vcc_native_ends_message(const struct vcc_snoop *sn, const struct vcc_segment *s)
{
	return ends_message(sn, s);
}

void vcc_native_snoop_resumes(struct vcc_snoop *sn)
{
	snoop_resumes(sn);
}

void vcc_native_snoop_has_sent_all(struct vcc_snoop *sn)
{
	snoop_has_sent_all(sn);
}

void vcc_native_snoop_peer_silent(struct vcc_snoop *sn)
{
	snoop_peer_silent(sn);
}

struct vcc_needs vcc_native_snoop_needs(const struct vcc_flow *f, const struct vcc_snoop *sn,
					const struct vcc_params *p, bool waits, bool *may_promise)
{
	*may_promise = snoops(f, sn, p);
	return snoop_needs(f, sn, p, waits);
}

void vcc_native_accept_begin(struct vcc_snoop *sn)
{
	accept_begin(sn);
}

bool vcc_native_accept_joins(struct vcc_snoop *sn, const struct vcc_segment *s)
{
	return accept_joins(sn, s);
}
