/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers and offsets of Ethernet and IP, for code that is compiled without the kernel's headers,
 * too. */
#ifndef VCC_PROTOCOLS_H
#define VCC_PROTOCOLS_H

#include "base.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100 /* 802.1Q */
#define ETHERTYPE_QINQ 0x88a8 /* 802.1ad */

#define ETHERTYPE_AT	 12 /* from the frame's start */
#define TAG_ETHERTYPE_AT 2  /* from the start of a VLAN tag's value */
#define IPV4_PROTOCOL_AT 9
#define IPV6_NEXT_AT	 6
#define IPV6_BYTES	 40

#define IPV6_FRAGMENT_OFFSET 0xfff8 /* RFC 8200, 4.5 */

/* Of IPv4's protocol field and of IPv6's next header. */
enum ip_protocol {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_TCP = 6,
	PROTOCOL_ROUTING = 43,
	PROTOCOL_FRAGMENT = 44,
	PROTOCOL_DESTINATION = 60,
};

/* Extension headers of one form, in front of what they extend (RFC 8200, 4.3, 4.4 and 4.6). */
VCC_INLINE bool is_extension(int next)
{
	return next == PROTOCOL_HOP_BY_HOP || next == PROTOCOL_ROUTING ||
	       next == PROTOCOL_DESTINATION;
}

#endif
