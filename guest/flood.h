/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The windows of vFlood's guest (Gamage, Kangarlou, Kompella, Xu: Opportunistic Flooding to Improve
 * TCP Transmit Performance in Virtualized Clouds, SoCC 2011, 3.1 and 3.2), shared by BPF, the guest
 * kernel and the tests. Online, the guest floods the driver domain, which does congestion control.
 * Offline, from a loss or mark that reaches the guest until it is repaired, the guest has NewReno's
 * window (RFC 5681, RFC 6582), which grows beside the other all the time.
 */
#ifndef VCC_GUEST_FLOOD_H
#define VCC_GUEST_FLOOD_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
#endif
#include <linux/tcp.h>

/* The window online (vFlood, 3.1). */
#define FLOOD_CWND_SEGS 512u
/* Minimum of ssthresh (RFC 5681, 3.1). */
#define FLOOD_MIN_SSTHRESH_SEGS 2u
#define FLOOD_SSTHRESH_INFINITE 0x7fffffffu
/* Minimum of what the host admits online, or a delayed ACK would end each window. */
#define FLOOD_MIN_GRANT_SEGS 2u

struct flood {
	/* NewReno's variables. */
	uint32_t cwnd_segs;
	uint32_t acked_segs; /* in congestion avoidance, since cwnd grew */
	uint32_t ssthresh_segs;
	uint32_t initial_segs;
	/* RFC 6937: RecoverFS, 0 outside of a reduction, and prr_delivered. */
	uint32_t recover_fs_segs;
	uint32_t prr_delivered_segs;
	/* Before the last reduction. */
	uint32_t undo_cwnd_segs;
	uint32_t undo_ssthresh_segs;
	/* The window that the host admits online. 0: the host does not hold the connection. */
	uint32_t host_segs;
	bool is_online;
};

/* An ACK that delivers data, and the flight after it. */
struct flood_ack {
	uint32_t delivered_segs;
	uint32_t in_flight_segs; /* RFC 6937's pipe */
	uint32_t prr_out_segs;
	uint32_t most_out_segs; /* greatest flight of this window of data */
	bool is_safe;		/* SND.UNA advances and nothing more is lost (RFC 9937's SafeACK) */
};

static inline uint32_t flood_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t flood_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline void flood_init(struct flood *f, uint32_t initial_segs)
{
	f->cwnd_segs = initial_segs;
	f->acked_segs = 0;
	f->ssthresh_segs = FLOOD_SSTHRESH_INFINITE;
	f->initial_segs = initial_segs;
	f->recover_fs_segs = 0;
	f->prr_delivered_segs = 0;
	f->undo_cwnd_segs = initial_segs;
	f->undo_ssthresh_segs = FLOOD_SSTHRESH_INFINITE;
	f->host_segs = FLOOD_CWND_SEGS;
	f->is_online = true;
}

/* The window that the host admits by the room that it has for a connection. */
static inline uint32_t flood_granted_segs(uint32_t grant_bytes, uint32_t mss_bytes)
{
	uint32_t segs = mss_bytes ? grant_bytes / mss_bytes : 0;

	return flood_min(flood_max(segs, FLOOD_MIN_GRANT_SEGS), FLOOD_CWND_SEGS);
}

static inline uint32_t flood_window_segs(const struct flood *f)
{
	return f->is_online && f->host_segs ? f->host_segs : f->cwnd_segs;
}

static inline bool flood_in_slow_start(const struct flood *f)
{
	return f->cwnd_segs < f->ssthresh_segs;
}

/* Is NewReno's window in use (RFC 7661)? In slow start, at least half, as in Linux. */
static inline bool flood_is_limited(const struct flood *f, uint32_t most_out_segs)
{
	if (flood_in_slow_start(f))
		return f->cwnd_segs < 2 * most_out_segs;
	return f->cwnd_segs <= most_out_segs;
}

/* Slow start and congestion avoidance (RFC 5681, 3.1). */
static inline void flood_grow(struct flood *f, uint32_t delivered_segs)
{
	if (flood_in_slow_start(f)) {
		uint32_t step_segs = flood_min(delivered_segs, f->ssthresh_segs - f->cwnd_segs);

		f->cwnd_segs += step_segs;
		delivered_segs -= step_segs;
	}
	f->acked_segs += delivered_segs;
	if (f->cwnd_segs && f->acked_segs >= f->cwnd_segs) {
		uint32_t windows = f->acked_segs / f->cwnd_segs;

		f->acked_segs -= windows * f->cwnd_segs;
		f->cwnd_segs += windows;
	}
	/* No more is ever in flight. */
	f->cwnd_segs = flood_min(f->cwnd_segs, FLOOD_CWND_SEGS);
}

/*
 * Proportional rate reduction (RFC 6937). RecoverFS is NewReno's window, not the flight: most of a
 * flooding guest's flight is in the driver domain, and the first loss would wait for all of it.
 */
static inline uint32_t flood_prr_segs(struct flood *f, const struct flood_ack *ack)
{
	uint32_t sent_segs = ack->prr_out_segs;
	uint32_t send_segs = 0;

	f->prr_delivered_segs += ack->delivered_segs;
	if (ack->in_flight_segs > f->ssthresh_segs) {
		uint64_t share = (uint64_t)f->prr_delivered_segs * f->ssthresh_segs;
		uint32_t due_segs = (share + f->recover_fs_segs - 1) / f->recover_fs_segs;

		if (due_segs > sent_segs)
			send_segs = due_segs - sent_segs;
	} else {
		uint32_t due_segs = ack->delivered_segs;

		if (f->prr_delivered_segs > sent_segs)
			due_segs = flood_max(due_segs, f->prr_delivered_segs - sent_segs);
		if (ack->is_safe)
			due_segs++;
		send_segs = flood_min(due_segs, f->ssthresh_segs - ack->in_flight_segs);
	}
	/* The fast retransmission. */
	if (!sent_segs && !send_segs)
		send_segs = 1;
	return ack->in_flight_segs + send_segs;
}

/* Returns the window after an ACK. */
static inline uint32_t flood_on_ack(struct flood *f, const struct flood_ack *ack)
{
	if (f->recover_fs_segs)
		return flood_prr_segs(f, ack);
	if (flood_is_limited(f, ack->most_out_segs))
		flood_grow(f, ack->delivered_segs);
	return flood_window_segs(f);
}

/* Goes offline for a loss or a mark (RFC 5681, 3.1, equation 4). Returns ssthresh. */
static inline uint32_t flood_reduce(struct flood *f)
{
	f->undo_cwnd_segs = f->cwnd_segs;
	f->undo_ssthresh_segs = f->ssthresh_segs;
	f->recover_fs_segs = flood_max(f->cwnd_segs, 1);
	f->prr_delivered_segs = 0;
	f->acked_segs = 0;
	f->ssthresh_segs = flood_max(f->cwnd_segs / 2, FLOOD_MIN_SSTHRESH_SEGS);
	f->is_online = false;
	return f->ssthresh_segs;
}

/* The loss or mark was none. Returns the window. */
static inline uint32_t flood_undo(struct flood *f)
{
	f->cwnd_segs = flood_max(f->cwnd_segs, f->undo_cwnd_segs);
	f->ssthresh_segs = flood_max(f->ssthresh_segs, f->undo_ssthresh_segs);
	f->recover_fs_segs = 0;
	return flood_window_segs(f);
}

/* TCP enters a state with a window of cwnd_segs. Returns the window there. */
static inline uint32_t flood_set_state(struct flood *f, uint8_t state, uint32_t cwnd_segs)
{
	switch (state) {
	case TCP_CA_Open:
	case TCP_CA_Disorder:
		/* Full acknowledgement: cwnd = ssthresh (RFC 6582, 3.2, step 3). */
		if (f->recover_fs_segs)
			f->cwnd_segs = f->ssthresh_segs;
		f->recover_fs_segs = 0;
		f->is_online = true;
		return flood_window_segs(f);
	case TCP_CA_Loss:
		/* The path's MTU has shrunk: segments go again, but the window stays. */
		if (f->is_online) {
			f->is_online = false;
			return f->cwnd_segs;
		}
		/* A timeout: slow start from the loss window, which TCP has set (RFC 5681, 3.1). */
		f->cwnd_segs = cwnd_segs;
		f->recover_fs_segs = 0;
		return cwnd_segs;
	default:
		return cwnd_segs;
	}
}

/* Sending resumes after idling for that many RTOs (RFC 5681, 4.1). Linux halves cwnd for each. */
static inline void flood_restart(struct flood *f, uint32_t rtos)
{
	uint32_t least_segs = flood_min(f->initial_segs, f->cwnd_segs);
	uint32_t three_quarters_segs = f->cwnd_segs / 2 + f->cwnd_segs / 4;

	if (!rtos)
		return;
	f->ssthresh_segs = flood_max(f->ssthresh_segs, three_quarters_segs);
	f->cwnd_segs = rtos < 32 ? flood_max(f->cwnd_segs >> rtos, least_segs) : least_segs;
}

#endif
