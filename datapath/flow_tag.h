/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow's tag: its key in the kernel's map, which hashes and compares 8 bytes instead of the 40 of
 * struct vcc_key.
 *
 * The tag is the port's index, and 52 bits of a hash of the key: multilinear-HM (Lemire and Kaser,
 * "Strongly universal string hashing is fast", 2014), with the host's random secrets. Of two keys
 * that were chosen without knowing them, and whose ports and VLAN are the same, the tags are equal
 * with a probability of 2^-32 at most, and of 2^-52 if the addresses are random. The two would then
 * be one flow. Ports never share a tag.
 */
#ifndef VCC_FLOW_TAG_H
#define VCC_FLOW_TAG_H

#include "maps.h"

#define TAG_PORT_MASK 0xfffull
_Static_assert(PORTS_MAX - 1 == TAG_PORT_MASK, "a port's index fits the tag");
_Static_assert(sizeof(struct vcc_key) == TAG_SECRETS * sizeof(uint32_t), "a secret for each word");

static __always_inline uint64_t flow_tag(const struct vcc_key *key)
{
	const uint32_t *words = (const void *)key;
	uint64_t hash = 0;

	for (int i = 0; i < TAG_SECRETS; i += 2)
		hash += (words[i] + constants.tag_secrets[i]) *
			(words[i + 1] + constants.tag_secrets[i + 1]);
	return (hash & ~TAG_PORT_MASK) | key->port;
}

/* flow_tag() for callers that have no stack to spare. */
VCC_APART uint64_t flow_tag_apart(const struct vcc_key *key)
{
	return key ? flow_tag(key) : 0;
}

/* What distinguishes flows of one tag whose ports or VLAN differ, and flows of different tags. */
static __always_inline uint64_t tag_check(const struct vcc_key *key, uint64_t tag)
{
	return tag ^ ((const uint64_t *)key)[4];
}

/* Looks a flow up; null: the port does not know it. */
static __always_inline struct vcc_entry *flow_of(uint64_t tag)
{
	return bpf_map_lookup_elem(&flows, &tag);
}

#endif
