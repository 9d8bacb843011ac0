// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A detour of a guest's TCP through a port in user space, without a change to the guest's device,
 * its bridge or its routes. The port has two taps. What arrives at the device's hooks is redirected
 * to one of them; what the port writes into a tap goes on behind the hook where it left:
 *
 *	from the guest: device ingress -> tap of the guest -> port -> tap of the fabric -> ingress
 *	to the guest:   device egress -> tap of the fabric -> port -> tap of the guest -> egress
 *
 * Other programs at the device's hooks come after these, so each sees a frame once. The kernel
 * detaches all of them when the port's process ends, and the guest's traffic passes directly.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "protocols.h"
#include "verdicts.h"

#define IP_AT	      14 /* a tag of the device is not in the frame's bytes */
#define PROTOCOL_ICMP 1
#define NEXT_ICMP     58

#define ICMP_UNREACHABLE 3 /* RFC 792, RFC 1191 */
#define ICMP_TOO_BIG	 2 /* RFC 4443, 3.2 */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Overridden before loading: indices of devices, and the mark of frames on the detour. */
struct detour {
	uint32_t device;
	uint32_t guest_tap;
	uint32_t fabric_tap;
	uint32_t mark;
};

const volatile struct detour detour SEC(".rodata.detour") = {};

static __always_inline bool has_byte(struct __sk_buff *skb, uint32_t at, uint8_t wanted)
{
	uint8_t byte;

	return !bpf_skb_load_bytes(skb, at, &byte, sizeof(byte)) && byte == wanted;
}

static __always_inline bool is_unreachable(struct __sk_buff *skb)
{
	uint8_t first;

	if (bpf_skb_load_bytes(skb, IP_AT, &first, sizeof(first)))
		return false;
	return has_byte(skb, IP_AT + 4 * (first & 15), ICMP_UNREACHABLE);
}

/*
 * Is the frame the port's concern: TCP, or a message of ICMP about the path's MTU? All else stays
 * in the kernel. A frame with a second tag or with extension headers may be either.
 */
static __always_inline bool concerns_port(struct __sk_buff *skb)
{
	uint8_t protocol;

	switch (bpf_ntohs((uint16_t)skb->protocol)) {
	case ETHERTYPE_IPV4:
		if (bpf_skb_load_bytes(skb, IP_AT + IPV4_PROTOCOL_AT, &protocol, sizeof(protocol)))
			return false;
		return protocol == PROTOCOL_TCP ||
		       (protocol == PROTOCOL_ICMP && is_unreachable(skb));
	case ETHERTYPE_IPV6:
		if (bpf_skb_load_bytes(skb, IP_AT + IPV6_NEXT_AT, &protocol, sizeof(protocol)))
			return false;
		return protocol == PROTOCOL_TCP || protocol == PROTOCOL_FRAGMENT ||
		       is_extension(protocol) ||
		       (protocol == NEXT_ICMP && has_byte(skb, IP_AT + IPV6_BYTES, ICMP_TOO_BIG));
	case ETHERTYPE_VLAN:
	case ETHERTYPE_QINQ:
		return true;
	default:
		return false;
	}
}

static __always_inline int leave(struct __sk_buff *skb, uint32_t tap)
{
	if (skb->mark == detour.mark) {
		skb->mark = 0;
		return VERDICT_PASS;
	}
	if (!concerns_port(skb))
		return VERDICT_PASS;
	skb->mark = detour.mark;
	return (int)bpf_redirect(tap, 0);
}

/* At the device. */
SEC("tcx/ingress") int detour_out(struct __sk_buff *skb)
{
	return leave(skb, detour.guest_tap);
}

SEC("tcx/egress") int detour_in(struct __sk_buff *skb)
{
	return leave(skb, detour.fabric_tap);
}

/* At the taps: what the host itself sends there is no guest's, such as IPv6's solicitations. */
SEC("tcx/egress") int detour_only(struct __sk_buff *skb)
{
	return skb->mark == detour.mark ? VERDICT_PASS : VERDICT_DROP;
}

/* What the port has written. */
SEC("tcx/ingress") int return_out(struct __sk_buff *skb)
{
	skb->mark = detour.mark;
	return (int)bpf_redirect(detour.device, BPF_F_INGRESS);
}

SEC("tcx/ingress") int return_in(struct __sk_buff *skb)
{
	skb->mark = detour.mark;
	return (int)bpf_redirect(detour.device, 0);
}
