// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* flood.bpf.c for Linux 7.1 and newer, whose cwnd_event is not called for CA_EVENT_TX_START. */
#define HAS_TX_START
#include "flood.bpf.c"
