/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/*
 * A pool's accounts add up at a port that holds segments (hold_pool.h): each call changes them by
 * what it changes of the flow's charge, whatever the engine, the shell and policies do to the flow
 * between two calls. What the guest was shown is not charged while the port holds.
 */
#include "hold.h"
#include "hold_pool.h"
#include "pool_accounts.h"

/* Anything that the engine, the shell or a policy makes of the flow: `shell` is not theirs. */
static void change(struct vcc_flow *f, struct vcc_hold *h)
{
	uint8_t shell = f->shell;

	*f = nondet_flow();
	f->shell = shell;
	*h = nondet_hold();
}

int main(void)
{
	struct vcc_flow f = nondet_flow();
	struct vcc_hold h = nondet_hold();
	const struct vcc_params p = nondet_params();
	struct vcc_segment s = nondet_segment();
	struct vcc_pool pool = nondet_pool();
	uint32_t charged_bytes = (uint32_t)nondet_u64();
	const struct others before = others(&pool, &f, &p, charged_bytes);

	change(&f, &h);
	if (nondet_bool()) {
		hold_pool_idle(&pool, &f, &h, &p, (uint32_t)nondet_u64(), &charged_bytes);
		claim_accounts(&pool, &f, &p, charged_bytes, &before);
		return 0;
	}
	hold_pool_begin(&pool, &f, &h, &p, nondet_bool(), &s, &charged_bytes);
	claim_accounts(&pool, &f, &p, charged_bytes, &before);
	change(&f, &h);
	hold_pool_end(&pool, &f, &h, &p, &s, &charged_bytes);
	claim_accounts(&pool, &f, &p, charged_bytes, &before);
	CLAIM(pool_has(&f, &p) || !(f.shell & SHELL_POOL),
	      "who is in no pool is in none of its sums");
	CLAIM(!(f.shell & SHELL_POOL) || charged_bytes == hold_pool_bytes(&f, &h, &p),
	      "a member is charged what it holds");
	struct vcc_flow shown = f;

	shown.right_edge = (uint32_t)nondet_u64();
	CLAIM(!is_holding(&f, &h, &p) || !is_holding(&shown, &h, &p) ||
		  hold_pool_bytes(&shown, &h, &p) == hold_pool_bytes(&f, &h, &p),
	      "what the guest was shown is not charged while the port holds");
}
