/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * NewReno with ECN (RFC 3168, 6.1.2), which vCC calls virtual-ECN. A mark halves the window like a
 * loss, so the hooks are Reno's; the trait CC_ECN turns ECN on between vcc and the peer.
 */
#ifndef VCC_CC_RENO_ECN_H
#define VCC_CC_RENO_ECN_H

#include "reno.h"

#endif
VCC_CC(reno_ecn, "reno-ecn", "NewReno with ECN (RFC 3168), vCC's virtual-ECN", CC_CONTROLS | CC_ECN,
       reno)
