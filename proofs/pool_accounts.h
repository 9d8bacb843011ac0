/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pool's accounts (pool.h) beside what one of its flows was charged. */
#ifndef VCC_PROOF_POOL_ACCOUNTS_H
#define VCC_PROOF_POOL_ACCOUNTS_H

#include "check.h"

struct vcc_pool nondet_pool(void);

/* What the other flows have in the accounts. */
struct others {
	uint32_t held_bytes;
	uint32_t idle_bytes;
	uint32_t weight;
};

static struct others others(const struct vcc_pool *pool, const struct vcc_flow *f,
			    const struct vcc_params *p, uint32_t charged_bytes)
{
	return (struct others){
		.held_bytes =
		    pool->held_bytes - ((f->shell & SHELL_POOL_MEMBER) ? charged_bytes : 0),
		.idle_bytes = pool->idle_bytes - ((f->shell & SHELL_POOL_IDLE) ? charged_bytes : 0),
		.weight = pool->weight - ((f->shell & SHELL_POOL_ACTIVE) ? p->pool_weight : 0),
	};
}

static void claim_accounts(const struct vcc_pool *pool, const struct vcc_flow *f,
			   const struct vcc_params *p, uint32_t charged_bytes,
			   const struct others *before)
{
	const struct others after = others(pool, f, p, charged_bytes);

	CLAIM(after.held_bytes == before->held_bytes,
	      "held_bytes is the sum of what the members were charged");
	CLAIM(after.idle_bytes == before->idle_bytes, "idle_bytes is that of idle flows");
	CLAIM(after.weight == before->weight, "weight is that of active flows");
}

#endif
