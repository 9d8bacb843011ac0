//! Samples of a flow while it runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The windows of a sender at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the start of the measurement window.
    pub at_us: u64,
    /// Acknowledged bytes of the stream, the SYN included.
    pub acked_bytes: u64,
    pub cwnd_segs: u32,
    /// The peer's window as the guest received it.
    pub snd_wnd_bytes: u32,
    pub mss_bytes: u32,
    /// The smoothed RTT, and the RTO that the guest makes of it (RFC 6298).
    pub srtt_us: u32,
    pub rto_us: u32,
}

impl Sample {
    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.cwnd_segs) * u64::from(self.mss_bytes)
    }

    /// The limit of the flight: the lesser of the two windows.
    pub fn send_window_segs(&self) -> f64 {
        let bytes = self.cwnd_bytes().min(self.snd_wnd_bytes.into());
        bytes as f64 / f64::from(self.mss_bytes)
    }
}

/// The response time of a ping-pong or a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// When the message or request was sent, since the start of the measurement window.
    pub at_us: u64,
    pub took_ns: u64,
}

/// The bytes received by a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Since the start of the measurement window.
    pub at_us: u64,
    pub bytes: u64,
}

/// A transfer that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// When the connect began, on the clock that all guests share.
    pub at_ns: u64,
    pub bytes: u64,
}

/// The end of a transfer's connection, as one of its hosts saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub at_ns: u64,
    /// Or the connection was reset.
    pub is_whole: bool,
}

/// A completed transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub began_at_ns: u64,
    /// From then until the receiver had the last byte, or the sender its acknowledgement.
    pub took_ns: u64,
    pub bytes: u64,
}

impl Transfer {
    /// Pairs the transfers that the sender began with the times of their ends, both in order. A
    /// transfer without an end is omitted.
    pub fn ended(begun: &[Begun], ended_at_ns: &[u64]) -> Vec<Self> {
        let both = begun.iter().zip(ended_at_ns);
        let of = |(begun, ended_at_ns): (&Begun, &u64)| Self {
            began_at_ns: begun.at_ns,
            took_ns: ended_at_ns.saturating_sub(begun.at_ns),
            bytes: begun.bytes,
        };
        both.map(of).collect()
    }

    /// The same where connections may be reset, by the transfers' numbers.
    pub fn whole(begun: &[Begun], ends: &BTreeMap<u32, End>) -> Vec<Self> {
        let whole = ends.iter().filter(|(_, end)| end.is_whole);
        let of = |(&number, end): (&u32, &End)| {
            let begun = begun.get(number as usize)?;
            Self::ended(&[*begun], &[end.at_ns]).pop()
        };
        whole.filter_map(of).collect()
    }

    /// The throughput of the transfer.
    pub fn mbps(&self) -> f64 {
        self.bytes as f64 * 8e3 / self.took_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_has_not_ended() {
        let begun = [100, 5_000].map(|at_ns| Begun { at_ns, bytes: 1000 });
        let ended = Transfer::ended(&begun, &[4_100]);
        assert_eq!(ended, [Transfer { began_at_ns: 100, took_ns: 4_000, bytes: 1000 }]);
        assert_eq!(ended[0].mbps(), 2000.0);
    }

    #[test]
    fn what_was_reset_is_no_completed_transfer() {
        let begun = [100, 5_000, 9_000].map(|at_ns| Begun { at_ns, bytes: 1000 });
        let end = |at_ns, is_whole| End { at_ns, is_whole };
        let ends = [(0, end(200, false)), (1, end(5_300, true))].into();
        let whole = Transfer::whole(&begun, &ends);
        assert_eq!(whole, [Transfer { began_at_ns: 5_000, took_ns: 300, bytes: 1000 }]);
    }
}
