//! What a dishonest peer does next.

use vcc_frames::wire::*;
use vcc_net::random::SplitMix64;

use crate::option::TcpOption;
use crate::segment::Segment;

/// What the peer knows of the connection, in numbers relative to the initial ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// The guest has acknowledged this, and offers a window up to the edge.
    pub rcv_nxt: i64,
    pub rcv_edge: i64,
    /// The guest has sent this, of which the peer has acknowledged the first.
    pub snd_una: i64,
    pub snd_nxt: i64,
    pub has_timestamps: bool,
    /// The last timestamp that the guest may have taken.
    pub recent: u32,
    /// Whether the peer sends timestamps of the past.
    pub is_stale: bool,
}

#[derive(Clone, Debug)]
pub enum Step {
    Peer(Segment),
    Send { bytes: usize },
    Read,
    ShutDown,
}

/// Its choices follow from the seed, and from what the guest did.
pub struct Generator(SplitMix64);

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.0.next_u64() % most
    }

    pub fn number(&mut self) -> u32 {
        self.0.next_u32()
    }

    pub fn is_one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub fn any<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    pub fn step(&mut self, view: &View) -> Step {
        match self.below(100) {
            0..14 => Step::Send { bytes: 1 + self.below(3000) as usize },
            14..20 => Step::Read,
            20 => Step::ShutDown,
            21..52 => Step::Peer(self.honest(view)),
            _ => Step::Peer(self.dishonest(view)),
        }
    }

    /// What an honest peer could send.
    fn honest(&mut self, view: &View) -> Segment {
        let room = (view.rcv_edge - view.rcv_nxt).clamp(0, 1400) as u64;
        let is_data = room > 0 && !self.is_one_in(3);
        let in_flight = (view.snd_nxt - view.snd_una).max(0) as u64;
        let flags = match self.below(30) {
            0 => ACK | FIN,
            1..10 => ACK,
            _ => ACK | PSH,
        };
        let acked =
            if self.is_one_in(4) { self.below(in_flight + 1) as i64 } else { in_flight as i64 };
        Segment {
            mark: Some(self.any(&[0, 0, ECT_0, CE])),
            flags,
            seq: view.rcv_nxt,
            bytes: if is_data { 1 + self.below(room) as u32 } else { 0 },
            ack: Some(view.snd_una + acked),
            window: Some(self.any(&[65535, 20000, 20000, 500, 0])),
            options: view.has_timestamps.then(|| vec![stamp(view.recent.wrapping_add(1))]),
            ..Segment::default()
        }
    }

    /// What no honest peer sends, or not now.
    fn dishonest(&mut self, view: &View) -> Segment {
        let mut flags = self.any(&[
            ACK,
            ACK,
            ACK | PSH,
            ACK | PSH,
            ACK | PSH,
            ACK | FIN,
            ACK | URG,
            ACK | ECE,
            ACK | CWR | PSH,
            RST,
            RST | ACK,
            SYN,
            SYN,
            SYN | ACK,
            SYN | ECE | CWR,
            SYN | RST,
            SYN | FIN,
            FIN,
            0,
            ALL_FLAGS,
        ]);
        let near = self.below(4000) as i64 - 2000;
        let far = i64::from(self.number() as i32);
        let mut seq = self.any(&[
            view.rcv_nxt,
            view.rcv_nxt,
            view.rcv_nxt + near,
            view.rcv_nxt + near.abs(),
            view.rcv_nxt - 1,
            view.rcv_nxt + 1,
            view.rcv_edge,
            view.rcv_edge - 1,
            view.rcv_edge + 1,
            view.rcv_nxt - 70_000,
            far,
        ]);
        // The only one that would end the connection.
        if flags & RST != 0 && flags & SYN == 0 && seq == view.rcv_nxt && !self.is_one_in(4) {
            seq += 1;
        }
        let bytes = self.any(&[0, 0, 1, 100, 536, 1400]);
        let mut ack = self.any(&[
            view.snd_nxt,
            view.snd_nxt,
            view.snd_nxt,
            view.snd_una,
            view.snd_una,
            view.snd_nxt + 1,
            view.snd_una - 1,
            view.snd_nxt + 100_000,
            view.snd_una - 100_000,
            far,
        ]);
        if ack == 0 {
            // The guest's own SYN: whether that is too old depends on who opened.
            ack = 1;
        }
        let is_beyond = seq + i64::from(bytes) > view.rcv_edge;
        if is_beyond && flags & (SYN | RST) == 0 {
            // Kernels do not agree about the edge, so nothing new is sent there.
            flags &= !FIN;
            ack = view.snd_una;
        }
        Segment {
            mark: Some(self.any(&[0, ECT_0, ECT_1, CE])),
            flags,
            seq,
            bytes: if flags & (RST | SYN) == 0 { bytes } else { 0 },
            ack: (flags & ACK != 0).then_some(ack),
            window: Some(self.any(&[65535, 20000, 1, 0])),
            urgent: (flags & URG != 0).then(|| self.number() as u16),
            options: Some(self.options(flags, view)),
            ..Segment::default()
        }
    }

    fn options(&mut self, flags: u16, view: &View) -> Vec<TcpOption> {
        let mut options = Vec::new();
        if flags & SYN != 0 {
            options.push(TcpOption::Mss(Some(self.any(&[1, 536, 1460, 9000]))));
            options.push(TcpOption::WindowScale(Some(self.any(&[0, 3, 14, 200]))));
        }
        if view.has_timestamps {
            let time = view.recent;
            let times = [0, 1, 1, 1 << 30, u32::MAX, 0_u32.wrapping_sub(100_000), 1 << 31];
            let times = if view.is_stale { &times[..] } else { &times[..4] };
            if !self.is_one_in(8) {
                options.push(stamp(time.wrapping_add(self.any(times))));
            }
        }
        options
    }
}

pub fn stamp(value: u32) -> TcpOption {
    TcpOption::Timestamps { value: Some(value), echo: None }
}
