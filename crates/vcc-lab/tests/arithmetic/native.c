/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The congestion controls' arithmetic, compiled for user space. */
#include "dctcp.h"
#include "flood.h"
#include "highspeed.h"
#include "illinois.h"
#include "vegas.h"

uint32_t native_dctcp_next_alpha(uint32_t alpha, uint32_t delivered_segs, uint32_t ce_segs)
{
	return dctcp_next_alpha(alpha, delivered_segs, ce_segs);
}

uint32_t native_dctcp_reduced_segs(uint32_t cwnd_segs, uint32_t alpha)
{
	return dctcp_reduced_segs(cwnd_segs, alpha);
}

void native_flood_init(struct flood *f, uint32_t initial_segs)
{
	flood_init(f, initial_segs);
}

uint32_t native_flood_on_ack(struct flood *f, const struct flood_ack *ack)
{
	return flood_on_ack(f, ack);
}

uint32_t native_flood_reduce(struct flood *f)
{
	return flood_reduce(f);
}

uint32_t native_flood_undo(struct flood *f)
{
	return flood_undo(f);
}

uint32_t native_flood_set_state(struct flood *f, uint8_t state, uint32_t cwnd_segs)
{
	return flood_set_state(f, state, cwnd_segs);
}

void native_flood_restart(struct flood *f, uint32_t rtos)
{
	flood_restart(f, rtos);
}

uint32_t native_flood_granted_segs(uint32_t grant_bytes, uint32_t mss_bytes)
{
	return flood_granted_segs(grant_bytes, mss_bytes);
}

uint32_t native_flood_window_segs(const struct flood *f)
{
	return flood_window_segs(f);
}

uint32_t native_highspeed_row(uint32_t cwnd_segs)
{
	return highspeed_row(cwnd_segs);
}

uint32_t native_highspeed_row_cwnd_segs(uint32_t row)
{
	return highspeed_table[row].cwnd_segs;
}

uint32_t native_highspeed_a_segs(uint32_t row)
{
	return highspeed_a_segs(row);
}

uint32_t native_highspeed_reduced_segs(uint32_t cwnd_segs, uint32_t row)
{
	return highspeed_reduced_segs(cwnd_segs, row);
}

void native_illinois_init(struct illinois *ca)
{
	illinois_init(ca);
}

void native_illinois_be_reno(struct illinois *ca)
{
	illinois_be_reno(ca);
}

void native_illinois_sample(struct illinois *ca, uint32_t rtt_us)
{
	illinois_sample(ca, rtt_us);
}

void native_illinois_end_round(struct illinois *ca, uint32_t cwnd_segs)
{
	illinois_end_round(ca, cwnd_segs);
}

uint32_t native_illinois_growth_segs(const struct illinois *ca, uint32_t cwnd_segs,
				     uint32_t acked_segs)
{
	return illinois_growth_segs(ca, cwnd_segs, acked_segs);
}

uint32_t native_illinois_reduced_segs(const struct illinois *ca, uint32_t cwnd_segs)
{
	return illinois_reduced_segs(ca, cwnd_segs);
}

void native_vegas_start_round(struct vegas *v)
{
	vegas_start_round(v);
}

void native_vegas_sample(struct vegas *v, uint32_t rtt_us)
{
	vegas_sample(v, rtt_us);
}

bool native_vegas_decide(const struct vegas *v, struct vegas_window *w)
{
	return vegas_decide(v, w);
}
