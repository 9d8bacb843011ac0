// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* flood_channel.bpf.c for Linux 7.1 and newer, as flood_tx_start.bpf.c. */
#define HAS_CHANNEL
#define HAS_TX_START
#include "flood.bpf.c"
