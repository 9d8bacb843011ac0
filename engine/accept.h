/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `accept`: the shell answers a SYN in the guest's name, as the guest has answered others to that
 * port, so that the peer need not wait for a turn of the guest before it sends. Data is stored
 * (receive_buffer.h) until the guest has answered the SYN itself.
 *
 * The shell chooses the initial sequence number, as a host does (RFC 6528). The guest will choose
 * another one, so the shell adjusts sequence numbers and timestamps between the two. The engine
 * knows the numbers of the fabric only.
 */
#ifndef VCC_ACCEPT_H
#define VCC_ACCEPT_H

#include "receive_buffer.h"

/* The shell's SYN-ACK has been taken for the guest's: the guest itself has no window yet. */
VCC_INLINE void accept_begin(struct vcc_snoop *sn)
{
	sn->guest_edge = sn->guest_ack;
}

/*
 * The guest's own answer to the SYN. False: it is none, or one to another SYN. Its window is
 * unscaled (RFC 7323, 2.2).
 */
VCC_INLINE bool accept_joins(struct vcc_snoop *sn, const struct vcc_segment *s)
{
	const uint16_t flags = TCP_SYN | TCP_ACK;

	if (!sn->begun || (s->flags & (flags | TCP_RST | TCP_FIN)) != flags ||
	    s->ack != sn->irs_nxt || sn->guest_ack != sn->irs_nxt)
		return false;
	sn->guest_edge = s->ack + s->window;
	return true;
}

#endif
