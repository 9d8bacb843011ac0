//! The two parts of a round trip, as the engine saw them (`engine/delay.h`).

use crate::clock::since;
use crate::{FlowState, Params, native, sys};

/// Delays below this are no reason for a slow connection.
const SLOW_US: u32 = 1000;
/// How many times longer than the other part one must be, to be the reason alone.
const ALONE_TIMES: u32 = 3;
/// A delayed ACK is sent within this time (RFC 5681, 4.2).
const DELAYED_ACK_MAX_US: u64 = 500_000;

/// The part of its round trips that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedBy {
    Guest,
    Fabric,
    Both,
    /// Both parts are shorter than a millisecond.
    Neither,
}

impl DelayedBy {
    pub const ALL: [Self; 4] = [Self::Guest, Self::Fabric, Self::Both, Self::Neither];

    pub fn name(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Fabric => "fabric",
            Self::Both => "both",
            Self::Neither => "neither",
        }
    }

    /// By both parts. If only one was measured, it is the reason if it is long; otherwise, and without a
    /// measurement, the reason is unknown.
    pub fn from_delays(guest_us: Option<u32>, fabric_us: Option<u32>) -> Option<Self> {
        let (guest_us, fabric_us) = match (guest_us, fabric_us) {
            (None, None) => return None,
            (Some(only_us), None) | (None, Some(only_us)) if only_us < SLOW_US => return None,
            (guest_us, fabric_us) => (guest_us.unwrap_or(0), fabric_us.unwrap_or(0)),
        };
        let longer =
            |us: u32, other_us: u32| us >= SLOW_US && us >= other_us.saturating_mul(ALONE_TIMES);
        Some(match () {
            () if guest_us.max(fabric_us) < SLOW_US => Self::Neither,
            () if longer(guest_us, fabric_us) => Self::Guest,
            () if longer(fabric_us, guest_us) => Self::Fabric,
            () => Self::Both,
        })
    }
}

impl FlowState {
    /// With the delays as if the guest gave now (`now_us` is of the segments' clock) the answer that
    /// it owes at once. The same if none is, or if so far it owes it for no longer than usual.
    #[must_use]
    pub fn with_open_wait(&self, params: &Params, now_us: u64) -> Self {
        let mut answered = *self;
        let is_ack = match self.asked.into() {
            sys::ASKED_ACK => true,
            sys::ASKED_DATA => false,
            _ => return answered,
        };
        let wait_us = since(self.asked_us, now_us);
        // Of a flow without segments for an hour, only the coarse clock has not wrapped.
        let silent_ms = since(self.last_seen_ms, now_us / 1000);
        let is_measured = params.0.delays != 0
            && u32::from(self.stage) == sys::STAGE_ESTABLISHED
            && self.window_received_bytes() != Some(0)
            && silent_ms <= u64::from(sys::RTT_MAX_US / 1000);
        if is_measured && wait_us > self.guest_delay_us().unwrap_or(0).max(SLOW_US).into() {
            let may_be_delayed = is_ack && wait_us <= DELAYED_ACK_MAX_US;
            // SAFETY: it points to a live value of the C type for the length of the call.
            unsafe { native::guest_answered(&mut answered.0, now_us as u32, may_be_delayed) }
        }
        answered
    }

    /// What the guest takes to answer, in us, weighted by the time that it took.
    pub fn guest_delay_us(&self) -> Option<u32> {
        measured_us(self.guest_us64)
    }

    /// What it took to answer at most, in us.
    pub fn guest_worst_us(&self) -> Option<u32> {
        (self.guest_worst_us != 0).then_some(self.guest_worst_us)
    }

    /// What the fabric and the peer take to answer, in us, weighted by the time that it took.
    pub fn fabric_delay_us(&self) -> Option<u32> {
        measured_us(self.fabric_us64)
    }

    /// What they took at most, in us.
    pub fn fabric_worst_us(&self) -> Option<u32> {
        (self.fabric_worst_us != 0).then_some(self.fabric_worst_us)
    }

    /// What the connection waits for; None without a measurement.
    pub fn delayed_by(&self) -> Option<DelayedBy> {
        DelayedBy::from_delays(self.guest_delay_us(), self.fabric_delay_us())
    }
}

fn measured_us(us64: u32) -> Option<u32> {
    (us64 != 0).then_some(us64 >> sys::DELAY_UNIT_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delayed(guest_us: u32, fabric_us: u32) -> Option<DelayedBy> {
        let (guest_us64, fabric_us64) = (guest_us * 64, fabric_us * 64);
        FlowState(sys::vcc_flow { guest_us64, fabric_us64, ..Default::default() }).delayed_by()
    }

    #[test]
    fn the_longer_part_is_the_reason_if_it_is_long() {
        assert_eq!(delayed(0, 0), None);
        assert_eq!(delayed(900, 900), Some(DelayedBy::Neither));
        assert_eq!((delayed(900, 0), delayed(0, 900)), (None, None));
        assert_eq!(delayed(31_000, 200), Some(DelayedBy::Guest));
        assert_eq!(delayed(31_000, 0), Some(DelayedBy::Guest));
        assert_eq!(delayed(200, 3_000), Some(DelayedBy::Fabric));
        assert_eq!(delayed(0, 80_000), Some(DelayedBy::Fabric));
        assert_eq!(delayed(31_000, 20_000), Some(DelayedBy::Both));
        assert_eq!(delayed(1_100, 900), Some(DelayedBy::Both));
    }
}
