/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An underlay compiled by itself: its hooks become one function, which takes the place of a slot's
 * (datapath/underlays.h). When it is loaded, the X of its name becomes the slot's number.
 */
#include "cc/call.h"

/* Its hooks. The VCC_CC lines of what it includes are read here, too. */
#define VCC_CC(id, name, about, traits, hooks)
#include VCC_UNDERLAY
#undef VCC_CC

/* src/object.rs reads it. */
struct vcc_underlay {
	char magic[8];
	uint32_t version;
	/* Sizes of what the function is given. */
	uint16_t cc_bytes;
	uint16_t ack_bytes;
	uint16_t params_bytes;
	uint16_t reserved;
	uint32_t traits;
	char name[32];
	char about[104];
};

#define VCC_CC(id, its_name, its_about, its_traits, hooks)                                         \
	__attribute__((section("vcc.underlay"), used)) const struct vcc_underlay vcc_about_X = {   \
		.magic = "vcc-cc",                                                                 \
		.version = CC_HOOKS_VERSION,                                                       \
		.cc_bytes = sizeof(struct vcc_cc_state),                                           \
		.ack_bytes = sizeof(struct vcc_cc_ack),                                            \
		.params_bytes = sizeof(struct vcc_params),                                         \
		.traits = its_traits,                                                              \
		.name = its_name,                                                                  \
		.about = its_about,                                                                \
	};                                                                                         \
                                                                                                   \
	int vcc_slot_X(struct vcc_cc_state *cc, const struct vcc_cc_ack *ack,                      \
		       const struct vcc_params *p, uint64_t call)                                  \
	{                                                                                          \
		if (!cc)                                                                           \
			return -1;                                                                 \
		CC_CALL(hooks, its_traits, cc, ack, p, call);                                      \
		return 0;                                                                          \
	}
#include VCC_UNDERLAY
