use vcc_engine::{Action, FlowState, Params, sys};

use super::{Seg, linux_syn, seg};

pub const PEER_ISS: u32 = 0xffff_fff0;
/// The peer's window field unless a test says otherwise: 2 MB at its scale.
pub const PEER_WINDOW: u16 = 2048;
pub const PEER_WSCALE: u8 = 10;
/// Free option space in a SYN with Linux's options.
pub const ROOM_BYTES: u8 = 20;

/// A connection as seen from its port, with a clock. Data is addressed by offsets from the first
/// byte of each side.
#[derive(Clone)]
pub struct Conn {
    pub params: Params,
    pub flow: FlowState,
    pub now_us: u64,
    /// Of the kernel's clock of ticks; 0: all segments get the exact time.
    pub tick_us: u64,
    pub guest_iss: u32,
}

impl Conn {
    /// Before the first SYN.
    pub fn new(params: Params, guest_iss: u32) -> Self {
        // Shortly before the 32-bit microsecond clock wraps.
        Conn {
            params,
            flow: FlowState::default(),
            now_us: u64::from(u32::MAX) - 50_000,
            tick_us: 0,
            guest_iss,
        }
    }

    /// Between two Linux hosts; the guest opens, the peer accepts ECN if requested.
    pub fn established(params: Params, guest_iss: u32) -> Self {
        Self::opened(params, guest_iss, linux_syn(), linux_syn())
    }

    /// Active open: the guest sends `syn`; the peer answers with the options of `answer`.
    pub fn opened(params: Params, guest_iss: u32, syn: Seg, answer: Seg) -> Self {
        let mut conn = Self::new(params, guest_iss);
        let sent = conn.guest_syn(syn);
        let asked = u32::from(sent.flags) & (sys::TCP_ECE | sys::TCP_CWR) != 0;
        conn.peer_synack(if asked { answer.ece() } else { answer });
        conn.guest_acks(0);
        conn
    }

    /// As if SACK had not been negotiated: ACKs count as duplicates by RFC 5681.
    pub fn without_sack(mut self) -> Self {
        self.flow.0.flags &= !sys::FLOW_SACK;
        self
    }

    /// Passive open: the peer sends `syn`; the guest answers with the options of `answer`.
    pub fn accepted(params: Params, guest_iss: u32, syn: Seg, answer: Seg) -> Self {
        let mut conn = Self::new(params, guest_iss);
        conn.peer_syn(syn);
        conn.guest_synack(answer);
        conn.peer_ack(0);
        conn
    }

    /// Active open; the far end is under vcc too.
    pub fn to_vcc(params: Params, guest_iss: u32) -> Self {
        let answer = linux_syn().accept();
        let conn = Self::opened(params, guest_iss, linux_syn().room(ROOM_BYTES), answer);
        assert!(conn.flow.has(sys::FLOW_FEEDBACK));
        conn
    }

    /// Active open; the peer has AccECN, and has seen the SYN as vcc sends it (RFC 9768, table 2).
    pub fn to_accecn(params: Params, guest_iss: u32) -> Self {
        let mut conn = Self::new(params, guest_iss);
        conn.guest_syn(linux_syn());
        conn.peer_synack(linux_syn().ace(2));
        conn.guest_acks(0);
        assert_ne!(conn.flow.accecn, 0);
        conn
    }

    /// Passive open; the far end is under vcc too.
    pub fn from_vcc(params: Params, guest_iss: u32) -> Self {
        let syn = linux_syn().asking_ecn().offer();
        let conn = Self::accepted(params, guest_iss, syn, linux_syn().room(ROOM_BYTES));
        assert!(conn.flow.has(sys::FLOW_FEEDBACK));
        conn
    }

    /// With the time that the datapath gives it (datapath/fast_path.h).
    pub fn stamp(&self, segment: Seg, to_guest: bool) -> Seg {
        let exact = segment.at_us(self.now_us);
        if self.tick_us == 0 {
            return exact;
        }
        let mut at_tick = segment.at_us(self.now_us - self.now_us % self.tick_us);
        at_tick.0.at_tick = 1;
        let bears_it = self.flow.is_expected(&self.params, &at_tick.0, to_guest)
            && !self.flow.needs_time(&self.params, &at_tick.0, to_guest);
        if bears_it { at_tick } else { exact }
    }

    /// Passes a segment from the guest through the port.
    pub fn guest_sends(&mut self, segment: Seg) -> Action {
        self.flow.from_guest(&self.params, &self.stamp(segment, false).0)
    }

    /// Passes a segment to the guest through the port.
    pub fn guest_gets(&mut self, segment: Seg) -> Action {
        self.flow.to_guest(&self.params, &self.stamp(segment, true).0)
    }

    pub fn deadline(&mut self) -> Action {
        self.flow.deadline(&self.params, self.now_us, false)
    }

    pub fn wait_us(&mut self, us: u64) -> &mut Self {
        self.now_us += us;
        self
    }

    pub fn guest_syn(&mut self, syn: Seg) -> Action {
        self.guest_sends(syn.seq(self.guest_iss))
    }

    pub fn peer_syn(&mut self, syn: Seg) -> Action {
        self.guest_gets(syn.seq(PEER_ISS))
    }

    pub fn guest_synack(&mut self, answer: Seg) -> Action {
        self.guest_sends(answer.seq(self.guest_iss).ack(PEER_ISS.wrapping_add(1)))
    }

    pub fn peer_synack(&mut self, answer: Seg) -> Action {
        self.guest_gets(answer.seq(PEER_ISS).ack(self.seq(0)))
    }

    /// The sequence number of the guest's byte at `offset`.
    pub fn seq(&self, offset: u32) -> u32 {
        self.guest_iss.wrapping_add(1).wrapping_add(offset)
    }

    /// The sequence number of the peer's byte at `offset`.
    pub fn peer_seq(&self, offset: u32) -> u32 {
        PEER_ISS.wrapping_add(1).wrapping_add(offset)
    }

    /// A data segment of the guest, to be modified and sent.
    pub fn data(&self, offset: u32, payload_bytes: u32) -> Seg {
        seg().seq(self.seq(offset)).ack(self.peer_seq(0)).len(payload_bytes).win(500)
    }

    /// A pure ACK of the guest.
    pub fn guest_acks(&mut self, offset: u32) -> Action {
        self.guest_sends(seg().seq(self.flow.snd_nxt).ack(self.peer_seq(offset)).win(500))
    }

    /// A pure ACK of the peer for everything before `offset`, to be modified and sent.
    pub fn ack(&self, offset: u32) -> Seg {
        seg().seq(self.peer_seq(0)).ack(self.seq(offset)).win(PEER_WINDOW)
    }

    pub fn send(&mut self, offset: u32, payload_bytes: u32) -> Action {
        self.guest_sends(self.data(offset, payload_bytes))
    }

    /// The guest sends its full segments number `from` to `to - 1`.
    pub fn send_segs(&mut self, from: u32, to: u32) {
        let mss_bytes = self.mss();
        for number in from..to {
            self.send(number.wrapping_mul(mss_bytes), mss_bytes);
        }
    }

    pub fn peer_ack(&mut self, offset: u32) -> Action {
        self.guest_gets(self.ack(offset))
    }

    /// The peer acknowledges the guest's first `segs` segments.
    pub fn peer_ack_segs(&mut self, segs: u32) -> Action {
        self.peer_ack(segs.wrapping_mul(self.mss()))
    }

    pub fn mss(&self) -> u32 {
        u32::from(self.flow.mss_bytes)
    }

    pub fn cwnd(&self) -> u32 {
        self.flow.cc.cwnd_segs
    }

    /// The window in `action` in bytes, at the scale shown to the guest.
    pub fn shown_bytes(&self, action: &Action) -> u32 {
        u32::from(action.window) << self.flow.wscale_shown
    }

    /// The right edge that `action` shows, from the guest's first byte.
    pub fn shown_edge(&self, ack_offset: u32, action: &Action) -> u32 {
        ack_offset + self.shown_bytes(action)
    }
}
