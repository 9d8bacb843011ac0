/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that comes to a shell with buffers (hold.h, snoop.h) with its guest, from another
 * such shell. That one has described it when the guest had stopped, and has done nothing since, so
 * unlike in arrival.h no number is old: what is held, retained and promised continues where it was
 * (laws 15 and 16).
 */
#ifndef VCC_HANDOVER_H
#define VCC_HANDOVER_H

#include "arrival.h"
#include "rcv_rtt.h"
#include "repair.h"

/*
 * Takes over a flow as vcc_arrive() does. One that both ends have closed may have last data to
 * deliver.
 */
VCC_INLINE int vcc_take_over(struct vcc_flow *f, const struct vcc_params *p, uint64_t now_us)
{
	int err = vcc_arrive(f, p, now_us);

	if (err)
		return err;
	f->lags = 0;
	note_fin(f, 0, 0);
	return 0;
}

/*
 * The guest resumes after a time in which neither it nor the shell has run, which shows nothing
 * about path or guest: what was being timed is timed no more, and timers restart.
 */
VCC_INLINE void vcc_resume(struct vcc_flow *f, struct vcc_repair *r, uint64_t now_us)
{
	rtt_cancel(f);
	f->asked = ASKED_NOTHING;
	f->rcv_rtt = RCV_RTT_NONE;
	f->progress_us = (uint32_t)now_us;
	repair_starts(r, (uint32_t)now_us);
	r->probe_us = (uint32_t)now_us;
}

#endif
