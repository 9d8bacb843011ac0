/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* A new flow satisfies the invariant. */
#include "check.h"

int main(void)
{
	const struct vcc_flow f = {};

	claim_invariant(&f);
}
