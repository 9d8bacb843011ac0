/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Underlays that are loaded at run time, into one of a few slots. Each is a file like those of
 * list.h, compiled by itself to one function, which runs the hook that its caller names (call.h).
 * What it leaves behind is bounded here, so that the laws hold whatever it does.
 *
 * A shell that has such underlays defines VCC_LOADED as the linkage of its functions loaded_run(),
 * which runs the underlay in a slot, and loaded_traits() (enum vcc_cc_trait).
 *
 * A slot without an underlay is NewReno, which needs none of a flow's own words: a flow whose
 * underlay is unloaded continues with that.
 */
#ifndef VCC_CC_LOADED_H
#define VCC_CC_LOADED_H

#include "call.h"
#include "reno.h"

#ifdef VCC_LOADED
VCC_LOADED int loaded_run(uint32_t slot, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
			  const struct vcc_params *p, uint64_t call);
VCC_LOADED uint32_t loaded_traits(uint32_t slot);
#else
VCC_INLINE int loaded_run(uint32_t slot, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
			  const struct vcc_params *p, uint64_t call)
{
	(void)slot;
	CC_CALL(reno, 0, cc, ack, p, call);
	return 0;
}

VCC_INLINE uint32_t loaded_traits(uint32_t slot)
{
	(void)slot;
	return CC_CONTROLS;
}
#endif

/* Is it the number of a slot? */
VCC_INLINE bool is_loaded(uint32_t underlay)
{
	return underlay - UNDERLAY_LOADED < UNDERLAY_SLOTS;
}

VCC_INLINE uint32_t loaded_slot(uint32_t underlay)
{
	return underlay - UNDERLAY_LOADED;
}

/*
 * Runs a hook of a loaded underlay. `ack` and `p` are null where the hook has none. Inline: of
 * BPF's 512 bytes of stack, what is left belongs to the underlay.
 */
VCC_INLINE void cc_loaded(uint32_t underlay, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
			  const struct vcc_params *p, uint64_t call)
{
	enum vcc_cc_hook hook = call_hook(call);
	bool begins = hook == HOOK_INIT;
	bool reduces = hook == HOOK_CONGESTION || hook == HOOK_TIMEOUT;
	bool was_infinite = cc->ssthresh_segs == SSTHRESH_INFINITE;
	uint32_t slot = loaded_slot(underlay);

	loaded_run(slot, cc, ack, p, call);
	cc_bound(cc, begins || (was_infinite && !reduces), loaded_traits(slot) & CC_ALPHA);
}

#endif
