/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histograms of the delays that a port has measured (delay.h). */
#ifndef VCC_HISTOGRAM_H
#define VCC_HISTOGRAM_H

#include "base.h"
#include "vcc.h"

/* Powers of two: up to 16 us, up to 32 us, ... up to 1.05 s, and longer. */
#define HISTOGRAM_BUCKETS     18u
#define HISTOGRAM_LEAST_SHIFT 4

/* Without padding, as struct vcc_params. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

struct vcc_histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t sum_us;
};

/* The two parts of the round trips of all connections at a port. */
struct vcc_delays {
	struct vcc_histogram fabric;
	struct vcc_histogram guest;
};

#pragma GCC diagnostic pop

/* The bucket of a delay; an upper bound belongs to its bucket, as in Prometheus. */
VCC_INLINE uint32_t histogram_bucket(uint32_t delay_us)
{
	uint32_t bucket = 0;

	while (bucket < HISTOGRAM_BUCKETS - 1 && delay_us > 1u << (HISTOGRAM_LEAST_SHIFT + bucket))
		bucket++;
	return bucket;
}

VCC_INLINE void histogram_count(struct vcc_histogram *h, uint32_t delay_us)
{
	if (!delay_us)
		return;
	h->counts[histogram_bucket(delay_us)]++;
	h->sum_us += delay_us;
}

/* Did the engine measure a delay by this segment? */
VCC_INLINE bool has_delays(const struct vcc_action *a)
{
	return a->fabric_us || a->guest_us;
}

VCC_INLINE void delays_count(struct vcc_delays *d, const struct vcc_action *a)
{
	histogram_count(&d->fabric, a->fabric_us);
	histogram_count(&d->guest, a->guest_us);
}

#endif
