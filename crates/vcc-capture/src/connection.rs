//! A connection of a capture: its last state, and what it did before.

use vcc_engine::{FlowKey, FlowState, Stage};
use vcc_net::seq::advance;

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
    /// Of these, the part that left beyond the underlay's congestion window.
    pub beyond_bytes: u64,
    /// The time during which more was in flight than that window.
    pub beyond_ns: u64,
}

/// A connection with its last state.
#[derive(Clone)]
pub struct Connection {
    /// The index in [`crate::Replayed::places`].
    pub place: usize,
    pub key: FlowKey,
    pub state: FlowState,
    pub life: Life,
    /// When this state was current, on the clock of the state's own times.
    pub at_us: u64,
}

/// A connection that is watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    life: Life,
    /// Of its last segment.
    seen_ns: u64,
    is_beyond: bool,
}

impl Track {
    pub(crate) fn begin(now_ns: u64) -> Self {
        let life = Life { began_ns: now_ns, ..Life::default() };
        Self { life, seen_ns: now_ns, is_beyond: false }
    }

    /// A segment has changed the connection's state from `before`.
    pub(crate) fn note(&mut self, now_ns: u64, before: &FlowState, after: &FlowState) {
        let life = &mut self.life;
        if self.is_beyond {
            life.beyond_ns += now_ns - self.seen_ns;
        }
        self.seen_ns = now_ns;
        life.lasted_ns = now_ns - life.began_ns;
        self.is_beyond = false;
        if before.stage() < Stage::Established || after.stage() < Stage::Established {
            return;
        }
        life.acked_bytes += u64::from(advance(before.snd_una, after.snd_una));
        let sent_bytes = advance(before.snd_nxt, after.snd_nxt);
        life.sent_bytes += u64::from(sent_bytes);
        let Some(window_bytes) = after.cwnd_bytes() else { return };
        let excess_bytes = u64::from(after.flight_bytes()).saturating_sub(window_bytes);
        life.beyond_bytes += excess_bytes.min(sent_bytes.into());
        self.is_beyond = excess_bytes > 0;
    }

    /// With its beginning since `start_ns`.
    pub(crate) fn life(&self, start_ns: u64) -> Life {
        Life { began_ns: self.life.began_ns.saturating_sub(start_ns), ..self.life }
    }
}

#[cfg(test)]
mod tests {
    use vcc_engine::{Underlay, sys};

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

    #[test]
    fn bytes_and_time_beyond_the_window() {
        let start = u32::MAX - 499;
        let at = |una: u32, nxt: u32, cwnd_segs| {
            state(start.wrapping_add(una), start.wrapping_add(nxt), cwnd_segs)
        };
        let mut track = Track::begin(5);
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
            track.note(now_ns, &before, &after);
            let life = track.life(0);
            assert_eq!((life.beyond_bytes, life.beyond_ns), (beyond_bytes, beyond_ns), "{now_ns}");
            before = after;
        }
        let life = track.life(4);
        assert_eq!((life.began_ns, life.lasted_ns), (1, 65));
        assert_eq!((life.sent_bytes, life.acked_bytes), (3500, 3500));
    }
}
