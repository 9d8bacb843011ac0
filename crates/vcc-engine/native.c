/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine compiled for user space: the same source that the datapath inlines. */
#include "abi.h"
#include "hold.h"

struct vcc_action vcc_native_from_guest(struct vcc_flow *f, const struct vcc_params *p,
					const struct vcc_segment *s)
{
	return vcc_from_guest(f, p, s);
}

struct vcc_action vcc_native_to_guest(struct vcc_flow *f, const struct vcc_params *p,
				      const struct vcc_segment *s)
{
	return vcc_to_guest(f, p, s);
}

struct vcc_action vcc_native_deadline(struct vcc_flow *f, const struct vcc_params *p,
				      uint64_t now_us, bool crowded)
{
	return vcc_deadline(f, p, now_us, crowded);
}

void vcc_native_judge_anew(struct vcc_flow *f, const struct vcc_params *p)
{
	vcc_judge_anew(f, p);
}

bool vcc_native_is_bound(const struct vcc_flow *f)
{
	return is_bound(f);
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

struct vcc_action vcc_native_hold_to_guest(struct vcc_flow *f, struct vcc_hold *h,
					   const struct vcc_buffer *b, const struct vcc_params *p,
					   const struct vcc_segment *s)
{
	return vcc_hold_to_guest(f, h, b, p, s);
}

struct vcc_admission vcc_native_hold_admit(struct vcc_flow *f, const struct vcc_hold *h,
					   const struct vcc_params *p, const struct vcc_segment *s)
{
	return hold_admit(f, h, p, s);
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

void vcc_native_hold_kept(const struct vcc_flow *f, struct vcc_hold *h, struct vcc_buffer *b,
			  uint32_t end, uint32_t bytes)
{
	hold_kept(f, h, b, end, bytes);
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
