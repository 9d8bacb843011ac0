use std::collections::{BTreeSet, VecDeque};

/// How the peer reports marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reporting {
    /// ECE until CWR (RFC 3168, 6.1.3).
    ClassicEcho,
    /// ECE on exactly the ACKs of marked data (RFC 8257, 3.2).
    DctcpEcho,
    /// The counters of a vcc far end.
    Reports,
}

#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub segment: u64,
    pub marked: bool,
    pub cwr: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Everything before this segment has arrived.
    pub up_to: u64,
    pub ece: bool,
    /// Segments received, unmarked and marked.
    pub counted: [u64; 2],
}

/// A path that keeps its order, and the receiver at its end.
pub struct Peer {
    reporting: Reporting,
    pub path: VecDeque<Packet>,
    next: u64,
    beyond: BTreeSet<u64>,
    latched: bool,
    last_marked: bool,
    counted: [u64; 2],
    unacked: u64,
}

impl Peer {
    pub fn new(reporting: Reporting) -> Self {
        Peer {
            reporting,
            path: VecDeque::new(),
            next: 0,
            beyond: BTreeSet::new(),
            latched: false,
            last_marked: false,
            counted: [0, 0],
            unacked: 0,
        }
    }

    /// The ACKs of the next `packets` packets, in order: one of `every` segments in order, and at
    /// once where there is a hole or a DCTCP receiver sees a change.
    pub fn receive(&mut self, packets: usize, every: u64) -> Vec<Ack> {
        let mut acks = Vec::new();
        for _ in 0..packets.min(self.path.len()) {
            let packet = self.path.pop_front().unwrap();
            if self.reporting == Reporting::DctcpEcho && packet.marked != self.last_marked {
                acks.extend(self.flush());
            }
            self.last_marked = packet.marked;
            self.latched = packet.marked || (self.latched && !packet.cwr);
            self.counted[usize::from(packet.marked)] += 1;
            let hole = !self.beyond.is_empty();
            if packet.segment != self.next {
                if packet.segment > self.next {
                    self.beyond.insert(packet.segment);
                }
                acks.extend(self.flush());
                acks.push(self.ack());
                continue;
            }
            self.next += 1;
            while self.beyond.remove(&self.next) {
                self.next += 1;
            }
            self.unacked += 1;
            if hole || self.unacked >= every {
                acks.extend(self.flush());
            }
        }
        acks
    }

    /// A delayed ACK, if one is due.
    pub fn flush(&mut self) -> Option<Ack> {
        (std::mem::take(&mut self.unacked) > 0).then(|| self.ack())
    }

    fn ack(&self) -> Ack {
        let ece = match self.reporting {
            Reporting::ClassicEcho => self.latched,
            Reporting::DctcpEcho => self.last_marked,
            Reporting::Reports => false,
        };
        Ack { up_to: self.next, ece, counted: self.counted }
    }
}
