/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine's interface: a segment in, an action out.
 *
 * The engine is a pure function over one flow's state. It does no I/O, reads no clock and
 * allocates nothing. A shell parses frames, looks up the flow, calls one of three functions and
 * carries out the action:
 *
 *	vcc_from_guest	the guest sent a segment to the fabric
 *	vcc_to_guest	the fabric delivered a segment for the guest
 *	vcc_deadline	a deadline expired
 *
 * A shell whose CPUs share flows judges a segment of a flow that another CPU does not release by
 * contended_flow.h, which changes no state.
 *
 * Multi-byte values are in host byte order. struct vcc_flow has the same layout in the kernel's
 * map, in user space and in a dump.
 *
 * docs/laws.md says what the engine may do to a connection and what it never does. VCC_LAW asserts
 * it, and so do tests over generated traffic.
 */
#ifndef VCC_H
#define VCC_H

#include "base.h"

/* TCP header flags (RFC 9293, 3.1; RFC 3168, 6.1; AE: RFC 9768, 3.1). */
enum vcc_tcp_flag {
	TCP_FIN = 0x001,
	TCP_SYN = 0x002,
	TCP_RST = 0x004,
	TCP_PSH = 0x008,
	TCP_ACK = 0x010,
	TCP_URG = 0x020,
	TCP_ECE = 0x040,
	TCP_CWR = 0x080,
	TCP_AE = 0x100,
	TCP_ECN_BITS = TCP_AE | TCP_CWR | TCP_ECE,
};

/* The ECN field of the IP header (RFC 3168, 5). */
enum vcc_ip_ecn {
	IP_ECN_NOT_ECT = 0,
	IP_ECN_ECT_1 = 1,
	IP_ECN_ECT_0 = 2,
	IP_ECN_CE = 3,
};

/* TCP options that the engine reads. */
enum vcc_option {
	OPT_MSS = 0x01,
	OPT_WSCALE = 0x02,
	OPT_SACK_PERMITTED = 0x04,
	OPT_TIMESTAMPS = 0x08,
	OPT_SACK = 0x10, /* at least one SACK block */
	OPT_HELLO = 0x20,
	OPT_PACK = 0x40,
	OPT_FACK = 0x80,
	OPT_OURS_BAD = 0x100, /* a kind of ours with another length or version */
	OPT_SIGNED = 0x200,   /* TCP MD5 or TCP-AO (RFC 2385, RFC 5925); see signed_connection.h */
	OPT_MPTCP = 0x400,    /* MPTCP on a SYN (RFC 8684); see mptcp.h */
	OPT_ACCECN = 0x800,   /* AccECN's option (RFC 9768, 3.2.3) in another form than a PACK's */
	OPT_ACCECN_CE = 0x1000, /* and it has the count of CE bytes */
};

/* Options that vcc sends and reads, not its guest; feedback.h has their layout. */
#define OPT_OURS	(OPT_HELLO | OPT_PACK | OPT_FACK | OPT_OURS_BAD | OPT_ACCECN | OPT_ACCECN_CE)
#define OPT_HELLO_BYTES 8u
#define OPT_PACK_BYTES	8u
#define OPT_FACK_BYTES	12u

/*
 * The content of a Hello. Offer and acceptance differ, so a middlebox that echoes unknown options
 * is not mistaken for a vcc end.
 */
enum vcc_hello {
	HELLO_NONE = 0,
	HELLO_OFFER = 1,  /* on a SYN: this end sends and reads feedback */
	HELLO_ACCEPT = 2, /* on a SYN-ACK: the offer is accepted */
};

/*
 * The receiver half's cumulative counters, 24 bits each (RFC 9768, 3.2.1). With OPT_ACCECN the
 * first one is the option's first field.
 */
struct vcc_feedback {
	uint32_t ect0_bytes; /* payload received as ECT, unmarked */
	uint32_t ce_bytes;   /* payload received as CE */
};

/* A parsed segment. A GSO or GRO super-segment is one segment with seg_bytes > 0. */
struct vcc_segment {
	uint64_t now_us; /* monotonic; any epoch */
	uint32_t seq;
	uint32_t ack; /* valid if TCP_ACK is set */
	uint32_t payload_bytes;
	uint32_t seg_bytes;	      /* gso_size of a super-segment; 0: a single segment */
	uint32_t dsack_bytes;	      /* length of the DSACK block (RFC 2883), with OPT_SACK */
	uint32_t dsack_seq;	      /* its left edge */
	uint16_t window;	      /* the header's window field, unscaled */
	uint16_t flags;		      /* enum vcc_tcp_flag */
	uint16_t mss;		      /* value of the MSS option, with OPT_MSS */
	uint16_t options;	      /* enum vcc_option */
	uint8_t wscale;		      /* value of the Window Scale option, with OPT_WSCALE */
	uint8_t hello;		      /* enum vcc_hello, with OPT_HELLO */
	uint8_t ip_ecn;		      /* enum vcc_ip_ecn */
	uint8_t option_room_bytes;    /* free option space in the header */
	uint8_t at_tick;	      /* bool: now_us is the time of the last tick (clock.h) */
	struct vcc_feedback feedback; /* with OPT_PACK, OPT_FACK or OPT_ACCECN */
	uint32_t tsval;		      /* with OPT_TIMESTAMPS (RFC 7323) */
	uint32_t tsecr;
	uint32_t pool_bytes;	   /* the flow's limit in its pool (pool.h); 0: it has no pool */
	uint32_t pool_taken_bytes; /* the pool's charge for this flow during the engine call */
};

enum vcc_verdict {
	VCC_PASS = 0,
	VCC_DROP = 1,
	VCC_CONSUME = 2, /* addressed to vcc: not forwarded, and not counted as a drop */
};

/* A segment or an option that the shell generates. */
enum vcc_emit {
	EMIT_NOTHING = 0,
	EMIT_HELLO, /* append a Hello option with action.hello */
	EMIT_PACK,  /* append a PACK option with action.feedback */
	EMIT_FACK,  /* send a FACK beside the segment: its header with the option and ack - 1 */
};

/* Why policing drops a segment. */
enum vcc_policed {
	POLICED_NOT = 0,
	POLICED_WINDOW,	 /* it exceeds the window, or a rate */
	POLICED_UNKNOWN, /* its window is unknown (one_direction.h) */
};

/* The values that the shell writes into the segment, and what else it does. */
struct vcc_action {
	uint8_t verdict; /* enum vcc_verdict */
	uint8_t ip_ecn;
	uint8_t wscale;	 /* valid if the segment carries the option */
	uint8_t forget;	 /* bool: delete the flow */
	uint8_t strip;	 /* bool: remove our options, and a SYN's MPTCP options */
	uint8_t emit;	 /* enum vcc_emit */
	uint8_t hello;	 /* enum vcc_hello, with EMIT_HELLO */
	uint8_t police;	 /* enum vcc_policed */
	uint8_t forged;	 /* bool: it carried forged options or counters of ours */
	uint8_t dupacks; /* vcc_deadline only: duplicate ACKs to send to the guest */
	uint8_t update;	 /* vcc_deadline only, bool: send the guest a window update with `window` */
	uint8_t one_direction; /* bool: the connection's other direction does not pass the port */
	uint16_t flags;
	uint16_t window;
	uint16_t mss;		      /* valid if the segment carries the option */
	uint32_t deadline_ms;	      /* vcc_deadline only: time until the next call */
	uint32_t fabric_us;	      /* a sample of the fabric's delay (delay.h), or 0 */
	uint32_t guest_us;	      /* a sample of the guest's, or 0 */
	uint32_t delay_us;	      /* vcc_to_guest only: pass it so much later (pacing.h) */
	struct vcc_feedback feedback; /* with EMIT_PACK and EMIT_FACK */
};

/* The state of a connection as seen from the port. */
enum vcc_stage {
	STAGE_NONE = 0,
	STAGE_SYN_SENT,	    /* active open by the guest: its SYN passed */
	STAGE_SYN_RECEIVED, /* passive open by the guest: the peer's SYN passed */
	STAGE_ESTABLISHED,
	STAGE_CLOSED, /* both FINs or a RST passed; kept for retransmissions */
};

/* The sender half's congestion state; names as in RFC 6582, RFC 6937 and Linux. */
enum vcc_ca_state {
	CA_OPEN = 0,
	CA_CWR,	     /* reducing after ECE */
	CA_RECOVERY, /* fast recovery after a loss */
	CA_LOSS,     /* slow start after a retransmission timeout */
};

/* Why the guest retransmitted, as far as known; see loss.h. */
enum vcc_resent {
	RESENT_NOTHING = 0,
	RESENT_EXPECTED, /* SACK blocks reported a hole: the next retransmission repairs a loss */
	RESENT_PROBE,	 /* a tail loss probe (RFC 8985, 7.3) */
	RESENT_SHORT,	 /* the head of the flight, shorter than a full segment */
	RESENT_SMALLER,	 /* everything up to resent_end, because the path MTU shrank */
};

/* What the guest has been asked, as far as its answer is timed; see delay.h. */
enum vcc_asked {
	ASKED_NOTHING = 0,
	ASKED_ANSWER, /* data, which it may acknowledge by a delayed ACK (RFC 5681, 4.2) */
	ASKED_ACK,    /* a second full segment, which it acknowledges at once */
	ASKED_DATA,   /* an ACK that admits data which it has ready */
};

/* The timing of a receiving guest's ACKs; see rcv_rtt.h. */
enum vcc_rcv_rtt {
	RCV_RTT_NONE = 0, /* the peer may have no more to send */
	RCV_RTT_MORE,	  /* its last segment was full, and there may be more */
	RCV_RTT_WATCHED,  /* and an ACK with a later TSval may be timed */
	RCV_RTT_TIMED,
};

enum vcc_flow_flag {
	FLOW_GUEST_OPENED = 1 << 0, /* the guest sent the first SYN */
	FLOW_SYN_SEEN_GUEST = 1 << 1,
	FLOW_SYN_SEEN_PEER = 1 << 2,
	FLOW_ECN_GUEST = 1 << 3,    /* the guest negotiated ECN itself */
	FLOW_ECN_FABRIC = 1 << 4,   /* ECN is on between vcc and the peer */
	FLOW_ECN_ASKED = 1 << 5,    /* an ECN-setup SYN passed, the guest's own or made so by vcc */
	FLOW_ACCECN_GUEST = 1 << 6, /* AccECN (RFC 9768): requested by the first SYN, then agreed */
	FLOW_SACK = 1 << 7,	    /* offered by the SYN, then permitted on both sides */
	FLOW_TIMESTAMPS = 1 << 8,   /* offered by the SYN, then agreed */
	FLOW_WSCALE = 1 << 9,	    /* offered by the SYN, then agreed (RFC 7323, 2.2) */
	FLOW_LEFT_ALONE = 1 << 10,  /* tracked, never changed: the guest's ECN is its own */
	FLOW_ECN_FELL_BACK = 1 << 11, /* an ECN-setup SYN timed out (RFC 3168, 6.1.1.1) */
	FLOW_HELLO_OFFERED = 1 << 12, /* a SYN with a Hello passed, in either direction */
	FLOW_RTT_TIMING = 1 << 13,    /* rtt_seq is being timed */
	FLOW_FIN_GUEST = 1 << 14,
	FLOW_FIN_PEER = 1 << 15,
	FLOW_WINDOW_SHOWN = 1 << 16,   /* window_shown and window_received are valid */
	FLOW_ECE_LATCHED = 1 << 17,    /* receiver half: CE received, CWR not yet */
	FLOW_WINDOW_LIMITED = 1 << 18, /* the guest was window-limited in this round trip */
	FLOW_CWR_DUE = 1 << 19,	       /* sender half: set CWR on the next new data */
	FLOW_FEEDBACK = 1 << 20,       /* the handshake agreed on feedback with a vcc far end */
	FLOW_FEEDBACK_HEARD = 1 << 21, /* at least one report has arrived */
	FLOW_FEEDBACK_LOST = 1 << 22,  /* reports stopped or are not believed: classic ECN */
	FLOW_REPORT_DUE = 1 << 23,     /* receiver half: the counters moved since the last report */
	FLOW_REPORT_CE = 1 << 24,      /* receiver half: the CE counter moved since then */
	FLOW_PEER_DCTCP = 1 << 25,     /* the peer itself is DCTCP (RFC 8257) */
	FLOW_ECE_HEARD = 1 << 26,      /* the peer echoes marks by ECE */
	FLOW_UNHEARD = 1 << 27,	       /* marks are neither reported nor echoed: send no ECT */
	FLOW_PRODDED = 1 << 28,	    /* duplicate ACKs were sent to the guest; no progress since */
	FLOW_WITHHOLDING = 1 << 29, /* an overdraft is being withheld from the window */
	FLOW_FEEDBACK_FALSE = 1 << 30, /* a report was impossible: reports are ignored for good */
};

/* AccECN between vcc and the peer (accecn.h); 0: they have not agreed on it. */
enum vcc_accecn {
	ACCECN_AGREED = 1 << 0,
	ACCECN_ANSWERS = 1 << 1,      /* the guest's next ACK reports how the SYN-ACK arrived */
	ACCECN_HEARD = 1 << 2,	      /* the peer's ACE field has been seen */
	ACCECN_ECT_1 = 1 << 3,	      /* the peer has sent data as ECT(1) */
	ACCECN_OPTION_FALSE = 1 << 4, /* the peer's option was impossible: it is ignored for good */
	ACCECN_SETTLES = 1 << 5,      /* this ACK ends the handshake, so its field is no counter */
};

/* What the guest sends, and what times its answer. */
enum vcc_sends {
	SENDS_MORE = 1 << 0,	   /* last: a full segment, behind which there may be more */
	SENDS_LATE = 1 << 1,	   /* there is data of late_seq */
	SENDS_FRAGMENTS = 1 << 2,  /* IP fragments (fragments.h) */
	ASKED_AT_TICK = 1 << 3,	   /* asked_us is the time of the last tick (clock.h) */
	SENDS_UNANSWERED = 1 << 4, /* segments behind a SYN-ACK that did not pass */
};

/* Does the guest fill the rest of its window that is less than a segment? (runt.h) */
enum vcc_fills {
	FILLS_SEGMENTS = 0, /* no */
	FILLS_ONCE,	    /* unless another part of a segment is in flight */
	FILLS_ALWAYS,
	FILLS_ALONE, /* also by a runt that follows no whole segment: for good */
};

/* Whose numbers may be older than what has passed on the host before (arrival.h). */
enum vcc_lags {
	LAGS_GUEST = 1 << 0,
	LAGS_PEER = 1 << 1,
};

/*
 * Bit 31 does not fit an enum's int. The flow's treatment no longer imposes a window, but vcc
 * translated its handshake, so ECN, scales and options are still translated.
 */
#define FLOW_RELEASED (1u << 31)

/*
 * User space copies the structs that follow byte by byte, into a map or to another process; padding
 * would be uninitialised.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/*
 * The numbers of underlays: those of cc/list.h, and one for each slot of those that are loaded at
 * run time (cc/loaded.h), which stays what it is as the list grows.
 */
#define UNDERLAY_LOADED 128u
#define UNDERLAY_SLOTS	4u

/* What acknowledgements show of the path, for a congestion control to read (path.h). */
struct vcc_path {
	uint32_t rtt_us;       /* the fabric's RTT, the latest sample; 0: none yet */
	uint32_t rtt_min_us;   /* the least of the last 150 to 300 s; 0: none yet */
	uint32_t rtt_least_us; /* the least since least_since_us */
	uint32_t least_since_us;
	uint32_t rate_bytes_per_ms; /* delivered in the round trip of the latest sample */
	/* As the policy was at the latest sample. */
	uint32_t target_us; /* the operator's target of the RTT; 0: none */
};

/* A congestion control's own state, and `path`; it writes no other field of the flow. */
struct vcc_cc_state {
	uint32_t cwnd_segs;
	uint32_t ssthresh_segs;
	uint32_t credit_bytes; /* acknowledged bytes not yet turned into growth */
	uint32_t own[4];       /* private to the algorithm */
	struct vcc_path path;  /* the engine's */
	uint16_t floor_segs;   /* the engine's: the least window that a reduction may leave */
	int16_t part_1024;     /* beyond cwnd_segs; negative: less than a segment */
};

/*
 * The state of one connection at one port. What the usual segments touch comes first, by cache
 * lines of 64 bytes; 16 bytes of the datapath's own precede the first (struct vcc_entry). An ACK to
 * the guest, and data from it, touch three lines, and the fourth for a sample.
 */
struct vcc_flow {
	/* The first line: every segment. */
	uint32_t flags; /* enum vcc_flow_flag */
	uint32_t last_seen_ms;
	/* Sequence tracking of the guest's data (RFC 9293, 3.3.1). */
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t rcv_nxt;   /* next sequence number that the guest expects */
	uint32_t rcv_wup;   /* the guest's last acknowledgement (Linux: rcv_wup) */
	uint32_t rcv_edge;  /* highest ack + window that the guest advertised */
	uint32_t rcv_max;   /* the end of the peer's data that passed, whatever is missing */
	uint16_t mss_bytes; /* payload of the guest's full segments */
	uint16_t dupacks;
	uint8_t stage;	      /* enum vcc_stage */
	uint8_t ca_state;     /* enum vcc_ca_state */
	uint8_t underlay;     /* enum vcc_underlay */
	uint8_t resent;	      /* enum vcc_resent */
	uint8_t asked;	      /* enum vcc_asked */
	uint8_t accecn;	      /* enum vcc_accecn */
	uint8_t lags;	      /* enum vcc_lags */
	uint8_t rcv_rtt;      /* enum vcc_rcv_rtt */
	uint8_t settled;      /* bool: the guest has acknowledged the peer's SYN or SYN-ACK */
	uint8_t wscale_guest; /* scale of the windows that the guest sends */
	uint8_t sends;	      /* enum vcc_sends */
	uint8_t fills;	      /* enum vcc_fills */

	/* The second line: all but an ACK from the guest. */
	uint32_t right_edge; /* highest ack + window shown to the guest */
	/* Congestion window validation (RFC 7661). */
	uint32_t sent_us;	   /* new data was last sent */
	uint32_t validated_us;	   /* the window was last used in full, or reduced to its use */
	uint32_t round_end;	   /* the round trip ends when this is acknowledged */
	uint32_t flight_max_bytes; /* largest flight of this round trip */
	uint32_t used_max_bytes;   /* largest flight since validated_us */
	uint32_t rtt_seq;
	uint32_t rtt_sent_us;
	/* The two parts of a round trip (delay.h). */
	uint32_t asked_us;  /* the guest was asked */
	uint32_t asked_seq; /* an acknowledgement of this answers */
	/*
	 * Sender half: the far end's reports on the guest's data. unreported_bytes has been sent
	 * and not yet reported, retransmissions included; with AccECN, delivered since the last
	 * option, and retransmitted.
	 */
	uint32_t unreported_bytes;
	uint32_t undo_bytes;	  /* retransmitted, and not reported by a DSACK (undo.h) */
	uint16_t window_shown;	  /* last window field shown to the guest */
	uint16_t window_received; /* last window field received from the peer */
	uint16_t segs_since_ack;
	uint16_t undo_prior_segs; /* cwnd before the reductions that may be undone; 0: none */
	uint8_t wscale_peer;	  /* scale of the windows that the peer sends */
	uint8_t wscale_shown;	  /* scale announced to the guest */
	uint8_t rto_backoff;	  /* doublings of the RTO (RFC 6298, 5.5) */
	uint8_t peer_sends;	  /* bool: the peer has sent data */
	uint8_t ace_counted;	  /* marked packets received for the guest, modulo 256 (r.cep) */
	uint8_t ace_heard;	  /* the peer's last ACE field (s.cep) */
	uint16_t ack_segs64;	  /* packets that one of the peer's ACKs acknowledges, in 1/64 */

	/* The third: the same, up to the latest sample of cc.path. */
	uint32_t progress_us;	   /* the retransmission timer was last restarted */
	uint32_t srtt_us8;	   /* 8 * SRTT (RFC 6298) */
	uint32_t feedback_ack;	   /* highest acknowledgement that carried a report */
	uint32_t ece_reported;	   /* reports account for ECE up to this acknowledgement */
	struct vcc_feedback heard; /* the counters of the last report */
	uint32_t recover;	   /* snd_nxt at the last reduction (RFC 6582, 3.2) */
	uint16_t rule;		   /* written by the shell: the policy's rule for the flow */
	uint8_t epoch;		   /* written by the shell: the policy's epoch of `rule` */
	uint8_t shell;		   /* enum vcc_shell_flag; written by the shell alone */
	struct vcc_cc_state cc;

	/* The fourth: samples of the RTT, and what the guest is slow to answer (delay.h). */
	uint32_t guest_us64; /* smoothed in 1/64 us */
	uint32_t guest_worst_us;
	uint32_t fabric_us64; /* smoothed in 1/64 us */
	uint32_t fabric_worst_us;
	uint32_t rttvar_us4;	/* 4 * RTTVAR (RFC 6298) */
	uint32_t rtt_una;	/* snd_una when the timed segment was sent */
	uint16_t mss_max_bytes; /* upper bound of mss_bytes by the handshake */
	uint16_t drops;		/* segments dropped by vcc; saturates */
	uint32_t rcv_tsval;	/* the guest's, timed or watched (rcv_rtt.h) */
	uint32_t rcv_sent_us;	/* the segment with that TSval passed */
	uint16_t rcv_mss_bytes; /* payload of the peer's full segments (Linux: rcv_mss) */
	uint16_t waits;		/* that were measured, of either part; saturates */

	/* The fifth: the receiver half with reports, and what is rare. */
	struct vcc_feedback counted; /* payload received for the guest */
	uint32_t uncounted_bytes;    /* received since the last report */
	uint32_t late_seq; /* data sent long after the timed segment (rtt.h), if SENDS_LATE */
	/* Policing: data accepted beyond the window is withheld from the next window. */
	uint32_t overdraft_until;
	uint16_t overdraft_bytes;
	/* Proportional Rate Reduction (RFC 6937, 3); after a timeout, bytes sent and delivered. */
	uint16_t prr_prior_segs;
	uint32_t prr_delivered_bytes;
	uint32_t prr_out_bytes;
	/* Statistics. The 8 and 16-bit counters saturate. */
	uint32_t marks;		  /* ACKs and reports that carried marks */
	uint32_t reductions;	  /* window reductions, for ECN or loss */
	uint32_t retransmissions; /* segments that the guest retransmitted */
	uint32_t needless;   /* the guest's retransmissions of what had been acknowledged to it */
	uint16_t guest_cwrs; /* segments on which the guest set CWR itself */
	uint16_t policed;    /* segments dropped because they exceed the window */
	/* Undo: the range that undo_bytes lie in. */
	uint32_t undo_from;
	uint32_t undo_to;
	uint32_t undo_us; /* the first of them passed; 0: proved needless (undo.h) */
	/* The last retransmission whose reason is not known yet (loss.h). */
	uint32_t resent_end;
	uint32_t resent_bytes;
	/*
	 * The last SYN without ACK, the guest's or the peer's. It takes effect when it is answered:
	 * a SYN into a live connection may be stray or forged.
	 */
	uint32_t syn_seq;
	uint16_t syn_flags; /* enum vcc_flow_flag: its sender, offers and requests */
	uint16_t syn_mss_bytes;
	uint8_t syn_wscale;
	uint8_t syn_ip_ecn; /* how the peer's SYN or SYN-ACK arrived, with AccECN */
	uint8_t forged;	    /* forged options of ours */
	/* The guest's last single segment that was a little shorter than a full one (mss.h). */
	uint8_t short_run; /* how many were equal, in a row */
	uint16_t short_bytes;
	uint16_t short_end;	/* its end, modulo 65536 */
	uint32_t iss;		/* the guest's initial sequence number */
	uint32_t guessed_bytes; /* of heard.ce_bytes, what the peer's option has not reported */
};

/* What is kept of a flow that is forgotten (minisock.h). */
struct vcc_minisock {
	struct vcc_feedback counted;
	uint32_t flags;
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t rcv_nxt;
	uint32_t rcv_wup;
	uint32_t rcv_edge;
	uint32_t rcv_max;
	uint32_t right_edge;
	uint32_t iss;
	uint32_t syn_seq;
	uint16_t syn_flags;
	uint16_t syn_mss_bytes;
	uint16_t mss_bytes;
	uint16_t mss_max_bytes;
	uint16_t rcv_mss_bytes;
	uint16_t window_shown;
	uint16_t window_received;
	uint8_t stage;
	uint8_t underlay;
	uint8_t accecn;
	uint8_t ace_counted;
	uint8_t ace_heard;
	uint8_t settled;
	uint8_t peer_sends;
	uint8_t wscale_guest;
	uint8_t wscale_peer;
	uint8_t wscale_shown;
	uint8_t syn_wscale;
	uint8_t syn_ip_ecn;
	uint8_t reserved[2];
};

/* Behind the datapath's 16 bytes. */
#define FLOW_LINE_AT(line) ((line)*64 - 16)
_Static_assert(__builtin_offsetof(struct vcc_flow, right_edge) == FLOW_LINE_AT(1), "second line");
_Static_assert(__builtin_offsetof(struct vcc_flow, progress_us) == FLOW_LINE_AT(2), "third line");
_Static_assert(__builtin_offsetof(struct vcc_flow, cc.path.rtt_min_us) == FLOW_LINE_AT(3),
	       "fourth line");
_Static_assert(__builtin_offsetof(struct vcc_flow, counted) == FLOW_LINE_AT(4), "fifth line");

/* A shell's own flags of a flow. */
enum vcc_shell_flag {
	SHELL_POOL_MEMBER = 1 << 0, /* the pool's held_bytes includes the flow */
	SHELL_POOL_ACTIVE = 1 << 1, /* the pool's weight includes the flow */
	SHELL_POOL_IDLE = 1 << 2,   /* the pool's idle_bytes includes the flow */
	SHELL_POOL = SHELL_POOL_MEMBER | SHELL_POOL_ACTIVE | SHELL_POOL_IDLE,
};

enum vcc_mode {
	MODE_ENFORCE = 0,
	MODE_SHADOW, /* compute, change nothing */
	MODE_DRAIN,  /* enforce existing flows, accept no new ones */
	MODE_IGNORE, /* release existing flows, accept no new ones */
};

/* Treatment of a guest that negotiates ECN itself. */
enum vcc_guest_ecn {
	GUEST_ECN_LEAVE = 0,
	GUEST_ECN_OVERRIDE,
};

/* beta_1024 for AC/DC's beta of 1. */
#define BETA_ONE 1024u

/* Treatment of a new connection when the port's flow table is full. */
enum vcc_on_full {
	ON_FULL_PASS = 0, /* pass it untranslated */
	ON_FULL_DROP,	  /* drop its SYN */
};

/* Where a rule polices: data from the guest of a connection that the port does not know. */
enum vcc_on_unknown {
	ON_UNKNOWN_DROP = 0, /* after a grace (unknown_connection.h) */
	ON_UNKNOWN_PASS,
};

/* Who acknowledges what arrives for the guest. */
enum vcc_receive {
	RECEIVE_GUEST = 0, /* the guest alone */
	RECEIVE_RING,	   /* the shell, what lies in the guest's receive ring (snoop.h) */
	RECEIVE_BUFFER,	   /* and what lies in the shell's own buffer (receive_buffer.h) */
	RECEIVE_ACCEPT,	   /* and SYNs, before the guest does (accept.h) */
};

/* How the underlay's window acts on the guest. */
enum vcc_act {
	ACT_WINDOW = 0, /* the guest is shown it (window.h) */
	ACT_HOLD,	/* the shell holds the guest's segments until it admits them (hold.h) */
	ACT_SPLIT,	/* and acknowledges them, and owns their delivery (split.h) */
};

/* The parameters of a flow's treatment; never written by the engine. */
struct vcc_params {
	uint8_t underlay;   /* enum vcc_underlay: for new flows */
	uint8_t mode;	    /* enum vcc_mode */
	uint8_t guest_ecn;  /* enum vcc_guest_ecn */
	uint8_t prr;	    /* bool: reduce by PRR (RFC 6937), else at once */
	uint8_t pace_push;  /* bool: the PSH rule of push.h */
	uint8_t feedback;   /* bool: offer and accept PACK and FACK */
	uint8_t police;	    /* bool: drop data beyond the window shown */
	uint8_t trace;	    /* bool, for the shell: report each ACK */
	uint16_t beta_1024; /* priority of dctcp-priority (AC/DC, equation 1): 0 to BETA_ONE */
	uint8_t emit;	    /* bool: send duplicate ACKs and window updates to the guest (emit.h) */
	uint8_t undo;	    /* bool: undo a reduction that DSACK proves spurious */
	uint32_t window_floor_segs;	/* minimum of a shown window; 0: fractional_window.h */
	uint32_t initial_window_segs;	/* RFC 6928 */
	uint32_t window_max_bytes;	/* largest window that is shown exactly */
	uint32_t window_cap_bytes;	/* maximum of a window; 0: none */
	uint32_t rate_cap_bytes_per_ms; /* maximum of window / RTT; 0: none */
	/* With `police`, for the shell: of all connections of the guest together; 0: none. */
	uint32_t guest_rate_cap_bytes_per_ms;
	uint32_t rto_min_us;
	uint32_t emit_after_us;	      /* time without progress until duplicate ACKs are sent */
	uint32_t idle_established_ms; /* idle time until an established flow is forgotten */
	uint32_t idle_half_closed_ms; /* likewise one that one end has closed */
	uint32_t idle_handshake_ms;
	uint32_t idle_closed_ms;
	/* The flow's pool: flows that share a window (vCC, section 4). */
	uint16_t pool;	      /* the shell's number for it */
	uint16_t pool_weight; /* the flow's weight in it; 0: no pool */
	uint32_t pool_bytes;  /* the pool's size: all its flows' windows together */
	uint8_t on_full;      /* enum vcc_on_full; for the shell */
	uint8_t retransmit;   /* bool, with ACT_HOLD: the shell repairs losses (repair.h) */
	uint8_t act;	      /* enum vcc_act */
	uint8_t receive;      /* enum vcc_receive */
	uint8_t delays;	      /* bool: measure what round trips wait for (delay.h) */
	uint8_t accecn;	      /* bool: ask for AccECN in the guest's name, and accept it */
	uint8_t migratable;   /* bool: promise nothing that needs vcc after the handshake */
	uint8_t on_unknown;   /* enum vcc_on_unknown, with `police`; for the shell */
	/* In a port's buffer (hold_buffer.h): equation 1's alpha, and that of flows of a short RTT.
	 */
	uint16_t buffer_alpha;
	uint16_t buffer_alpha_short;
	uint32_t buffer_short_rtt_us; /* the limit of that, with BUFFER_PRIORITIZED */
	uint32_t rtt_target_us;	      /* with CC_TARGET; 0: by the path's least RTT alone */
	uint32_t unknown_grace_s; /* until data of unknown connections is dropped; for the shell */
	uint32_t policed_s; /* written by the shell: the rule polices since then; 0: always has */
};

#pragma GCC diagnostic pop

/* clang-format off */
/* The defaults; a parameter that is not listed is 0. */
#define VCC_PARAMS_DEFAULT							\
	{									\
		.underlay = UNDERLAY_reno_ecn, /* vCC's */			\
		.mode = MODE_ENFORCE,						\
		.guest_ecn = GUEST_ECN_LEAVE,					\
		.on_full = ON_FULL_PASS,					\
		.on_unknown = ON_UNKNOWN_DROP,					\
		.prr = 1,							\
		.undo = 1,							\
		.pace_push = 1,							\
		.feedback = 1,							\
		.accecn = 1,							\
		.delays = 1,							\
		.beta_1024 = BETA_ONE,						\
		.window_floor_segs = 1,						\
		.initial_window_segs = 10,					\
		/* Scale 5: 10 Gbit/s at 1.6 ms, for 8 of 1448 bytes of MSS. */	\
		.window_max_bytes = 2 << 20,					\
		.rto_min_us = 200000,						\
		/* DCTCP's RTT is 120 at 10 Gbit/s, K = 65 (delay-10g). */	\
		.rtt_target_us = 100,						\
		/* AC/DC, section 5: the RTO_min of its hosts. */		\
		.emit_after_us = 10000,						\
		.buffer_alpha = 1,						\
		.buffer_alpha_short = 8,					\
		/* vFlood, 3.3. */						\
		.buffer_short_rtt_us = 1000,					\
		/* A forgotten flow whose scale was rewritten would crawl. */	\
		.idle_established_ms = 5 * 24 * 3600 * 1000,			\
		/* RFC 5382, REQ-5: keepalives come every two hours. */		\
		.idle_half_closed_ms = 124 * 60 * 1000,				\
		/* Longer than Linux retries: 127 s a SYN, 63 s a SYN-ACK. */	\
		.idle_handshake_ms = 130 * 1000,				\
		.idle_closed_ms = 10 * 1000,					\
		/* What is older than the port has time to end, or to pause. */	\
		.unknown_grace_s = 5 * 60,					\
	}
/* clang-format on */

#endif
