/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The underlays: one line each. Their order is their number in struct vcc_flow, so append.
 * Read several times on purpose, see cc.h; hence no guard.
 */
#include "transparent.h"
#include "reno.h"
#include "reno_ecn.h"
#include "dctcp.h"
#include "dctcp_priority.h"

#include "cubic.h"
