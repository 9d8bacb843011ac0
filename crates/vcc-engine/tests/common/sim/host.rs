//! A TCP host without I/O, for either end: small, and independent of the engine. Streams are
//! addressed by 64-bit offsets from the first byte of data, so that nothing here can share the
//! engine's mistakes about the wrap of sequence numbers.

use vcc_engine::{Segment, sys};

use super::native::Native;
use super::ranges::Ranges;

const SYN: u16 = sys::TCP_SYN as u16;
const ACK: u16 = sys::TCP_ACK as u16;
const FIN: u16 = sys::TCP_FIN as u16;
const RST: u16 = sys::TCP_RST as u16;
const PSH: u16 = sys::TCP_PSH as u16;
const ECE: u16 = sys::TCP_ECE as u16;
const CWR: u16 = sys::TCP_CWR as u16;
const AE: u16 = sys::TCP_AE as u16;

const DELAYED_ACK_US: u64 = 40_000;
const HANDSHAKE_RTO_US: u64 = 1_000_000;
const RTO_MIN_US: u64 = 200_000;
const RTO_MAX_US: u64 = 8_000_000;
const OFFSET_OF_SYN: i64 = -1;

/// A segment with what the engine does not look at.
#[derive(Clone, Copy)]
pub struct Packet {
    pub segment: Segment,
    /// One SACK block, where `OPT_SACK` is set.
    pub sack: (u32, u32),
}

/// What a sender makes of a window that ends within a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runts {
    /// Waits for room for a whole one (RFC 9293, 3.8.6.2.1), as lwIP and smoltcp do.
    Never,
    /// Sends what fits unless a runt is in flight already: Nagle's algorithm in Linux
    /// (tcp_nagle_check with tcp_minshall_check).
    One,
    /// Sends what fits: TCP_NODELAY.
    Always,
}

#[derive(Clone)]
pub struct HostConfig {
    pub opens: bool,
    pub ecn: bool,
    pub native: bool,
    pub iss: u32,
    pub options: u16,
    pub mss_option: u16,
    pub wscale: u8,
    /// What its headers can still take of options, but for SACK blocks.
    pub option_room_bytes: u8,
    pub initial_cwnd_segs: u32,
    pub gso_segs: u32,
    pub runts: Runts,
    pub probes_tail: bool,
    pub fin_on_data: bool,
    pub total_bytes: i64,
    /// The application writes so much, then pauses.
    pub burst_bytes: i64,
    pub pause_us: u64,
    /// Receive buffer, and how the application reads: (reads for, then stalls for).
    pub capacity_bytes: i64,
    pub reading_us: (u64, u64),
    /// The receiver takes back offered window now and then.
    pub shrinks: bool,
    /// Resets the connection when so much was acknowledged.
    pub resets_at: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Closed,
    SynSent,
    SynReceived,
    Established,
    Reset,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Repair {
    None,
    /// After three duplicates, up to `recover`.
    Fast,
    /// After a timeout, up to `recover`.
    Timeout,
}

pub struct Host {
    pub config: HostConfig,
    pub stage: Stage,
    pub out: Vec<Packet>,
    // What was negotiated.
    peer_iss: u32,
    peer_wscale: u8,
    use_wscale: bool,
    use_sack: bool,
    pub mss_bytes: i64,
    ecn_on: bool,
    syns_sent: u32,
    // Sender.
    pub una: i64,
    pub nxt: i64,
    send_edge: i64,
    /// The end of the last runt that was sent.
    runt_end: i64,
    last_window: u16,
    cwnd_bytes: i64,
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
    srtt_us: u64,
    backoff: u32,
    timing: Option<(i64, u64)>,
    rto_at: Option<u64>,
    probe_at: Option<u64>,
    written: i64,
    write_at: u64,
    syn_sent_us: u64,
    // Receiver.
    pub rcv_nxt: i64,
    out_of_order: Ranges,
    unread_bytes: i64,
    rcv_edge: i64,
    /// What it has acknowledged, and the furthest edge that it has shown.
    rcv_wup: i64,
    furthest_edge: i64,
    peer_fin: Option<i64>,
    ece_latched: bool,
    pub latches: u32,
    pub releases: u32,
    unacked_segs: u32,
    ack_at: Option<u64>,
    read_changes_at: u64,
    reading: bool,
    shrink_bytes: i64,
    pub leaks: Vec<&'static str>,
}

impl Host {
    pub fn new(config: HostConfig) -> Self {
        Host {
            stage: Stage::Closed,
            out: Vec::new(),
            peer_iss: 0,
            peer_wscale: 0,
            use_wscale: false,
            use_sack: false,
            mss_bytes: 536,
            ecn_on: false,
            syns_sent: 0,
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
            srtt_us: 0,
            backoff: 0,
            timing: None,
            rto_at: None,
            probe_at: None,
            written: 0,
            write_at: 0,
            syn_sent_us: 0,
            rcv_nxt: 0,
            out_of_order: Ranges::default(),
            unread_bytes: 0,
            rcv_edge: 0,
            rcv_wup: 0,
            furthest_edge: 65535,
            peer_fin: None,
            ece_latched: false,
            latches: 0,
            releases: 0,
            unacked_segs: 0,
            ack_at: None,
            read_changes_at: config.reading_us.0,
            reading: true,
            shrink_bytes: 0,
            leaks: Vec::new(),
            config,
        }
    }

    /// All that this host had to send, its FIN too, was acknowledged.
    pub fn sent_all(&self) -> bool {
        self.una > self.config.total_bytes
    }

    pub fn sent_fin(&self) -> bool {
        self.nxt > self.config.total_bytes
    }

    pub fn received_all(&self) -> bool {
        self.peer_fin.is_some_and(|fin| self.rcv_nxt > fin)
    }

    pub fn next_timer(&self) -> Option<u64> {
        if matches!(self.stage, Stage::Closed | Stage::Reset) {
            return None;
        }
        let writes = (self.written < self.config.total_bytes).then_some(self.write_at);
        let reads = (!self.received_all()).then_some(self.read_changes_at);
        [self.rto_at, self.probe_at, self.ack_at, writes, reads].into_iter().flatten().min()
    }

    fn wire_seq(&self, offset: i64) -> u32 {
        self.config.iss.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// The offset near `near` that a number of a stream from `iss` stands for.
    fn offset(iss: u32, number: u32, near: i64) -> i64 {
        let near_number = iss.wrapping_add(1).wrapping_add(near as u32);
        near + i64::from(number.wrapping_sub(near_number) as i32)
    }

    /// What it has told the peer that it expects next.
    pub fn acknowledged_number(&self) -> u32 {
        self.peer_iss.wrapping_add(1).wrapping_add(self.rcv_wup as u32)
    }

    fn window_bytes(&self) -> i64 {
        (self.config.capacity_bytes - self.unread_bytes - self.shrink_bytes).max(0)
    }

    /// The header that every segment after the handshake has.
    fn header(&mut self, now_us: u64) -> Packet {
        let scale = if self.use_wscale { self.config.wscale } else { 0 };
        let mut edge = self.rcv_nxt + self.window_bytes();
        if !self.config.shrinks {
            edge = edge.max(self.rcv_edge);
        }
        // Out of order data sits in the buffer that was offered: the field is what is left.
        let window = ((edge - self.rcv_nxt) >> scale).min(65535) as u16;
        self.rcv_edge = self.rcv_nxt + (i64::from(window) << scale);
        self.rcv_wup = self.rcv_nxt;
        self.furthest_edge = self.furthest_edge.max(self.rcv_edge);
        let ack = self.peer_iss.wrapping_add(1).wrapping_add((self.rcv_nxt) as u32);
        self.unacked_segs = 0;
        self.ack_at = None;
        let flags = ACK | if self.ece_latched { ECE } else { 0 };
        let segment = Segment {
            now_us,
            seq: self.wire_seq(self.nxt),
            ack,
            window,
            flags,
            options: self.config.options & sys::OPT_TIMESTAMPS as u16,
            option_room_bytes: self.config.option_room_bytes,
            ..Segment::default()
        };
        Packet { segment, sack: (0, 0) }
    }

    fn send_ack(&mut self, now_us: u64, received: Option<i64>) {
        let mut packet = self.header(now_us);
        let block = received.and_then(|offset| self.out_of_order.around(offset));
        if let (true, Some((start, end))) = (self.use_sack, block) {
            let base = self.peer_iss.wrapping_add(1);
            packet.sack = (base.wrapping_add(start as u32), base.wrapping_add(end as u32));
            packet.segment.options |= sys::OPT_SACK as u16;
            // As if it had as many blocks as fit.
            packet.segment.option_room_bytes = 4;
        }
        self.out.push(packet);
    }

    fn send_syn(&mut self, now_us: u64) {
        let answers = self.stage == Stage::SynReceived;
        let mut flags = SYN;
        if answers {
            flags |= ACK | if self.ecn_on { ECE } else { 0 };
        } else if self.config.ecn && self.syns_sent == 0 {
            // RFC 3168, 6.1.1.1: only the first try asks.
            flags |= ECE | CWR;
        }
        self.syns_sent += 1;
        self.syn_sent_us = now_us;
        let segment = Segment {
            now_us,
            seq: self.config.iss,
            ack: if answers { self.peer_iss.wrapping_add(1) } else { 0 },
            window: self.config.capacity_bytes.min(65535) as u16,
            flags,
            mss: self.config.mss_option,
            wscale: self.config.wscale,
            options: self.config.options,
            option_room_bytes: self.config.option_room_bytes,
            ..Segment::default()
        };
        self.nxt = 0;
        self.out.push(Packet { segment, sack: (0, 0) });
        self.rto_at = Some(now_us + HANDSHAKE_RTO_US);
    }

    pub fn open(&mut self, now_us: u64) {
        self.write_at = now_us;
        self.read_changes_at = now_us + self.config.reading_us.0;
        if self.config.opens {
            self.stage = Stage::SynSent;
            self.send_syn(now_us);
        }
    }

    fn take_options(&mut self, segment: &Segment) {
        let both = segment.options & self.config.options;
        self.use_wscale = both & sys::OPT_WSCALE as u16 != 0;
        self.use_sack = both & sys::OPT_SACK_PERMITTED as u16 != 0;
        self.peer_wscale = if self.use_wscale { segment.wscale.min(14) } else { 0 };
        let peer_mss = if segment.options & sys::OPT_MSS as u16 != 0 { segment.mss } else { 536 };
        self.mss_bytes = i64::from(peer_mss.min(self.config.mss_option));
        if both & sys::OPT_TIMESTAMPS as u16 != 0 {
            self.mss_bytes -= 12;
        } else {
            self.config.options &= !(sys::OPT_TIMESTAMPS as u16);
        }
        self.cwnd_bytes = i64::from(self.config.initial_cwnd_segs) * self.mss_bytes;
        if self.config.native {
            self.native = Some(Native::new(self.config.initial_cwnd_segs.into(), self.syn_sent_us));
        }
        self.peer_iss = segment.seq;
    }

    fn establish(&mut self) {
        self.stage = Stage::Established;
        self.una = 0;
        self.rto_at = None;
        self.backoff = 0;
    }

    pub fn receive(&mut self, now_us: u64, packet: &Packet) {
        let segment = &packet.segment;
        if self.stage == Stage::Reset {
            return;
        }
        if segment.flags & SYN != 0 {
            self.receive_syn(now_us, segment);
            return;
        }
        if segment.flags & RST != 0 {
            // RFC 5961, 3.2: at just the number that is expected.
            if Self::offset(self.peer_iss, segment.seq, self.rcv_nxt) == self.rcv_nxt {
                self.stage = Stage::Reset;
            }
            return;
        }
        if self.stage == Stage::SynReceived && Self::offset(self.config.iss, segment.ack, 0) >= 0 {
            self.establish();
            self.send_edge = i64::from(segment.window) << self.peer_wscale;
        }
        if self.stage != Stage::Established {
            return;
        }
        if !self.config.ecn {
            self.note_leaks(segment);
        }
        if !self.accepts(segment) {
            self.send_ack(now_us, None);
            return;
        }
        self.receive_data(now_us, segment);
        self.receive_ack(now_us, packet);
        self.transmit(now_us);
    }

    /// RFC 9293, 3.10.7.4, as Linux judges it.
    fn accepts(&self, segment: &Segment) -> bool {
        let start = Self::offset(self.peer_iss, segment.seq, self.rcv_nxt);
        let end = start + i64::from(segment.payload_bytes) + i64::from(segment.flags & FIN != 0);
        let ack = Self::offset(self.config.iss, segment.ack, self.una);
        end >= self.rcv_wup && start <= self.furthest_edge && ack <= self.nxt
    }

    /// What a host that never asked for ECN must not see (law 5).
    fn note_leaks(&mut self, segment: &Segment) {
        if segment.flags & (ECE | CWR | AE) != 0 {
            self.leaks.push("ECN flags");
        }
        if segment.ip_ecn != 0 {
            self.leaks.push("IP ECN field");
        }
        if segment.options & super::OPT_OURS != 0 {
            self.leaks.push("options of ours");
        }
    }

    fn receive_syn(&mut self, now_us: u64, segment: &Segment) {
        let answers = segment.flags & ACK != 0;
        match (self.stage, answers) {
            (Stage::Closed, false) if !self.config.opens => {
                self.take_options(segment);
                self.ecn_on = self.config.ecn && segment.flags & (ECE | CWR) == (ECE | CWR);
                self.stage = Stage::SynReceived;
                self.send_syn(now_us);
            }
            (Stage::SynReceived, false) => {
                // RFC 3168, 6.1.1: who has received a SYN without ECN uses none.
                self.ecn_on &= segment.flags & (ECE | CWR) == (ECE | CWR);
                self.send_syn(now_us);
            }
            (Stage::SynSent, true) => {
                self.take_options(segment);
                self.ecn_on = self.config.ecn
                    && self.syns_sent == 1
                    && segment.flags & (ECE | CWR | AE) == ECE;
                if !self.config.ecn && segment.flags & (ECE | CWR | AE) != 0 {
                    self.leaks.push("ECN flags on the SYN-ACK");
                }
                self.establish();
                self.send_edge = i64::from(segment.window);
                self.send_ack(now_us, None);
                self.transmit(now_us);
            }
            (Stage::Established, true) => self.send_ack(now_us, None),
            _ => {}
        }
    }

    fn receive_data(&mut self, now_us: u64, segment: &Segment) {
        let payload_bytes = i64::from(segment.payload_bytes);
        let start = Self::offset(self.peer_iss, segment.seq, self.rcv_nxt);
        let mut end = start + payload_bytes;
        if segment.flags & FIN != 0 {
            self.peer_fin = Some(end);
            end += 1;
        }
        if start == end {
            // A probe below what is expected wants an answer (RFC 9293, 3.10.7.4).
            if start < self.rcv_nxt {
                self.send_ack(now_us, None);
            }
            return;
        }
        if self.ecn_on {
            if segment.flags & CWR != 0 {
                self.releases += u32::from(self.ece_latched);
                self.ece_latched = false;
            }
            if u32::from(segment.ip_ecn) == sys::IP_ECN_CE && payload_bytes > 0 {
                self.latches += u32::from(!self.ece_latched);
                self.ece_latched = true;
            }
        }
        if end <= self.rcv_nxt || start >= self.rcv_edge.max(self.rcv_nxt + 1) {
            self.send_ack(now_us, None);
            return;
        }
        self.out_of_order.insert(start.max(self.rcv_nxt), end);
        let before = self.rcv_nxt;
        self.rcv_nxt = self.out_of_order.end_from(self.rcv_nxt);
        self.out_of_order.trim(self.rcv_nxt);
        if !self.reading {
            self.unread_bytes += self.rcv_nxt - before;
        }
        let in_order = self.rcv_nxt > before;
        self.unacked_segs += 1;
        let at_once = !in_order
            || !self.out_of_order.is_empty()
            || self.unacked_segs >= 2
            || segment.flags & (FIN | PSH) != 0;
        if at_once {
            self.send_ack(now_us, (!in_order).then_some(start));
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now_us + DELAYED_ACK_US);
        }
    }

    fn receive_ack(&mut self, now_us: u64, packet: &Packet) {
        let segment = &packet.segment;
        let ack = Self::offset(self.config.iss, segment.ack, self.una);
        if ack < self.una || ack > self.nxt {
            return;
        }
        let has_sack = self.use_sack && segment.options & sys::OPT_SACK as u16 != 0;
        if has_sack {
            let start = Self::offset(self.config.iss, packet.sack.0, self.una);
            let end = Self::offset(self.config.iss, packet.sack.1, self.una);
            self.sacked.insert(start, end);
        }
        let acked_bytes = ack - self.una;
        let duplicate = acked_bytes == 0
            && self.nxt > self.una
            && segment.payload_bytes == 0
            && segment.flags & FIN == 0
            && if self.use_sack { has_sack } else { segment.window == self.last_window };
        self.send_edge = ack + (i64::from(segment.window) << self.peer_wscale);
        self.last_window = segment.window;
        self.una = ack;
        self.sacked.trim(ack);
        self.take_sample(now_us, ack);
        if self.ecn_on {
            self.answer_ece(now_us, segment.flags & ECE != 0, acked_bytes);
        }
        if acked_bytes > 0 {
            self.backoff = 0;
            self.dupacks = 0;
            self.rto_at = (self.nxt > self.una).then(|| now_us + self.rto_us());
            self.acknowledged(now_us, acked_bytes);
        } else if duplicate {
            self.duplicated(now_us);
        }
        if self.config.resets_at.is_some_and(|offset| self.una >= offset) {
            let mut packet = self.header(now_us);
            packet.segment.flags = RST | ACK;
            self.out.push(packet);
            self.stage = Stage::Reset;
        }
    }

    fn acknowledged(&mut self, now_us: u64, acked_bytes: i64) {
        match self.repair {
            Repair::Fast if self.una < self.recover => {
                // A partial ACK: the next hole (RFC 6582, 3.2, step 3).
                self.resend_next = self.resend_next.max(self.una);
                if self.resend_next == self.una || !self.use_sack {
                    self.resend(now_us, self.una);
                }
            }
            Repair::Timeout if self.una < self.recover => self.cwnd_bytes += acked_bytes,
            Repair::Fast => {
                self.repair = Repair::None;
                self.cwnd_bytes = self.ssthresh_bytes;
            }
            _ => {
                self.repair = Repair::None;
                self.cwnd_bytes += if self.cwnd_bytes < self.ssthresh_bytes {
                    acked_bytes
                } else {
                    self.mss_bytes * acked_bytes / self.cwnd_bytes.max(1)
                };
            }
        }
    }

    fn duplicated(&mut self, now_us: u64) {
        self.dupacks += 1;
        if self.repair == Repair::None && self.dupacks == 3 && self.una >= self.recover {
            self.repair = Repair::Fast;
            self.recover = self.nxt;
            self.ssthresh_bytes = ((self.nxt - self.una) / 2).max(2 * self.mss_bytes);
            self.cwnd_bytes = self.ssthresh_bytes;
            self.resend(now_us, self.una);
        } else if self.repair == Repair::Fast && self.use_sack {
            // The next hole below what was selectively acknowledged.
            let hole = self.sacked.end_from(self.resend_next);
            if self.sacked.next_start(hole).is_some() {
                self.resend(now_us, hole);
            }
        }
    }

    fn answer_ece(&mut self, now_us: u64, ece: bool, acked_bytes: i64) {
        let (una, nxt) = (self.una, self.nxt);
        let in_flight_segs = self.segs(nxt - una);
        let acked_segs = self.segs(acked_bytes);
        if let Some(native) = &mut self.native {
            self.cwr_due |= native.on_ack(now_us, acked_segs, ece, una, nxt, in_flight_segs);
        } else if ece && self.una > self.reduced_until {
            self.reduced_until = self.nxt;
            self.ssthresh_bytes = (self.cwnd_bytes / 2).max(2 * self.mss_bytes);
            self.cwnd_bytes = self.ssthresh_bytes;
            self.cwr_due = true;
        }
    }

    fn segs(&self, bytes: i64) -> i64 {
        (bytes + self.mss_bytes - 1) / self.mss_bytes
    }

    fn take_sample(&mut self, now_us: u64, ack: i64) {
        if let Some((end, sent_us)) = self.timing {
            if ack >= end {
                let rtt_us = now_us - sent_us;
                self.srtt_us =
                    if self.srtt_us == 0 { rtt_us } else { (7 * self.srtt_us + rtt_us) / 8 };
                self.timing = None;
                if let Some(native) = &mut self.native {
                    native.on_sample(rtt_us);
                }
            }
        }
    }

    fn rto_us(&self) -> u64 {
        let rto_us = if self.srtt_us == 0 { 1_000_000 } else { 2 * self.srtt_us + RTO_MIN_US };
        (rto_us << self.backoff).min(RTO_MAX_US)
    }

    fn resend(&mut self, now_us: u64, from: i64) {
        let end = (from + self.mss_bytes).min(self.nxt);
        let end = self.sacked.next_start(from).map_or(end, |start| end.min(start));
        if end <= from {
            return;
        }
        let fin = end > self.config.total_bytes;
        let mut packet = self.header(now_us);
        packet.segment.seq = self.wire_seq(from);
        packet.segment.payload_bytes = (end - from - i64::from(fin)) as u32;
        packet.segment.flags |= if fin { FIN } else { 0 };
        self.out.push(packet);
        self.retransmissions += 1;
        self.timing = None;
        self.resend_next = end;
        self.rto_at = Some(now_us + self.rto_us());
    }

    /// Sends what windows and application allow.
    pub fn transmit(&mut self, now_us: u64) {
        if self.stage != Stage::Established {
            return;
        }
        if self.repair == Repair::Timeout {
            self.resend_next = self.resend_next.max(self.una);
            while self.resend_next < self.recover
                && self.resend_next + self.mss_bytes <= self.una + self.cwnd_bytes
                && self.resend_next < self.send_edge
            {
                let from = self.resend_next;
                self.resend(now_us, from);
                if self.resend_next == from {
                    break;
                }
            }
        }
        let before = self.nxt;
        while self.transmit_one(now_us) {}
        let sent_segs = self.segs(self.nxt - before);
        let (una, nxt) = (self.una, self.nxt);
        let in_flight_segs = self.segs(nxt - una);
        if let Some(native) = &mut self.native {
            native.on_sent(now_us, sent_segs, una, nxt, in_flight_segs);
        }
        if self.nxt > self.una {
            let rto_us = self.rto_us();
            self.rto_at.get_or_insert(now_us + rto_us);
            if self.config.probes_tail && self.nxt > before && self.srtt_us > 0 {
                self.probe_at = Some(now_us + 2 * self.srtt_us + 2000);
            }
        } else if self.nxt < self.written {
            // The window is closed: ask now and then (RFC 9293, 3.8.6.1).
            let rto_us = self.rto_us();
            self.rto_at.get_or_insert(now_us + rto_us);
        }
    }

    fn transmit_one(&mut self, now_us: u64) -> bool {
        let cwnd_bytes = match &self.native {
            Some(native) => native.cwnd * self.mss_bytes,
            None => self.cwnd_bytes,
        };
        let limit = self.send_edge.min(self.una + cwnd_bytes);
        let written_all = self.written == self.config.total_bytes;
        let available_bytes = self.written - self.nxt;
        if available_bytes <= 0 {
            if written_all && self.nxt == self.config.total_bytes {
                let mut packet = self.header(now_us);
                packet.segment.flags |= FIN;
                self.nxt += 1;
                self.out.push(packet);
            }
            return false;
        }
        let most_bytes = self.mss_bytes * i64::from(self.config.gso_segs);
        let mut payload_bytes = available_bytes.min(most_bytes).min(limit - self.nxt);
        if payload_bytes > self.mss_bytes && payload_bytes < available_bytes {
            payload_bytes -= payload_bytes % self.mss_bytes;
        }
        let runt = payload_bytes < self.mss_bytes.min(available_bytes);
        let waits = match self.config.runts {
            Runts::Never => self.nxt > self.una,
            Runts::One => self.runt_end > self.una,
            Runts::Always => false,
        };
        if payload_bytes <= 0 || (runt && waits) {
            return false;
        }
        if runt {
            self.runt_end = self.nxt + payload_bytes;
        }
        let mut packet = self.header(now_us);
        packet.segment.payload_bytes = payload_bytes as u32;
        if payload_bytes > self.mss_bytes {
            packet.segment.seg_bytes = self.mss_bytes as u32;
        }
        if payload_bytes == available_bytes {
            packet.segment.flags |= PSH;
        }
        if self.ecn_on {
            packet.segment.ip_ecn = sys::IP_ECN_ECT_0 as u8;
            if self.cwr_due {
                packet.segment.flags |= CWR;
                self.cwr_due = false;
                self.cwrs_sent += 1;
            }
        }
        self.nxt += payload_bytes;
        if self.nxt == self.config.total_bytes && self.config.fin_on_data {
            packet.segment.flags |= FIN;
            self.nxt += 1;
        }
        self.timing.get_or_insert((self.nxt, now_us));
        self.out.push(packet);
        true
    }

    pub fn timer(&mut self, now_us: u64) {
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now_us);
        if is_due(self.ack_at) {
            self.send_ack(now_us, None);
        }
        if self.written < self.config.total_bytes
            && self.write_at <= now_us
            && self.stage == Stage::Established
        {
            self.written = (self.written + self.config.burst_bytes).min(self.config.total_bytes);
            self.write_at = now_us + self.config.pause_us;
        } else if self.write_at <= now_us {
            self.write_at = now_us + 10_000;
        }
        if self.read_changes_at <= now_us {
            self.change_reading(now_us);
        }
        if is_due(self.probe_at) {
            self.probe_at = None;
            if self.nxt > self.una && self.repair == Repair::None {
                let from = (self.nxt - self.mss_bytes).max(self.una);
                let resend_next = self.resend_next;
                self.resend(now_us, from);
                self.resend_next = resend_next;
            }
        }
        if is_due(self.rto_at) {
            self.rto_at = None;
            self.timed_out(now_us);
        }
        self.transmit(now_us);
    }

    fn change_reading(&mut self, now_us: u64) {
        let (reads_us, stalls_us) = self.config.reading_us;
        let stalls = self.reading && stalls_us > 0;
        self.read_changes_at = now_us + if stalls { stalls_us } else { reads_us };
        let was_stalled = !self.reading;
        self.reading = !stalls;
        if self.config.shrinks {
            self.shrink_bytes = if stalls { self.config.capacity_bytes / 2 } else { 0 };
        }
        if was_stalled && self.stage == Stage::Established {
            let freed_bytes = std::mem::take(&mut self.unread_bytes);
            if freed_bytes > 0 || self.config.shrinks {
                self.send_ack(now_us, None);
            }
        }
    }

    fn timed_out(&mut self, now_us: u64) {
        self.backoff = (self.backoff + 1).min(5);
        match self.stage {
            Stage::SynSent | Stage::SynReceived => self.send_syn(now_us),
            Stage::Established if self.nxt > self.una => {
                self.ssthresh_bytes = ((self.nxt - self.una) / 2).max(2 * self.mss_bytes);
                self.cwnd_bytes = self.mss_bytes;
                self.repair = Repair::Timeout;
                self.recover = self.nxt;
                self.dupacks = 0;
                self.sacked.clear();
                self.resend(now_us, self.una);
            }
            Stage::Established if self.nxt < self.written => {
                let mut probe = self.header(now_us);
                probe.segment.seq = self.wire_seq(self.una - 1);
                self.out.push(probe);
            }
            _ => {}
        }
    }
}
