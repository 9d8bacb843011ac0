/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slots of underlays that are loaded at run time (engine/cc/loaded.h). Before user space loads
 * the programs, it links them with the objects of those underlays: a function of an object takes
 * the place of the slot's weak one, which is NewReno.
 */
#ifndef VCC_UNDERLAYS_H
#define VCC_UNDERLAYS_H

#include "maps.h"
#include "cc/cc.h"

/* Overridden before loading; without an underlay, a slot has the traits of the one before. */
const volatile struct vcc_slots slots SEC(".rodata.slots") = {};

#define SLOT(number)                                                                               \
	__weak int vcc_slot_##number(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,        \
				     const struct vcc_params *p, uint64_t call)                    \
	{                                                                                          \
		if (!cc)                                                                           \
			return -1;                                                                 \
		CC_CALL(reno, 0, cc, ack, p, call);                                                \
		return 0;                                                                          \
	}

SLOT(0)
SLOT(1)
SLOT(2)
SLOT(3)

VCC_LOADED int loaded_run(uint32_t slot, struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,
			  const struct vcc_params *p, uint64_t call)
{
	switch (slot) {
	case 0:
		return vcc_slot_0(cc, ack, p, call);
	case 1:
		return vcc_slot_1(cc, ack, p, call);
	case 2:
		return vcc_slot_2(cc, ack, p, call);
	default:
		return vcc_slot_3(cc, ack, p, call);
	}
}

VCC_LOADED uint32_t loaded_traits(uint32_t slot)
{
	/* Or the compiler would leave out the bound that the verifier wants to see. */
	return slots.traits[vcc_opaque(slot) % UNDERLAY_SLOTS];
}

#endif
