/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * A pool's accounts add up (pool.h): around a segment, and at a deadline, each changes by what the
 * flow's part in it does, whatever other CPUs do to the pool meanwhile and the engine to the flow.
 */
#include "pool_accounts.h"

int main(void)
{
	struct vcc_flow f = nondet_flow();
	const struct vcc_params p = nondet_params();
	struct vcc_segment s = nondet_segment();
	struct vcc_pool pool = nondet_pool();
	const struct others before = others(&pool, &f, &p, pool_flow_bytes(&f));

	if (nondet_bool()) {
		pool_idle(&pool, &f, &p, (uint32_t)nondet_u64());
		claim_accounts(&pool, &f, &p, pool_flow_bytes(&f), &before);
		return 0;
	}
	pool_begin(&pool, &f, &p, nondet_bool(), &s);
	/* Anything that the engine makes of the flow: `shell` is not the engine's. */
	uint8_t shell = f.shell;

	f = nondet_flow();
	f.shell = shell;
	pool_end(&pool, &f, &p, &s);
	claim_accounts(&pool, &f, &p, pool_flow_bytes(&f), &before);
	CLAIM(pool_has(&f, &p) || !(f.shell & SHELL_POOL),
	      "who is in no pool is in none of its sums");
}
