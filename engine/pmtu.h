/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path MTU discovery (RFC 1191; RFC 8201) in a shell that holds segments (hold.h). The guest gets
 * the ICMP message as well, but what the shell holds or retains would keep leaving in segments that
 * are too large, and under `split` the guest has nothing to send again.
 *
 * Anyone can send such a message. It is believed if it quotes a segment in flight and its MTU is
 * smaller than what has been sent (RFC 5927, 4.1 and 7.2).
 */
#ifndef VCC_PMTU_H
#define VCC_PMTU_H

#include "repair.h"

/* IPv4's message (type 3, code 4) or IPv6's (type 2) about a packet of the guest. */
struct vcc_too_big {
	uint64_t now_us;
	uint32_t seq;	       /* of the segment in the packet */
	uint32_t mtu_bytes;    /* of the next hop; 0: a router older than RFC 1191 */
	uint32_t packet_bytes; /* by the packet's IP header; 0: a super-segment above 64 KiB */
	uint32_t ipv6;	       /* bool */
};

/* What a flow's path carries. */
struct vcc_pmtu {
	uint32_t mtu_bytes; /* 0: none was reported */
	uint32_t learned_ms;
};

/* The size that any host accepts (RFC 791, 3.1) and any link of IPv6 carries (RFC 8200, 5). */
#define PMTU_LEAST_BYTES      576u
#define PMTU_LEAST_IPV6_BYTES 1280u
/* Headers without options. */
#define IPV4_TCP_BYTES 40u
#define IPV6_TCP_BYTES 60u
/* Then a larger one is tried (RFC 1191, 6.3; RFC 8201, 4). */
#define PMTU_AGE_MS (10u * 60 * 1000)

/* The payload of a full segment in a packet of this size. */
VCC_INLINE uint32_t pmtu_mss_bytes(const struct vcc_flow *f, uint32_t mtu_bytes, bool ipv6)
{
	return mtu_bytes - (ipv6 ? IPV6_TCP_BYTES : IPV4_TCP_BYTES) - timestamps_bytes(f);
}

/*
 * Is the message believed? Then the segments that are too large leave again in smaller ones,
 * without a reduction (RFC 8201, 5.4), and the timers that await their answer restart.
 */
VCC_INLINE bool pmtu_shrinks(struct vcc_flow *f, const struct vcc_hold *h, struct vcc_repair *r,
			     struct vcc_pmtu *m, const struct vcc_params *p,
			     const struct vcc_too_big *s)
{
	uint32_t least_bytes = s->ipv6 ? PMTU_LEAST_IPV6_BYTES : PMTU_LEAST_BYTES;
	uint32_t mtu_bytes = s->mtu_bytes || s->ipv6 ? s->mtu_bytes : least_bytes;

	if (!is_holding(f, h, p) && !h->retains)
		return false;
	if (s->seq - f->snd_una >= flight_bytes(f))
		return false;
	if (mtu_bytes < least_bytes || (s->packet_bytes && mtu_bytes >= s->packet_bytes))
		return false;
	uint32_t mss_bytes = pmtu_mss_bytes(f, mtu_bytes, s->ipv6);

	if (mss_bytes >= f->mss_bytes)
		return false;
	m->mtu_bytes = mtu_bytes;
	m->learned_ms = (uint32_t)(s->now_us / 1000);
	resent_smaller(f, mss_bytes);
	f->progress_us = (uint32_t)s->now_us;
	r->timer_us = (uint32_t)s->now_us;
	r->probe_us = (uint32_t)s->now_us;
	return true;
}

/* The largest payload that may leave behind headers of this size. */
VCC_INLINE uint32_t pmtu_limit_bytes(const struct vcc_pmtu *m, uint64_t now_us,
				     uint32_t headers_bytes)
{
	if (!m->mtu_bytes || (uint32_t)(now_us / 1000) - m->learned_ms >= PMTU_AGE_MS)
		return UINT32_MAX;
	return vcc_max(vcc_sub_floor0(m->mtu_bytes, headers_bytes), 1);
}

/* The path has become smaller: is a segment in flight lost, if the limit is now `limit_bytes`? */
VCC_INLINE void pmtu_lost(struct vcc_repair *r, struct vcc_retained *t, uint32_t payload_bytes,
			  uint32_t limit_bytes)
{
	if (payload_bytes > limit_bytes && !t->sacked && !t->lost)
		repair_lost(r, t);
}

#endif
