/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that a port does not know: their SYN did not pass it, and it has neither a flow nor a
 * minisock of them. Their window is unknown, so a guest that made its own connection unknown would
 * escape policing. Where a rule polices, their data is dropped.
 *
 * A port that has just been attached knows none of its guest's connections. They pass for a grace,
 * which begins with the port, or with the rule if that came later.
 */
#ifndef VCC_UNKNOWN_CONNECTION_H
#define VCC_UNKNOWN_CONNECTION_H

#include "treatment.h"

/* Does data of unknown connections under this treatment not pass, once the grace is over? */
VCC_INLINE bool rejects_unknown(const struct vcc_params *p)
{
	return p->police && p->mode == MODE_ENFORCE && p->on_unknown == ON_UNKNOWN_DROP;
}

/* The rest of the grace, in seconds. `attached_s` and `now_s` are of the clock of p->policed_s. */
VCC_INLINE uint32_t unknown_grace_left_s(const struct vcc_params *p, uint32_t attached_s,
					 uint32_t now_s)
{
	uint64_t end_s = (uint64_t)vcc_max(attached_s, p->policed_s) + p->unknown_grace_s;

	return end_s > now_s ? (uint32_t)vcc_min(end_s - now_s, (uint64_t)UINT32_MAX) : 0;
}

/*
 * Is a segment from the guest, of an unknown connection, dropped? One without data passes: it takes
 * nothing of the fabric, and an end that has lost the connection answers it with a RST.
 */
VCC_INLINE bool drops_unknown(const struct vcc_params *p, const struct vcc_segment *s,
			      uint32_t attached_s, uint32_t now_s)
{
	return rejects_unknown(p) && s->payload_bytes &&
	       !unknown_grace_left_s(p, attached_s, now_s);
}

#endif
