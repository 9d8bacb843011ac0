/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * A pool's accounts add up (pool.h): around a segment, and at a deadline, each changes by what the
 * flow's part in it does, whatever other CPUs do to the pool meanwhile and the engine to the flow.
 */
#include "check.h"

struct vcc_pool nondet_pool(void);

/* What the other flows have in the accounts. */
struct others {
	uint32_t held_bytes;
	uint32_t idle_bytes;
	uint32_t weight;
};

static struct others others(const struct vcc_pool *pool, const struct vcc_flow *f,
			    const struct vcc_params *p)
{
	uint32_t holds_bytes = pool_holds(f);

	return (struct others){
		.held_bytes = pool->held_bytes - ((f->shell & SHELL_POOL_MEMBER) ? holds_bytes : 0),
		.idle_bytes = pool->idle_bytes - ((f->shell & SHELL_POOL_IDLE) ? holds_bytes : 0),
		.weight = pool->weight - ((f->shell & SHELL_POOL_ACTIVE) ? p->pool_weight : 0),
	};
}

static void claim_accounts(const struct vcc_pool *pool, const struct vcc_flow *f,
			   const struct vcc_params *p, const struct others *before)
{
	const struct others after = others(pool, f, p);

	CLAIM(after.held_bytes == before->held_bytes,
	      "held_bytes is the sum of what the members hold");
	CLAIM(after.idle_bytes == before->idle_bytes, "idle_bytes is that of idle flows");
	CLAIM(after.weight == before->weight, "weight is that of active flows");
}

int main(void)
{
	struct vcc_flow f = nondet_flow();
	const struct vcc_params p = nondet_params();
	struct vcc_segment s = nondet_segment();
	struct vcc_pool pool = nondet_pool();
	const struct others before = others(&pool, &f, &p);

	if (nondet_bool()) {
		pool_idle(&pool, &f, &p, (uint32_t)nondet_u64());
		claim_accounts(&pool, &f, &p, &before);
		return 0;
	}
	pool_begin(&pool, &f, &p, nondet_bool(), &s);
	/* Anything that the engine makes of the flow: `shell` is not the engine's. */
	uint8_t shell = f.shell;

	f = nondet_flow();
	f.shell = shell;
	pool_end(&pool, &f, &p, &s);
	claim_accounts(&pool, &f, &p, &before);
	CLAIM(pool_has(&f, &p) || !(f.shell & SHELL_POOL),
	      "who is in no pool is in none of its sums");
}
