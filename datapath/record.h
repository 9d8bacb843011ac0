/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What record.bpf.c passes to user space, where vcc-port's recorder.rs has the same structure. */
#ifndef VCC_RECORD_H
#define VCC_RECORD_H

#include <stdint.h>

/* The side of a port's programs on which a packet was seen. */
enum record_side {
	RECORD_GUEST_SIDE,
	RECORD_FABRIC_SIDE,
	RECORD_SIDES,
};

/* Wireshark takes no longer packet (WTAP_MAX_PACKET_SIZE_STANDARD). */
#define RECORD_KEPT_MAX_BYTES 262144

/* Its bytes follow; behind `kept_bytes` of them, the record has no meaning. */
struct recorded_packet {
	uint64_t time_ns;      /* CLOCK_MONOTONIC */
	uint32_t device;       /* the place of its port among those that are recorded */
	uint32_t packet_bytes; /* without a VLAN tag that the kernel keeps beside the packet */
	uint32_t kept_bytes;   /* at most RECORD_KEPT_MAX_BYTES */
	uint16_t vlan_tpid;    /* the kind of that tag, in host byte order; 0: there is none */
	uint16_t vlan_tci;
	uint8_t side; /* enum record_side */
	uint8_t from_guest;
	uint8_t unused[6];
};

_Static_assert(sizeof(struct recorded_packet) == 32, "no padding");

#endif
