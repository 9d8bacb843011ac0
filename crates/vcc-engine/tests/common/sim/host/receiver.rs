//! A host's receiver: reassembly, delayed ACKs, classic ECN echo, and an application that reads.

use vcc_engine::{Segment, sys};

use super::super::ranges::Ranges;
use super::{AE, CWR, ECE, FIN, Host, HostConfig, PSH, Stage};

const DELAYED_ACK_US: u64 = 40_000;

pub struct Receiver {
    pub rcv_nxt: i64,
    out_of_order: Ranges,
    unread_bytes: i64,
    pub(super) rcv_edge: i64,
    /// Its last acknowledgement, and the highest right edge that it has shown.
    pub(super) rcv_wup: i64,
    pub(super) furthest_edge: i64,
    pub(super) peer_fin: Option<i64>,
    pub(super) ece_latched: bool,
    pub latches: u32,
    pub releases: u32,
    pub(super) unacked_segs: u32,
    pub(super) ack_at: Option<u64>,
    pub(super) read_changes_at: u64,
    reading: bool,
    shrink_bytes: i64,
    /// ECN that a host without ECN has seen.
    pub leaks: Vec<&'static str>,
}

impl Receiver {
    pub(super) fn new(config: &HostConfig) -> Self {
        Receiver {
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
        }
    }
}

impl Host {
    /// Its last acknowledgement number.
    pub fn acknowledged_number(&self) -> u32 {
        self.negotiated.peer_iss.wrapping_add(1).wrapping_add(self.receiver.rcv_wup as u32)
    }

    pub(super) fn window_bytes(&self) -> i64 {
        (self.config.capacity_bytes - self.receiver.unread_bytes - self.receiver.shrink_bytes)
            .max(0)
    }

    pub(super) fn send_ack(&mut self, now_us: u64, received: Option<i64>) {
        let mut packet = self.header(now_us);
        let block = received.and_then(|offset| self.receiver.out_of_order.around(offset));
        if let (true, Some((start, end))) = (self.negotiated.use_sack, block) {
            let base = self.negotiated.peer_iss.wrapping_add(1);
            packet.sack = (base.wrapping_add(start as u32), base.wrapping_add(end as u32));
            packet.segment.options |= sys::OPT_SACK as u16;
            // The option room is that of a segment with the maximum number of SACK blocks.
            packet.segment.option_room_bytes = 4;
        }
        self.out.push(packet);
    }

    /// Is the segment acceptable (RFC 9293, 3.10.7.4; Linux: tcp_sequence)?
    pub(super) fn accepts(&self, segment: &Segment) -> bool {
        let start = Self::offset(self.negotiated.peer_iss, segment.seq, self.receiver.rcv_nxt);
        let end = start + i64::from(segment.payload_bytes) + i64::from(segment.flags & FIN != 0);
        let ack = Self::offset(self.config.iss, segment.ack, self.sender.una);
        end >= self.receiver.rcv_wup
            && start <= self.receiver.furthest_edge
            && ack <= self.sender.nxt
    }

    /// Records ECN that a host without ECN must not see (law 5).
    pub(super) fn note_leaks(&mut self, segment: &Segment) {
        if segment.flags & (ECE | CWR | AE) != 0 {
            self.receiver.leaks.push("ECN flags");
        }
        if segment.ip_ecn != 0 {
            self.receiver.leaks.push("IP ECN field");
        }
        if segment.options & super::super::OPT_OURS != 0 {
            self.receiver.leaks.push("options of ours");
        }
    }

    pub(super) fn receive_data(&mut self, now_us: u64, segment: &Segment) {
        let payload_bytes = i64::from(segment.payload_bytes);
        let start = Self::offset(self.negotiated.peer_iss, segment.seq, self.receiver.rcv_nxt);
        let mut end = start + payload_bytes;
        if segment.flags & FIN != 0 {
            self.receiver.peer_fin = Some(end);
            end += 1;
        }
        if start == end {
            // A probe below rcv_nxt is answered (RFC 9293, 3.10.7.4).
            if start < self.receiver.rcv_nxt {
                self.send_ack(now_us, None);
            }
            return;
        }
        if self.negotiated.ecn_on {
            if segment.flags & CWR != 0 {
                self.receiver.releases += u32::from(self.receiver.ece_latched);
                self.receiver.ece_latched = false;
            }
            if u32::from(segment.ip_ecn) == sys::IP_ECN_CE && payload_bytes > 0 {
                self.receiver.latches += u32::from(!self.receiver.ece_latched);
                self.receiver.ece_latched = true;
            }
        }
        if end <= self.receiver.rcv_nxt
            || start >= self.receiver.rcv_edge.max(self.receiver.rcv_nxt + 1)
        {
            self.send_ack(now_us, None);
            return;
        }
        self.receiver.out_of_order.insert(start.max(self.receiver.rcv_nxt), end);
        let before = self.receiver.rcv_nxt;
        self.receiver.rcv_nxt = self.receiver.out_of_order.end_from(self.receiver.rcv_nxt);
        self.receiver.out_of_order.trim(self.receiver.rcv_nxt);
        if !self.receiver.reading {
            self.receiver.unread_bytes += self.receiver.rcv_nxt - before;
        }
        let in_order = self.receiver.rcv_nxt > before;
        self.receiver.unacked_segs += 1;
        let at_once = !in_order
            || !self.receiver.out_of_order.is_empty()
            || self.receiver.unacked_segs >= 2
            || segment.flags & (FIN | PSH) != 0;
        if at_once {
            self.send_ack(now_us, (!in_order).then_some(start));
        } else if self.receiver.ack_at.is_none() {
            self.receiver.ack_at = Some(now_us + DELAYED_ACK_US);
        }
    }

    pub(super) fn receiver_timer(&mut self, now_us: u64) {
        if self.receiver.ack_at.is_some_and(|at| at <= now_us) {
            self.send_ack(now_us, None);
        }
        if self.receiver.read_changes_at <= now_us {
            self.change_reading(now_us);
        }
    }

    fn change_reading(&mut self, now_us: u64) {
        let (reads_us, stalls_us) = self.config.reading_us;
        let stalls = self.receiver.reading && stalls_us > 0;
        self.receiver.read_changes_at = now_us + if stalls { stalls_us } else { reads_us };
        let was_stalled = !self.receiver.reading;
        self.receiver.reading = !stalls;
        if self.config.shrinks {
            self.receiver.shrink_bytes = if stalls { self.config.capacity_bytes / 2 } else { 0 };
        }
        if was_stalled && self.stage == Stage::Established {
            let freed_bytes = std::mem::take(&mut self.receiver.unread_bytes);
            if freed_bytes > 0 || self.config.shrinks {
                self.send_ack(now_us, None);
            }
        }
    }
}
