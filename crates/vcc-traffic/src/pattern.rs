//! Traffic patterns.

use crate::sizes::Trace;
use serde::{Deserialize, Serialize};
use std::iter::successors;
use std::num::{NonZeroU32, NonZeroU64};
use vcc_net::random::SplitMix64;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Sends as much as it can.
    #[default]
    Bulk,
    /// Sends a small message, waits for its echo, and so on.
    PingPong,
    /// Sends the messages of a worker over one connection.
    Messages(Messages),
    /// Sends nothing on its connection.
    Idle,
    /// Sends transfers one after the other, each over a connection of its own.
    Transfers(Transfers),
    /// Asks for one response at a time, of a client or of a server that has to ask others.
    Requests(Requests),
}

/// The messages of a worker over all of its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    pub size: Size,
    #[serde(default)]
    pub order: Order,
    pub pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    Bytes(NonZeroU64),
    Trace(Trace),
}

/// Which flow of a worker sends its next message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Round robin.
    #[default]
    InTurn,
    /// A random flow for each message.
    Random,
    /// Each flow once in random order, then again in another order.
    Shuffled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// One message per interval, whether or not earlier ones were answered.
    EveryMs(NonZeroU32),
    /// This many unanswered messages at a time: an answer triggers the next one.
    AtOnce(NonZeroU32),
}

/// A transfer begins when the receiver has closed the connection of the previous one, and not
/// before its time if `every_ms` is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// The size of each transfer.
    pub bytes: NonZeroU64,
    pub count: NonZeroU32,
    /// The mean interval between their starts, which is randomised by half of it either way.
    #[serde(default)]
    pub every_ms: Option<NonZeroU32>,
    #[serde(default)]
    pub until: Until,
}

/// The end of a transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// The receiver has the last byte.
    #[default]
    Received,
    /// The sender has the last byte's acknowledgement.
    Acknowledged,
    /// Its connection has ended, in order or by a RST, which is no error of the run; each end notes
    /// which.
    Ended,
}

/// The connection of one request after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    #[serde(default)]
    pub connections: Connections,
    /// Of a client: the mean of the exponentially distributed times between a response and the next
    /// request.
    #[serde(default)]
    pub think_ms: u32,
    /// Of a client: it asks over all of its flows at once, and again when all have answered.
    #[serde(default)]
    pub strobe: bool,
    /// A request that has waited longer for its response is an error of the run.
    #[serde(default = "usual_timeout")]
    pub timeout_ms: NonZeroU32,
}

fn usual_timeout() -> NonZeroU32 {
    const { NonZeroU32::new(20_000).unwrap() }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// One for all requests.
    #[default]
    Persistent,
    /// One for each request, which the server closes after its response.
    New,
}

impl Pattern {
    /// Whether the flow has many connections, from ports that the kernel chooses.
    pub fn has_many_connections(&self) -> bool {
        match self {
            Self::Transfers(_) => true,
            Self::Requests(requests) => requests.connections == Connections::New,
            Self::Bulk | Self::PingPong | Self::Messages(_) | Self::Idle => false,
        }
    }
}

impl Transfers {
    /// Whether a connection may end before its transfer.
    pub fn may_be_reset(self) -> bool {
        self.until == Until::Ended
    }

    /// The start times of all but the first, if `every_ms` is set.
    pub fn later_ns(self, first_ns: u64, seed: u64) -> impl Iterator<Item = u64> {
        let every_ns = self.every_ms.map(|ms| u64::from(ms.get()) * 1_000_000);
        let mut random = SplitMix64::new(seed);
        let next = move |at_ns: &u64| Some(at_ns + random.around(every_ns?));
        successors(Some(first_ns), next).take(self.count.get() as usize).skip(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_begin_about_as_far_apart_as_they_are_to() {
        let [bytes, count] = [1, 1000].map(|n| NonZeroU32::new(n).unwrap());
        let mut transfers =
            Transfers { bytes: bytes.into(), count, every_ms: None, until: Until::Received };
        assert_eq!(transfers.later_ns(5, 1).count(), 0);
        transfers.every_ms = NonZeroU32::new(10);
        let at_ns: Vec<u64> = [5].into_iter().chain(transfers.later_ns(5, 1)).collect();
        assert_eq!(at_ns.len(), 1000);
        let apart = at_ns.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(apart.clone().all(|ns| (5_000_000..15_000_000).contains(&ns)));
        let mean_ns = apart.sum::<u64>() / 999;
        assert!((9_700_000..10_300_000).contains(&mean_ns), "{mean_ns}");
        assert_ne!(at_ns[1], transfers.later_ns(5, 2).next().unwrap());
    }
}
