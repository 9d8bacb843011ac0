// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* flood.bpf.c with a window of the host's only while the host reports that it holds. */
#define HAS_CHANNEL
#include "flood.bpf.c"
