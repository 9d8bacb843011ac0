/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The underlays, one line each. The order gives their number in struct vcc_flow, so append.
 * cc.h includes this file several times; hence no include guard.
 */
#include "transparent.h"
#include "reno.h"
#include "reno_ecn.h"
#include "dctcp.h"
#include "dctcp_priority.h"

#include "cubic.h"
#include "vegas.h"
#include "swift.h"
