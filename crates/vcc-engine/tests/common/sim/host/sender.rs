//! A host's sender: NewReno (RFC 5681, RFC 6582) with SACK, RTO and tail loss probes.

use vcc_engine::sys;

use super::super::native::Native;
use super::super::ranges::Ranges;
use super::{ACK, CWR, ECE, FIN, Host, PSH, Packet, RST, Runts, Stage};

const RTO_INITIAL_US: u64 = 1_000_000;
const RTO_MIN_US: u64 = 200_000;
const RTO_MAX_US: u64 = 8_000_000;
const OFFSET_OF_SYN: i64 = -1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Repair {
    None,
    /// Fast recovery, up to `recover`.
    Fast,
    /// After a timeout, up to `recover`.
    Timeout,
}

pub struct Sender {
    pub una: i64,
    pub nxt: i64,
    pub(super) send_edge: i64,
    /// End of the last runt that was sent.
    runt_end: i64,
    last_window: u16,
    pub(super) cwnd_bytes: i64,
    ssthresh_bytes: i64,
    pub native: Option<Native>,
    dupacks: u32,
    repair: Repair,
    recover: i64,
    resend_next: i64,
    sacked: Ranges,
    reduced_until: i64,
    cwr_due: bool,
    pub cwrs_sent: u32,
    pub retransmissions: u32,
    /// Segments of new data, and those of less than an eighth among them.
    pub segs_sent: u64,
    pub runts_sent: u64,
    srtt_us: u64,
    pub(super) backoff: u32,
    timing: Option<(i64, u64)>,
    pub(super) rto_at: Option<u64>,
    pub(super) probe_at: Option<u64>,
    pub(super) written: i64,
    pub(super) write_at: u64,
}

impl Default for Sender {
    fn default() -> Self {
        Sender {
            una: OFFSET_OF_SYN,
            nxt: OFFSET_OF_SYN,
            send_edge: 0,
            runt_end: 0,
            last_window: 0,
            cwnd_bytes: 0,
            ssthresh_bytes: i64::MAX / 2,
            native: None,
            dupacks: 0,
            repair: Repair::None,
            recover: 0,
            resend_next: 0,
            sacked: Ranges::default(),
            reduced_until: -1,
            cwr_due: false,
            cwrs_sent: 0,
            retransmissions: 0,
            segs_sent: 0,
            runts_sent: 0,
            srtt_us: 0,
            backoff: 0,
            timing: None,
            rto_at: None,
            probe_at: None,
            written: 0,
            write_at: 0,
        }
    }
}

impl Sender {
    pub(super) fn take_rtt(&mut self, rtt_us: u64) {
        self.srtt_us = if self.srtt_us == 0 { rtt_us } else { (7 * self.srtt_us + rtt_us) / 8 };
        if let Some(native) = &mut self.native {
            native.on_sample(rtt_us);
        }
    }
}

impl Host {
    pub(super) fn receive_ack(&mut self, now_us: u64, packet: &Packet) {
        let segment = &packet.segment;
        let ack = Self::offset(self.config.iss, segment.ack, self.sender.una);
        if ack < self.sender.una || ack > self.sender.nxt {
            return;
        }
        let has_sack = self.negotiated.use_sack && segment.options & sys::OPT_SACK as u16 != 0;
        if has_sack {
            let start = Self::offset(self.config.iss, packet.sack.0, self.sender.una);
            let end = Self::offset(self.config.iss, packet.sack.1, self.sender.una);
            self.sender.sacked.insert(start, end);
        }
        let acked_bytes = ack - self.sender.una;
        let duplicate = acked_bytes == 0
            && self.sender.nxt > self.sender.una
            && segment.payload_bytes == 0
            && segment.flags & FIN == 0
            && if self.negotiated.use_sack {
                has_sack
            } else {
                segment.window == self.sender.last_window
            };
        self.sender.send_edge = ack + (i64::from(segment.window) << self.negotiated.peer_wscale);
        self.sender.last_window = segment.window;
        self.sender.una = ack;
        self.sender.sacked.trim(ack);
        self.take_sample(now_us, ack);
        if self.negotiated.ecn_on {
            self.answer_ece(now_us, segment.flags & ECE != 0, acked_bytes);
        }
        if acked_bytes > 0 {
            self.sender.backoff = 0;
            self.sender.dupacks = 0;
            self.sender.rto_at =
                (self.sender.nxt > self.sender.una).then(|| now_us + self.rto_us());
            self.acknowledged(now_us, acked_bytes);
        } else if duplicate {
            self.duplicated(now_us);
        }
        if self.config.resets_at.is_some_and(|offset| self.sender.una >= offset) {
            let mut packet = self.header(now_us);
            packet.segment.flags = RST | ACK;
            self.out.push(packet);
            self.stage = Stage::Reset;
        }
    }

    fn acknowledged(&mut self, now_us: u64, acked_bytes: i64) {
        match self.sender.repair {
            Repair::Fast if self.sender.una < self.sender.recover => {
                // A partial ACK: retransmit the next hole (RFC 6582, 3.2, step 3).
                self.sender.resend_next = self.sender.resend_next.max(self.sender.una);
                if self.sender.resend_next == self.sender.una || !self.negotiated.use_sack {
                    self.resend(now_us, self.sender.una);
                }
            }
            Repair::Timeout if self.sender.una < self.sender.recover => {
                self.sender.cwnd_bytes += acked_bytes
            }
            Repair::Fast => {
                self.sender.repair = Repair::None;
                self.sender.cwnd_bytes = self.sender.ssthresh_bytes;
            }
            _ => {
                self.sender.repair = Repair::None;
                self.sender.cwnd_bytes += if self.sender.cwnd_bytes < self.sender.ssthresh_bytes {
                    acked_bytes
                } else {
                    self.negotiated.mss_bytes * acked_bytes / self.sender.cwnd_bytes.max(1)
                };
            }
        }
    }

    fn duplicated(&mut self, now_us: u64) {
        self.sender.dupacks += 1;
        if self.sender.repair == Repair::None
            && self.sender.dupacks == 3
            && self.sender.una >= self.sender.recover
        {
            self.sender.repair = Repair::Fast;
            self.sender.recover = self.sender.nxt;
            self.sender.ssthresh_bytes =
                ((self.sender.nxt - self.sender.una) / 2).max(2 * self.negotiated.mss_bytes);
            self.sender.cwnd_bytes = self.sender.ssthresh_bytes;
            self.resend(now_us, self.sender.una);
        } else if self.sender.repair == Repair::Fast && self.negotiated.use_sack {
            // Retransmit the next hole below a SACK block.
            let hole = self.sender.sacked.end_from(self.sender.resend_next);
            if self.sender.sacked.next_start(hole).is_some() {
                self.resend(now_us, hole);
            }
        }
    }

    fn answer_ece(&mut self, now_us: u64, ece: bool, acked_bytes: i64) {
        let (una, nxt) = (self.sender.una, self.sender.nxt);
        let in_flight_segs = self.segs(nxt - una);
        let acked_segs = self.segs(acked_bytes);
        if let Some(native) = &mut self.sender.native {
            self.sender.cwr_due |= native.on_ack(now_us, acked_segs, ece, una, nxt, in_flight_segs);
        } else if ece && self.sender.una > self.sender.reduced_until {
            self.sender.reduced_until = self.sender.nxt;
            self.sender.ssthresh_bytes =
                (self.sender.cwnd_bytes / 2).max(2 * self.negotiated.mss_bytes);
            self.sender.cwnd_bytes = self.sender.ssthresh_bytes;
            self.sender.cwr_due = true;
        }
    }

    fn segs(&self, bytes: i64) -> i64 {
        (bytes + self.negotiated.mss_bytes - 1) / self.negotiated.mss_bytes
    }

    fn take_sample(&mut self, now_us: u64, ack: i64) {
        if let Some((end, sent_us)) = self.sender.timing {
            if ack >= end {
                self.sender.timing = None;
                self.sender.take_rtt(now_us - sent_us);
            }
        }
    }

    fn rto_us(&self) -> u64 {
        let rto_us = if self.sender.srtt_us == 0 {
            RTO_INITIAL_US
        } else {
            2 * self.sender.srtt_us + RTO_MIN_US
        };
        (rto_us << self.sender.backoff).min(RTO_MAX_US)
    }

    fn resend(&mut self, now_us: u64, from: i64) {
        let end = (from + self.negotiated.mss_bytes).min(self.sender.nxt);
        let end = self.sender.sacked.next_start(from).map_or(end, |start| end.min(start));
        if end <= from {
            return;
        }
        let fin = end > self.config.total_bytes;
        let mut packet = self.header(now_us);
        packet.segment.seq = self.wire_seq(from);
        packet.segment.payload_bytes = (end - from - i64::from(fin)) as u32;
        packet.segment.flags |= if fin { FIN } else { 0 };
        self.out.push(packet);
        self.sender.retransmissions += 1;
        self.sender.timing = None;
        self.sender.resend_next = end;
        self.sender.rto_at = Some(now_us + self.rto_us());
    }

    /// Sends as much as windows and application allow.
    pub fn transmit(&mut self, now_us: u64) {
        if self.stage != Stage::Established {
            return;
        }
        if self.sender.repair == Repair::Timeout {
            self.sender.resend_next = self.sender.resend_next.max(self.sender.una);
            while self.sender.resend_next < self.sender.recover
                && self.sender.resend_next + self.negotiated.mss_bytes
                    <= self.sender.una + self.sender.cwnd_bytes
                && self.sender.resend_next < self.sender.send_edge
            {
                let from = self.sender.resend_next;
                self.resend(now_us, from);
                if self.sender.resend_next == from {
                    break;
                }
            }
        }
        let before = self.sender.nxt;
        while self.transmit_one(now_us, self.sender.nxt > before) {}
        let sent_segs = self.segs(self.sender.nxt - before);
        let (una, nxt) = (self.sender.una, self.sender.nxt);
        let in_flight_segs = self.segs(nxt - una);
        if let Some(native) = &mut self.sender.native {
            native.on_sent(now_us, sent_segs, una, nxt, in_flight_segs);
        }
        if self.sender.nxt > self.sender.una {
            let rto_us = self.rto_us();
            self.sender.rto_at.get_or_insert(now_us + rto_us);
            if self.config.probes_tail && self.sender.nxt > before && self.sender.srtt_us > 0 {
                self.sender.probe_at = Some(now_us + 2 * self.sender.srtt_us + 2000);
            }
        } else if self.sender.nxt < self.sender.written {
            // Zero window: arm the probe timer (RFC 9293, 3.8.6.1).
            let rto_us = self.rto_us();
            self.sender.rto_at.get_or_insert(now_us + rto_us);
        }
    }

    /// `behind`: has it just sent another segment?
    fn transmit_one(&mut self, now_us: u64, behind: bool) -> bool {
        let cwnd_bytes = match &self.sender.native {
            Some(native) => native.cwnd * self.negotiated.mss_bytes,
            None => self.sender.cwnd_bytes,
        };
        let limit = self.sender.send_edge.min(self.sender.una + cwnd_bytes);
        let written_all = self.sender.written == self.config.total_bytes;
        let available_bytes = self.sender.written - self.sender.nxt;
        if available_bytes <= 0 {
            if written_all && self.sender.nxt == self.config.total_bytes {
                let mut packet = self.header(now_us);
                packet.segment.flags |= FIN;
                self.sender.nxt += 1;
                self.out.push(packet);
            }
            return false;
        }
        let most_bytes = self.negotiated.mss_bytes * i64::from(self.config.gso_segs);
        let mut payload_bytes = available_bytes.min(most_bytes).min(limit - self.sender.nxt);
        if payload_bytes > self.negotiated.mss_bytes && payload_bytes < available_bytes {
            payload_bytes -= payload_bytes % self.negotiated.mss_bytes;
        }
        let runt = payload_bytes < self.negotiated.mss_bytes.min(available_bytes);
        let waits = match self.config.runts {
            Runts::Never => self.sender.nxt > self.sender.una,
            Runts::One => !behind || self.sender.runt_end > self.sender.una,
            Runts::Always => !behind,
            Runts::Alone => false,
        };
        if payload_bytes <= 0 || (runt && waits) {
            return false;
        }
        self.sender.segs_sent += self.segs(payload_bytes) as u64;
        self.sender.runts_sent += u64::from(payload_bytes < self.negotiated.mss_bytes / 8);
        if runt {
            self.sender.runt_end = self.sender.nxt + payload_bytes;
        }
        let mut packet = self.header(now_us);
        packet.segment.payload_bytes = payload_bytes as u32;
        if payload_bytes > self.negotiated.mss_bytes {
            packet.segment.seg_bytes = self.negotiated.mss_bytes as u32;
        }
        if payload_bytes == available_bytes {
            packet.segment.flags |= PSH;
        }
        if self.negotiated.ecn_on {
            packet.segment.ip_ecn = sys::IP_ECN_ECT_0 as u8;
            if self.sender.cwr_due {
                packet.segment.flags |= CWR;
                self.sender.cwr_due = false;
                self.sender.cwrs_sent += 1;
            }
        }
        self.sender.nxt += payload_bytes;
        if self.sender.nxt == self.config.total_bytes && self.config.fin_on_data {
            packet.segment.flags |= FIN;
            self.sender.nxt += 1;
        }
        self.sender.timing.get_or_insert((self.sender.nxt, now_us));
        self.out.push(packet);
        true
    }

    pub(super) fn sender_timer(&mut self, now_us: u64) {
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now_us);
        if is_due(self.sender.probe_at) {
            self.sender.probe_at = None;
            self.probe_tail(now_us);
        }
        if is_due(self.sender.rto_at) {
            self.sender.rto_at = None;
            self.timed_out(now_us);
        }
    }

    /// Tail loss probe (RFC 8985, 7.3).
    fn probe_tail(&mut self, now_us: u64) {
        if self.sender.nxt > self.sender.una && self.sender.repair == Repair::None {
            let from = (self.sender.nxt - self.negotiated.mss_bytes).max(self.sender.una);
            let resend_next = self.sender.resend_next;
            self.resend(now_us, from);
            self.sender.resend_next = resend_next;
        }
    }

    /// The application writes.
    pub(super) fn application_timer(&mut self, now_us: u64) {
        if self.sender.write_at > now_us {
            return;
        }
        let total_bytes = self.config.total_bytes;
        if self.sender.written < total_bytes && self.stage == Stage::Established {
            self.sender.written = (self.sender.written + self.config.burst_bytes).min(total_bytes);
            self.sender.write_at = now_us + self.config.pause_us;
        } else {
            self.sender.write_at = now_us + 10_000;
        }
    }

    fn timed_out(&mut self, now_us: u64) {
        self.sender.backoff = (self.sender.backoff + 1).min(5);
        match self.stage {
            Stage::SynSent | Stage::SynReceived => self.send_syn(now_us),
            Stage::Established if self.sender.nxt > self.sender.una => {
                self.sender.ssthresh_bytes =
                    ((self.sender.nxt - self.sender.una) / 2).max(2 * self.negotiated.mss_bytes);
                self.sender.cwnd_bytes = self.negotiated.mss_bytes;
                self.sender.repair = Repair::Timeout;
                self.sender.recover = self.sender.nxt;
                self.sender.dupacks = 0;
                self.sender.sacked.clear();
                self.resend(now_us, self.sender.una);
            }
            Stage::Established if self.sender.nxt < self.sender.written => {
                let mut probe = self.header(now_us);
                probe.segment.seq = self.wire_seq(self.sender.una - 1);
                self.out.push(probe);
            }
            _ => {}
        }
    }
}
