//! A host's handshake, in both roles (RFC 9293, 3.5).

use vcc_engine::{Segment, sys};

use super::super::native::Native;
use super::{ACK, AE, CWR, ECE, Host, Packet, SYN, Stage};

const HANDSHAKE_RTO_US: u64 = 1_000_000;

impl Host {
    pub fn open(&mut self, now_us: u64) {
        self.sender.write_at = now_us;
        self.receiver.read_changes_at = now_us + self.config.reading_us.0;
        if self.config.opens {
            self.stage = Stage::SynSent;
            self.send_syn(now_us);
        }
    }

    pub(super) fn send_syn(&mut self, now_us: u64) {
        let answers = self.stage == Stage::SynReceived;
        let mut flags = SYN;
        if answers {
            flags |= ACK | if self.negotiated.ecn_on { ECE } else { 0 };
        } else if self.config.ecn && self.syns_sent == 0 {
            // Only the first SYN requests ECN (RFC 3168, 6.1.1.1).
            flags |= ECE | CWR;
        }
        self.syns_sent += 1;
        self.syn_sent_us = now_us;
        let segment = Segment {
            now_us,
            seq: self.config.iss,
            ack: if answers { self.negotiated.peer_iss.wrapping_add(1) } else { 0 },
            window: self.config.capacity_bytes.min(65535) as u16,
            flags,
            mss: self.config.mss_option,
            wscale: self.config.wscale,
            options: self.config.options,
            option_room_bytes: self.config.option_room_bytes,
            ..Segment::default()
        };
        self.sender.nxt = 0;
        self.out.push(Packet { segment, sack: (0, 0) });
        self.sender.rto_at = Some(now_us + HANDSHAKE_RTO_US);
    }

    pub(super) fn receive_syn(&mut self, now_us: u64, segment: &Segment) {
        let answers = segment.flags & ACK != 0;
        match (self.stage, answers) {
            (Stage::Closed, false) if !self.config.opens => {
                self.take_options(segment);
                self.negotiated.ecn_on =
                    self.config.ecn && segment.flags & (ECE | CWR) == (ECE | CWR);
                self.stage = Stage::SynReceived;
                self.send_syn(now_us);
            }
            (Stage::SynReceived, false) => {
                // A host that has received a SYN without ECN uses none (RFC 3168, 6.1.1).
                self.negotiated.ecn_on &= segment.flags & (ECE | CWR) == (ECE | CWR);
                self.send_syn(now_us);
            }
            (Stage::SynSent, true) => {
                self.take_options(segment);
                self.negotiated.ecn_on = self.config.ecn
                    && self.syns_sent == 1
                    && segment.flags & (ECE | CWR | AE) == ECE;
                if !self.config.ecn && segment.flags & (ECE | CWR | AE) != 0 {
                    self.receiver.leaks.push("ECN flags on the SYN-ACK");
                }
                self.establish(now_us);
                self.sender.send_edge = i64::from(segment.window);
                self.send_ack(now_us, None);
                self.transmit(now_us);
            }
            (Stage::Established, true) => self.send_ack(now_us, None),
            _ => {}
        }
    }

    fn take_options(&mut self, segment: &Segment) {
        let both = segment.options & self.config.options;
        self.negotiated.use_wscale = both & sys::OPT_WSCALE as u16 != 0;
        self.negotiated.use_sack = both & sys::OPT_SACK_PERMITTED as u16 != 0;
        self.negotiated.peer_wscale =
            if self.negotiated.use_wscale { segment.wscale.min(14) } else { 0 };
        let peer_mss = if segment.options & sys::OPT_MSS as u16 != 0 { segment.mss } else { 536 };
        self.negotiated.mss_bytes = i64::from(peer_mss.min(self.config.mss_option));
        if both & sys::OPT_TIMESTAMPS as u16 != 0 {
            self.negotiated.mss_bytes -= 12;
        } else {
            self.config.options &= !(sys::OPT_TIMESTAMPS as u16);
        }
        self.sender.cwnd_bytes =
            i64::from(self.config.initial_cwnd_segs) * self.negotiated.mss_bytes;
        if self.config.native {
            self.sender.native =
                Some(Native::new(self.config.initial_cwnd_segs.into(), self.syn_sent_us));
        }
        self.negotiated.peer_iss = segment.seq;
    }

    pub(super) fn establish(&mut self, now_us: u64) {
        self.stage = Stage::Established;
        // Karn's algorithm: RFC 6298, 3.
        if self.syns_sent == 1 {
            self.sender.take_rtt(now_us - self.syn_sent_us);
        }
        self.sender.una = 0;
        self.sender.rto_at = None;
        self.sender.backoff = 0;
    }
}
