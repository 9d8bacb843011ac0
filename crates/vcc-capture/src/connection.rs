//! A connection of a capture: its last state, and what it did before.

use vcc_engine::{FlowKey, FlowState, Limit, Params, Stage, sys};
use vcc_net::seq::{self, advance};

use crate::handshake::Handshake;
use crate::holes::Holes;
use crate::segment::Segment;
use crate::stall::Stalls;
use crate::syn::Syn;

const NS_PER_US: u64 = 1000;

/// What a connection did while it was watched. A FIN counts as a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Since the capture's start.
    pub began_ns: u64,
    pub lasted_ns: u64,
    /// By the peer.
    pub acked_bytes: u64,
    /// By the guest, retransmissions aside.
    pub sent_bytes: u64,
    /// Of these, the part that was lost between the guest and the capture, and sent again.
    pub lost_upstream_bytes: u64,
    /// Of these, the part that came behind later bytes, too soon to be a retransmission.
    pub reordered_bytes: u64,
    /// Of these, the part that the capture has lost: the peer has it.
    pub missing_bytes: u64,
    /// The same of what the peer sent: the guest has it.
    pub peer_missing_bytes: u64,
    /// Of these, the part that left beyond the underlay's congestion window.
    pub beyond_bytes: u64,
    /// The time during which more was in flight than that window.
    pub beyond_ns: u64,
    /// The time during which each limit held, in the order of [`Limit::NAMES`].
    pub limited_ns: [u64; LIMITS],
    pub handshake: Handshake,
    /// What the last SYN or SYN-ACK of each has offered.
    pub guest_syn: Option<Syn>,
    pub peer_syn: Option<Syn>,
    pub stalls: Stalls,
    /// How often fast recovery began, and how often the guest's timer went off.
    pub recoveries: u32,
    pub timeouts: u32,
    /// The capture does not have its SYN.
    pub is_joined: bool,
}

pub const LIMITS: usize = Limit::NAMES.len();

/// A connection with its last state.
#[derive(Clone)]
pub struct Connection {
    /// The index in [`crate::Replayed::places`].
    pub place: usize,
    /// The guest is the other end than that of the connection's first view ([`crate::Replay::each_end`]).
    pub is_turned: bool,
    pub key: FlowKey,
    /// Without windows, if its scales are unknown.
    pub state: FlowState,
    pub life: Life,
    /// When this state was current, on the clock of the state's own times.
    pub at_us: u64,
}

/// A segment that passes a port.
pub(crate) struct Passing<'a> {
    pub now_ns: u64,
    pub segment: &'a Segment,
    /// Of a SYN or SYN-ACK.
    pub syn: Option<Syn>,
    pub from_guest: bool,
    /// The connection's state before it and behind it.
    pub before: &'a FlowState,
    pub after: &'a FlowState,
}

/// A connection that is watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    life: Life,
    /// Of its last segment.
    seen_ns: u64,
    is_beyond: bool,
    holes: Holes,
    peer_holes: Holes,
    /// What an end had sent before its first captured segment is unknown.
    awaits_guest: bool,
    awaits_peer: bool,
    hears_peer: bool,
}

impl Track {
    pub(crate) fn begin(now_ns: u64, is_joined: bool) -> Self {
        let life = Life { began_ns: now_ns, is_joined, ..Life::default() };
        let (awaits_guest, awaits_peer) = (is_joined, is_joined);
        Self { life, seen_ns: now_ns, awaits_guest, awaits_peer, ..Self::default() }
    }

    pub(crate) fn note(&mut self, params: &Params, passing: &Passing) {
        let &Passing { now_ns, segment, syn, from_guest, before, after } = passing;
        let life = &mut self.life;
        let silence_ns = now_ns - self.seen_ns;
        if self.is_beyond {
            life.beyond_ns += silence_ns;
        }
        if silence_ns > 0 {
            let limit = before.limited_by(params, None, now_ns / NS_PER_US);
            life.limited_ns[index(limit)] += silence_ns;
            // Without the peer's segments, all is silence.
            if self.hears_peer {
                life.stalls.note((self.seen_ns, now_ns), before, segment, from_guest);
            }
        }
        self.hears_peer |= !from_guest;
        life.handshake.note(now_ns, segment, from_guest);
        if syn.is_some() {
            *(if from_guest { &mut life.guest_syn } else { &mut life.peer_syn }) = syn;
        }
        let begins = |state: u32| {
            u32::from(u32::from(after.ca_state) == state && before.ca_state != after.ca_state)
        };
        life.recoveries += begins(sys::CA_RECOVERY);
        let is_again = after.rto_backoff > before.rto_backoff;
        life.timeouts += begins(sys::CA_LOSS) | u32::from(is_again);
        self.seen_ns = now_ns;
        life.lasted_ns = now_ns - life.began_ns;
        self.is_beyond = false;
        if before.stage() < Stage::Established || after.stage() < Stage::Established {
            return;
        }
        if self.awaits_peer {
            self.awaits_peer = from_guest || segment.payload_bytes == 0;
        } else {
            note_peer(&mut self.peer_holes, passing);
        }
        life.acked_bytes += u64::from(advance(before.snd_una, after.snd_una));
        let mut sent_bytes = advance(before.snd_nxt, after.snd_nxt);
        if self.awaits_guest {
            self.awaits_guest = !(from_guest && segment.payload_bytes > 0);
            sent_bytes = if self.awaits_guest { 0 } else { segment.payload_bytes.min(sent_bytes) };
        } else if !from_guest {
            self.holes.note_acked(after.snd_una, sent_bytes);
        } else if segment.has(sys::TCP_SYN) {
            // Of a later connection, or repeated.
        } else if segment.seq != segment.end() {
            let rtt_ns = u64::from(before.srtt_us().unwrap_or(0)) * NS_PER_US;
            self.holes.note_sent(now_ns, rtt_ns, before.snd_nxt, (segment.seq, segment.end()));
        }
        life.sent_bytes += u64::from(sent_bytes);
        let Some(window_bytes) = after.cwnd_bytes() else { return };
        let excess_bytes = u64::from(after.flight_bytes()).saturating_sub(window_bytes);
        life.beyond_bytes += excess_bytes.min(sent_bytes.into());
        self.is_beyond = excess_bytes > 0;
    }

    /// On the port's clock.
    pub(crate) fn began_ns(&self) -> u64 {
        self.life.began_ns
    }

    pub(crate) fn is_joined(&self) -> bool {
        self.life.is_joined
    }

    /// With times since `start_ns`.
    pub(crate) fn life(&self, start_ns: u64) -> Life {
        let mut life = self.life;
        life.lost_upstream_bytes = self.holes.lost_upstream_bytes;
        life.missing_bytes = self.holes.missing_bytes;
        life.peer_missing_bytes = self.peer_holes.missing_bytes;
        life.reordered_bytes = self.holes.reordered_bytes;
        life.began_ns = life.began_ns.saturating_sub(start_ns);
        if let Some(stall) = &mut life.stalls.longest {
            stall.began_ns = stall.began_ns.saturating_sub(start_ns);
        }
        life
    }
}

/// The peer's bytes, and the guest's acknowledgements of them.
fn note_peer(holes: &mut Holes, passing: &Passing) {
    let &Passing { now_ns, segment, from_guest, before, after, .. } = passing;
    // The first acknowledgement is the base of all others.
    if before.settled == 0 {
        return;
    }
    if from_guest {
        holes.note_acked(after.rcv_wup, advance(before.rcv_max, after.rcv_max));
    } else if segment.seq != segment.end() && !seq::after(segment.end(), after.rcv_max) {
        // What the guest would discard has not moved `rcv_max`.
        holes.note_sent(now_ns, 0, before.rcv_max, (segment.seq, segment.end()));
    }
}

/// In [`Limit::NAMES`].
fn index(limit: Limit) -> usize {
    Limit::NAMES.iter().position(|name| *name == limit.name()).expect("each limit has its name")
}

#[cfg(test)]
mod tests {
    use vcc_engine::Underlay;

    use super::*;

    fn state(snd_una: u32, snd_nxt: u32, cwnd_segs: u32) -> FlowState {
        FlowState(sys::vcc_flow {
            stage: sys::STAGE_ESTABLISHED as u8,
            underlay: Underlay::default().number(),
            snd_una,
            snd_nxt,
            mss_bytes: 1000,
            cc: sys::vcc_cc_state { cwnd_segs, ..Default::default() },
            ..Default::default()
        })
    }

    /// A segment of the guest whose payload begins here.
    fn segment(seq: u32) -> Segment {
        let end = std::net::SocketAddr::from(([10, 0, 0, 1], 1));
        let (vlan, ack, payload_bytes, ip_ecn, macs) = Default::default();
        let flags = sys::TCP_ACK;
        Segment { from: end, to: end, vlan, seq, ack, flags, payload_bytes, ip_ecn, macs }
    }

    fn note(track: &mut Track, now_ns: u64, before: &FlowState, after: &FlowState) {
        let segment = segment(before.snd_nxt);
        let passing =
            Passing { now_ns, segment: &segment, syn: None, from_guest: true, before, after };
        track.note(&Params::default(), &passing);
    }

    #[test]
    fn the_time_of_each_limit() {
        let mut track = Track::begin(0, false);
        let mut before = state(0, 0, 2);
        for (now_ns, ca_state) in
            [(10, sys::CA_OPEN), (30, sys::CA_LOSS), (70, sys::CA_RECOVERY), (71, 0)]
        {
            let mut after = before;
            after.0.snd_nxt += 1;
            after.0.ca_state = ca_state as u8;
            note(&mut track, now_ns, &before, &after);
            before = after;
        }
        let limits = Limit::NAMES.iter().zip(track.life.limited_ns);
        let held: Vec<_> =
            limits.filter(|(_, time_ns)| *time_ns > 0).map(|(name, ns)| (*name, ns)).collect();
        assert_eq!(held, [("loss", 41), ("guest", 30)]);
    }

    #[test]
    fn bytes_and_time_beyond_the_window() {
        let start = u32::MAX - 499;
        let at = |una: u32, nxt: u32, cwnd_segs| {
            state(start.wrapping_add(una), start.wrapping_add(nxt), cwnd_segs)
        };
        let mut track = Track::begin(5, false);
        let mut before = FlowState::default();
        for (now_ns, after, beyond_bytes, beyond_ns) in [
            (5, at(0, 0, 2), 0, 0),
            (10, at(0, 1500, 2), 0, 0),
            (20, at(0, 2500, 2), 500, 0),
            (30, at(0, 3500, 2), 1500, 10),
            (40, at(2000, 3500, 2), 1500, 20),
            // A reduction alone sends nothing.
            (50, at(2000, 3500, 1), 1500, 20),
            (60, at(3500, 3500, 1), 1500, 30),
            (70, at(3500, 3500, 1), 1500, 30),
        ] {
            note(&mut track, now_ns, &before, &after);
            let life = track.life(0);
            assert_eq!((life.beyond_bytes, life.beyond_ns), (beyond_bytes, beyond_ns), "{now_ns}");
            before = after;
        }
        let life = track.life(4);
        assert_eq!((life.began_ns, life.lasted_ns), (1, 65));
        assert_eq!((life.sent_bytes, life.acked_bytes), (3500, 3500));
    }
}
