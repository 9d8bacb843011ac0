/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pool's account adds up: what changes in it is what the flow's hold on it changes (pool.h). */
#include "check.h"

struct vcc_pool nondet_pool(void);

int main(void)
{
	struct vcc_flow f = any_flow(), after = any_flow();
	const struct vcc_params p = any_params();
	struct vcc_segment s = any_segment();
	struct vcc_pool pool = nondet_pool();

	/* The share is then any part of the pool, without a division for the solver. */
	__CPROVER_assume(p.pool_weight <= 1 && pool.weight <= 1);
	const uint32_t others_bytes =
	    pool.held_bytes - ((f.shell & SHELL_POOL_MEMBER) ? pool_holds(&f) : 0);

	pool_begin(&pool, &f, &p, nondet_bool(), &s);
	/* Whatever the engine makes of the flow: `shell` is not the engine's. */
	after.shell = f.shell;
	pool_end(&pool, &after, &p, &s);
	CLAIM(pool.held_bytes - others_bytes ==
		  ((after.shell & SHELL_POOL_MEMBER) ? pool_holds(&after) : 0),
	      "held_bytes is the sum of what the members hold");
	CLAIM(pool_has(&after, &p) || !(after.shell & SHELL_POOL),
	      "who is in no pool is in none of its sums");
}
