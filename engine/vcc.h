/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The face of the engine: a segment goes in, an action comes out.
 *
 * The engine is a pure function over one flow's state. It does no I/O, reads no clock and
 * allocates nothing; a shell parses frames, finds the flow, calls one of three functions and
 * carries out the action:
 *
 *	vcc_from_guest	a segment that the guest sent, on its way to the fabric
 *	vcc_to_guest	a segment from the fabric, on its way to the guest
 *	vcc_deadline	nothing came; time has passed
 *
 * All multi-byte values are in host order. The same bytes of struct vcc_flow lie in a kernel
 * map, in user space and in a dump.
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

/* Options of a segment that the engine looks at. */
enum vcc_option {
	OPT_MSS = 0x01,
	OPT_WSCALE = 0x02,
	OPT_SACK_PERMITTED = 0x04,
	OPT_TIMESTAMPS = 0x08,
	OPT_SACK = 0x10, /* at least one SACK block */
	OPT_HELLO = 0x20,
	OPT_PACK = 0x40,
	OPT_FACK = 0x80,
	OPT_OURS_BAD = 0x100, /* of a kind of ours, but of another length or version */
	OPT_SIGNED = 0x200,   /* RFC 2385, RFC 5925; signed.h says what it changes */
	OPT_MPTCP = 0x400,    /* on a SYN: RFC 8684; mptcp.h says what becomes of it */
};

/* Options that only two vcc ends say to each other; feedback.h has their layout. */
#define OPT_OURS	(OPT_HELLO | OPT_PACK | OPT_FACK | OPT_OURS_BAD)
#define OPT_HELLO_BYTES 8u
#define OPT_PACK_BYTES	8u
#define OPT_FACK_BYTES	12u

/*
 * What a Hello says. The answer differs from the question, so that a middlebox that echoes options
 * which it does not know is not taken for a vcc end.
 */
enum vcc_hello {
	HELLO_NONE = 0,
	HELLO_OFFER = 1,  /* on a SYN: this end gives and takes feedback */
	HELLO_ACCEPT = 2, /* on a SYN-ACK: so does this one */
};

/* The receiver half's cumulative counters, 24 bits each as in RFC 9768, 3.2.1. */
struct vcc_feedback {
	uint32_t ect0_bytes; /* payload that came as ECT, unmarked */
	uint32_t ce_bytes;   /* payload that came marked */
};

/* What a shell parsed. A GSO or GRO super-segment is one segment with segs > 1. */
struct vcc_segment {
	uint64_t now_us; /* monotonic; any epoch */
	uint32_t seq;
	uint32_t ack; /* valid where TCP_ACK is set */
	uint32_t payload_bytes;
	uint32_t seg_bytes;	      /* payload of each full segment of a super-segment; else 0 */
	uint32_t dsack_bytes;	      /* of ours that came twice (RFC 2883), with OPT_SACK */
	uint32_t dsack_seq;	      /* the first of them */
	uint16_t window;	      /* the field as it stands in the header, unscaled */
	uint16_t flags;		      /* enum vcc_tcp_flag */
	uint16_t mss;		      /* value of the MSS option, where OPT_MSS */
	uint16_t options;	      /* enum vcc_option */
	uint8_t wscale;		      /* value of the Window Scale option, where OPT_WSCALE */
	uint8_t hello;		      /* enum vcc_hello, where OPT_HELLO */
	uint8_t ip_ecn;		      /* enum vcc_ip_ecn */
	uint8_t option_room_bytes;    /* what the header can still take */
	struct vcc_feedback feedback; /* where OPT_PACK or OPT_FACK */
	uint32_t pool_bytes;	   /* what its pool leaves this flow (pool.h); 0: it is in none */
	uint32_t pool_taken_bytes; /* of that, what the ledger counts while the engine is at it */
};

enum vcc_verdict {
	VCC_PASS = 0,
	VCC_DROP = 1,
	VCC_CONSUME = 2, /* it was for us alone: not passed on, and no loss */
};

/* What the shell adds to the segment, or sends beside it. */
enum vcc_emit {
	EMIT_NOTHING = 0,
	EMIT_HELLO, /* add the option, saying action.hello */
	EMIT_PACK,  /* add the option, saying action.feedback */
	EMIT_FACK,  /* beside it: its header alone, with the option, acknowledging a byte less */
};

/* What the shell does with the segment: each field is the value that it shall leave with. */
struct vcc_action {
	uint8_t verdict; /* enum vcc_verdict */
	uint8_t ip_ecn;
	uint8_t wscale;	 /* meaningful where the segment carries the option */
	uint8_t forget;	 /* the flow has ended: remove its state */
	uint8_t strip;	 /* bool: options of ours, and MPTCP's of a SYN, leave the segment */
	uint8_t emit;	 /* enum vcc_emit */
	uint8_t hello;	 /* enum vcc_hello, with EMIT_HELLO */
	uint8_t police;	 /* bool: dropped for it reaches beyond the window */
	uint8_t forged;	 /* bool: options or counters of ours that cannot be meant */
	uint8_t dupacks; /* vcc_deadline only: so many copies of its last ACK go to the guest */
	uint8_t update;	 /* vcc_deadline only, bool: one with `window` goes to the guest */
	uint16_t flags;
	uint16_t window;
	uint16_t mss;		      /* meaningful where the segment carries the option */
	uint32_t deadline_ms;	      /* vcc_deadline only: call again after so long */
	struct vcc_feedback feedback; /* with EMIT_PACK and EMIT_FACK */
};

/* Where a connection stands, as far as the shell's port has seen it. */
enum vcc_stage {
	STAGE_NONE = 0,
	STAGE_SYN_SENT,	    /* the guest opens: its SYN passed */
	STAGE_SYN_RECEIVED, /* the peer opens: its SYN passed */
	STAGE_ESTABLISHED,
	STAGE_CLOSED, /* both FINs or a RST passed; lingers for retransmissions */
};

/* The sender half's congestion state; names as in RFC 6582, RFC 6937 and Linux. */
enum vcc_ca_state {
	CA_OPEN = 0,
	CA_CWR,	     /* reducing after ECE */
	CA_RECOVERY, /* reducing after a loss that was repaired without a timeout */
	CA_LOSS,     /* slow start after a retransmission timeout */
};

/* What is known of why the guest sent something again, or will; see loss.h. */
enum vcc_resent {
	RESENT_NOTHING = 0,
	RESENT_EXPECTED, /* blocks told of a hole: what is sent again was lost */
	RESENT_PROBE,	 /* its tail, to find out whether it was lost (RFC 8985, 7.3) */
	RESENT_SHORT,	 /* its head, shorter than a full segment */
	RESENT_SMALLER,	 /* all up to resent_end, for the path has a smaller MTU */
};

enum vcc_flow_flag {
	FLOW_GUEST_OPENED = 1 << 0, /* the guest sent the first SYN */
	FLOW_SYN_SEEN_GUEST = 1 << 1,
	FLOW_SYN_SEEN_PEER = 1 << 2,
	FLOW_ECN_GUEST = 1 << 3,  /* the guest negotiated ECN itself */
	FLOW_ECN_FABRIC = 1 << 4, /* ECN is on between us and the peer */
	FLOW_ECN_ASKED = 1 << 5,  /* an ECN-setup SYN went to the fabric, by guest or by us */
	FLOW_ACCECN_GUEST =
	    1 << 6,		   /* AccECN (RFC 9768): asked for by the first SYN, then: agreed */
	FLOW_SACK = 1 << 7,	   /* offered by guest, then: permitted on both sides */
	FLOW_TIMESTAMPS = 1 << 8,  /* likewise */
	FLOW_WSCALE = 1 << 9,	   /* likewise (RFC 7323, 2.2) */
	FLOW_LEFT_ALONE = 1 << 10, /* tracked, never changed: the guest's ECN is its own */
	FLOW_ECN_FELL_BACK = 1 << 11, /* a SYN with ECN went unanswered (RFC 3168, 6.1.1.1) */
	FLOW_HELLO_OFFERED = 1 << 12, /* a SYN with our offer passed, from either side */
	FLOW_RTT_TIMING = 1 << 13,    /* rtt_seq is being timed */
	FLOW_FIN_GUEST = 1 << 14,
	FLOW_FIN_PEER = 1 << 15,
	FLOW_WINDOW_SHOWN = 1 << 16,   /* window_shown and window_received are valid */
	FLOW_ECE_LATCHED = 1 << 17,    /* receiver half: CE came, CWR has not */
	FLOW_WINDOW_LIMITED = 1 << 18, /* in this round trip the guest used its whole window */
	FLOW_CWR_DUE = 1 << 19,	       /* sender half: CWR goes on the next new data */
	FLOW_FEEDBACK = 1 << 20,       /* the far end is under vcc: agreed in the handshake */
	FLOW_FEEDBACK_HEARD = 1 << 21, /* it has reported */
	FLOW_FEEDBACK_LOST = 1 << 22,  /* it is silent, or not believed: classic ECN */
	FLOW_REPORT_DUE = 1 << 23,     /* receiver half: the counters moved since the last report */
	FLOW_REPORT_CE = 1 << 24,      /* likewise, and some of it was marked */
	FLOW_PEER_DCTCP = 1 << 25,     /* the peer itself is DCTCP (RFC 8257) */
	FLOW_ECE_HEARD = 1 << 26,      /* the peer echoes marks by ECE */
	FLOW_UNHEARD = 1 << 27,	       /* nobody reports marks: data goes without ECT */
	FLOW_PRODDED = 1 << 28,	    /* duplicate ACKs went to the guest, and nothing came since */
	FLOW_WITHHOLDING = 1 << 29, /* an overdraft is being withheld from the window */
	FLOW_FEEDBACK_FALSE = 1 << 30, /* it said what cannot be, and is not believed again */
};

/*
 * The last of the flow's flags, apart because it does not fit an enum's int: another treatment
 * leaves its window alone, but its handshake was translated, and so the rest still is.
 */
#define FLOW_RELEASED (1u << 31)

/* What a congestion control owns: these, and nothing else of the flow. */
struct vcc_cc_state {
	uint32_t cwnd_segs;
	uint32_t ssthresh_segs;
	uint32_t credit_bytes; /* acknowledged, not yet turned into growth */
	uint32_t own[4];       /* private to the algorithm */
};

/*
 * The state of one connection at one port. Data and ACKs are worked on by different CPUs, so what
 * both touch comes first: each cache line that moves between them costs as much as the arithmetic.
 */
struct vcc_flow {
	uint32_t flags; /* enum vcc_flow_flag */
	uint32_t last_seen_ms;
	/* Sequence tracking of the guest's data (RFC 9293, 3.3.1). */
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t right_edge; /* furthest ack + window that the guest has been shown */
	uint32_t rcv_nxt;    /* what the guest expects of the peer next */
	uint32_t rcv_wup;    /* what it has said that it expects (Linux's name for it) */
	uint32_t rcv_edge;   /* furthest ack + window of its own */
	/* Congestion window validation (RFC 7661): the largest flight of this round trip. */
	uint32_t round_end;
	uint32_t flight_max_bytes;
	uint32_t used_max_bytes; /* the largest since then */
	uint32_t validated_us;	 /* last time that the window was used, or came down to what is */
	uint32_t sent_us;	 /* last time that new data was sent */
	uint32_t rtt_seq;
	uint32_t rtt_sent_us;
	uint16_t mss_bytes; /* payload of the guest's full segment */
	uint16_t segs_since_ack;
	uint8_t stage;	  /* enum vcc_stage */
	uint8_t ca_state; /* enum vcc_ca_state */
	uint8_t underlay; /* enum vcc_underlay */
	uint8_t resent;	  /* enum vcc_resent */
	struct vcc_cc_state cc;
	/* Sender half: what the far end has reported of our data. */
	uint32_t unreported_bytes; /* sent and not reported yet, retransmissions included */
	uint32_t feedback_ack;	   /* furthest acknowledgement that came with a report */
	uint32_t ece_told;	   /* up to this acknowledgement, reports have explained ECE */
	struct vcc_feedback heard; /* its counters */
	/* Receiver half: what has come for the guest. */
	struct vcc_feedback counted;
	uint32_t uncounted_bytes; /* came since the last report */
	uint32_t recover;	  /* snd_nxt at the last reduction (RFC 6582, 3.2) */
	/* RTT and RTO (RFC 6298); scaled as there: srtt by 8, rttvar by 4. */
	uint32_t srtt_us8;
	uint32_t rttvar_us4;
	uint32_t progress_us;	  /* last time the retransmission timer was restarted */
	uint16_t window_shown;	  /* last window field that the guest was given */
	uint16_t window_received; /* the field that stood there before */
	uint8_t wscale_peer;	  /* the scale of the windows that the peer sends */
	uint8_t wscale_shown;	  /* the scale that the guest was told */
	uint8_t rto_backoff;	  /* doublings of the RTO (RFC 6298, 5.5) */
	uint8_t shell;		  /* enum vcc_shell_flag: the shell's own, not the engine's */
	/* Policing: what the guest took beyond its window is withheld from the one that follows. */
	uint32_t overdraft_until;
	uint16_t overdraft_bytes;
	/* Proportional Rate Reduction (RFC 6937, 3); after a timeout, what was sent and delivered.
	 */
	uint16_t prr_prior_segs;
	uint32_t prr_delivered_bytes;
	uint32_t prr_out_bytes;
	/* Counted for the person who looks. */
	uint32_t marks;		  /* ACKs and reports that told of marks */
	uint32_t reductions;	  /* of the window, for ECN or loss */
	uint32_t retransmissions; /* segments that the guest sent again */
	uint16_t drops;		  /* segments that we dropped; stays at its maximum */
	uint16_t rule;		  /* the shell's own: of its policy, by which it is treated, */
	uint16_t guest_cwrs; /* segments on which the guest set CWR itself; stays at its maximum */
	uint16_t undo_prior_segs; /* the window before reductions that may be undone; 0: none */
	uint16_t policed;	  /* of the drops: data beyond the window; stays at its maximum */
	uint8_t forged;		  /* options of ours that were not believed; likewise */
	uint8_t epoch;		  /* the shell's own: ... and in which edition of it */
	uint16_t mss_max_bytes;	  /* what the handshake allows mss_bytes to be */
	uint16_t dupacks;
	/* Undo of reductions: what was sent again, and not said to have come twice. */
	uint32_t undo_bytes;
	uint32_t undo_from; /* no such byte lies before */
	uint32_t undo_to;   /* nor behind */
	/* What was sent again last, while it is open why (loss.h). */
	uint32_t resent_end;
	uint32_t resent_bytes;
	/*
	 * The last SYN that asks for a connection, the guest's or the peer's, apart from what holds
	 * until it is answered: one that comes into a live connection may be stray or forged.
	 */
	uint32_t syn_seq;
	uint16_t syn_flags; /* enum vcc_flow_flag: who sent it, what it offers and asks for */
	uint16_t syn_mss_bytes;
	uint8_t syn_wscale;
	uint8_t wscale_guest; /* the scale of the windows that the guest sends */
	uint8_t settled;      /* bool: the guest has acknowledged the peer's SYN or SYN-ACK */
	uint8_t reserved;
	uint32_t iss; /* the guest's initial sequence number */
};

/* What a shell notes at a flow. */
enum vcc_shell_flag {
	SHELL_POOL_MEMBER = 1 << 0, /* what it holds of its pool is counted there */
	SHELL_POOL_ACTIVE = 1 << 1, /* and so is its weight */
	SHELL_POOL_IDLE = 1 << 2,   /* instead, it is counted among what idle flows may send */
	SHELL_POOL = SHELL_POOL_MEMBER | SHELL_POOL_ACTIVE | SHELL_POOL_IDLE,
};

enum vcc_mode {
	MODE_ENFORCE = 0,
	MODE_SHADOW, /* compute, change nothing */
	MODE_DRAIN,  /* enforce the flows that are there, take no new ones */
	MODE_IGNORE, /* take no new ones, and let go of those that are there */
};

/* What to do with a guest that negotiates ECN itself. */
enum vcc_guest_ecn {
	GUEST_ECN_LEAVE = 0,
	GUEST_ECN_OVERRIDE,
};

/* Of beta_1024: AC/DC's beta of 1. */
#define BETA_ONE 1024u

/* What becomes of a new connection where the port has no room for it. */
enum vcc_on_full {
	ON_FULL_PASS = 0, /* it goes on untranslated */
	ON_FULL_DROP,	  /* its SYN is dropped */
};

/* How one port's flows are treated; never written by the engine. */
struct vcc_params {
	uint8_t underlay;   /* enum vcc_underlay: for new flows */
	uint8_t mode;	    /* enum vcc_mode */
	uint8_t guest_ecn;  /* enum vcc_guest_ecn */
	uint8_t prr;	    /* bool: reduce by RFC 6937, else at once */
	uint8_t pace_push;  /* bool: the PSH rule of push.h */
	uint8_t feedback;   /* bool: offer and accept PACK and FACK */
	uint8_t police;	    /* bool: drop data beyond the window that we allowed */
	uint8_t trace;	    /* bool, for the shell: tell of each ACK */
	uint16_t beta_1024; /* dctcp-priority's (AC/DC, equation 1): 0 to BETA_ONE */
	uint8_t emit;	    /* bool: duplicate ACKs for a guest whose own timeout is far off */
	uint8_t undo;	    /* bool: take a reduction back where DSACK says that nothing was lost */
	uint32_t window_floor_segs;   /* a shown window never falls below; at least 1 */
	uint32_t initial_window_segs; /* RFC 6928 */
	uint32_t window_max_bytes;    /* windows up to this size are shown exactly */
	uint32_t cap_bytes;	      /* no window is larger; 0: no such limit */
	uint32_t cap_bytes_per_ms;    /* nor larger than this rate times the RTT; likewise */
	uint32_t rto_min_us;
	uint32_t emit_after_us;	      /* without progress for so long, duplicate ACKs go out */
	uint32_t established_idle_ms; /* forgotten after so long without a segment */
	uint32_t handshake_idle_ms;
	uint32_t closed_idle_ms;
	/* The pool that the flow shares a window with (vCC, section 4). */
	uint16_t pool;	      /* the shell's number for it */
	uint16_t pool_weight; /* its share, beside the others' weights; 0: it is in none */
	uint32_t pool_bytes;  /* the windows of all its flows together */
	uint32_t on_full;     /* enum vcc_on_full; for the shell */
};

#endif
