//! The report of a guest at the end of its plan: lines of JSON, with a prefix that distinguishes
//! them from the kernel's messages on the same console.

use crate::samples::{Begun, End, Received, Response, Sample};
use crate::tcp_counters::TcpCounters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The prefix of every line.
pub const PREFIX: &str = "vcc-agent: ";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    Sender(SenderHalf),
    Receiver(ReceiverHalf),
    Pings(PingReport),
    /// What the counters of the guest's TCP grew by within the measurement window.
    Tcp(TcpCounters),
    /// The first error, in which case it is the only line.
    Error {
        problem: String,
    },
    /// The last line, with the number of lines before it.
    Whole {
        lines: usize,
    },
}

/// A flow as seen by its sender.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderHalf {
    pub flow: usize,
    /// The time at which the handshake completed.
    pub connected_at_ns: u64,
    /// ECN was negotiated, according to the sender.
    pub has_ecn: bool,
    /// The echoes of a ping-pong equal the messages sent.
    pub payload_ok: bool,
    /// Bytes written up to the end of the measurement window.
    pub sent_bytes: u64,
    /// Within the measurement window, as are the next two.
    pub retransmitted_segs: u64,
    pub retransmitted_bytes: u64,
    pub sent_segs: u64,
    pub samples: Vec<Sample>,
    /// The responses of a ping-pong, or to requests, sent within the measurement window.
    pub responses: Vec<Response>,
    /// Requests whose responses arrived within the measurement window.
    #[serde(default)]
    pub answered: u64,
    /// Bytes of responses to requests, received by the start of the measurement window and by the
    /// end of each of its phases.
    #[serde(default)]
    pub answers_at_bounds_bytes: Vec<u64>,
    pub transfers: Vec<Begun>,
    /// When the last byte of each transfer was acknowledged, where that is its end.
    #[serde(default)]
    pub transfers_acknowledged_at_ns: Vec<u64>,
    /// By their numbers, where a transfer ends with its connection.
    #[serde(default)]
    pub transfer_ends: BTreeMap<u32, End>,
    /// The time at which the sender, having closed the connection, received the receiver's FIN, if
    /// that was within the measurement window.
    pub finished_at_ns: Option<u64>,
}

/// A flow as seen by its receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverHalf {
    pub flow: usize,
    /// ECN was negotiated, according to the receiver.
    pub has_ecn: bool,
    pub payload_ok: bool,
    /// Bytes received up to the end of the measurement window.
    pub received_bytes: u64,
    /// Bytes received by the start of the measurement window and by the end of each of its phases.
    pub received_at_bounds_bytes: Vec<u64>,
    pub received_over_time: Vec<Received>,
    /// The arrival time of the last byte of each transfer.
    pub transfers_ended_at_ns: Vec<u64>,
    /// By their numbers, where a transfer ends with its connection.
    #[serde(default)]
    pub transfer_ends: BTreeMap<u32, End>,
    /// The arrival time of the last byte and the sender's FIN, if both arrived.
    pub finished_at_ns: Option<u64>,
}

/// Echo requests to one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReport {
    /// The number of these pings in the plan.
    pub number: usize,
    pub sent: u64,
    /// Replies in the order of arrival; a missing one was lost or still in flight.
    pub answers: Vec<PingAnswer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingAnswer {
    /// When the request was sent, of CLOCK_MONOTONIC.
    pub sent_at_ns: u64,
    pub rtt_ns: u64,
}

impl Report {
    /// One line, with its prefix and without its end.
    ///
    /// # Errors
    /// serde_json fails, which it does not for these types.
    pub fn to_line(&self) -> serde_json::Result<String> {
        Ok(format!("{PREFIX}{}", serde_json::to_string(self)?))
    }

    /// Parses a line of a guest's console; None if it does not belong to a report.
    ///
    /// # Errors
    /// The line has the prefix, but is malformed.
    pub fn from_line(line: &str) -> Option<serde_json::Result<Self>> {
        // A terminal ends its lines with a carriage return as well.
        Some(serde_json::from_str(line.strip_prefix(PREFIX)?.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_as_what_was_written() {
        let half = SenderHalf {
            flow: 3,
            samples: vec![Sample {
                at_us: 1,
                acked_bytes: 2,
                cwnd_segs: 3,
                snd_wnd_bytes: 4,
                mss_bytes: 5,
                srtt_us: 6,
                rto_us: 7,
            }],
            finished_at_ns: Some(5),
            ..SenderHalf::default()
        };
        let error = Report::Error { problem: "two\nlines".into() };
        for report in [Report::Sender(half), error, Report::Whole { lines: 2 }] {
            let line = report.to_line().unwrap();
            assert_eq!(line.lines().count(), 1);
            assert_eq!(Report::from_line(&format!("{line}\r")).unwrap().unwrap(), report);
        }
    }

    #[test]
    fn the_kernels_lines_are_none_of_a_report() {
        assert!(Report::from_line("[    0.000000] Linux version 6.12.0").is_none());
        assert!(Report::from_line("vcc-agent: {\"sender\":").unwrap().is_err(), "cut off");
    }
}
