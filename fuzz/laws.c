/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The laws that are proved of one call, asserted of a call that was made. */
void vcc_law_broken(const char *law, const char *file, int line);
#define CLAIM(cond, what)                                                                          \
	do {                                                                                       \
		if (!(cond))                                                                       \
			vcc_law_broken(what, __FILE__, __LINE__);                                  \
	} while (0)
#include "../proofs/laws.h"

void vcc_fuzz_from_guest(const struct vcc_flow *before, const struct vcc_flow *after,
			 const struct vcc_params *p, const struct vcc_segment *s,
			 const struct vcc_action *a)
{
	claim_from_guest(before, after, p, s, a);
}

void vcc_fuzz_to_guest(const struct vcc_flow *before, const struct vcc_flow *after,
		       const struct vcc_params *p, const struct vcc_segment *s,
		       const struct vcc_action *a)
{
	claim_to_guest(before, after, p, s, a);
	if (shows_again(before, p, s))
		claim_right_edge(before, after, s, a);
}

void vcc_fuzz_judged(const struct vcc_flow *before, const struct vcc_flow *after)
{
	claim_judged(before, after);
}
