//! Results of one flow.

use std::collections::BTreeMap;
use std::ops::Range;
use vcc_traffic::report::{ReceiverHalf, SenderHalf};
use vcc_traffic::{End, Received, Response, Sample, Transfer};

#[derive(Debug, Clone, Default)]
pub struct FlowResult {
    /// ECN was negotiated, according to the guest; [`Self::peer_has_ecn`] is the peer's view.
    pub guest_has_ecn: bool,
    pub peer_has_ecn: bool,
    pub payload_ok: bool,
    /// Received bytes, of requests those of their responses, at the start of the window of
    /// measurement and at the end of each phase, and the samples in between.
    pub received_at_bounds_bytes: Vec<u64>,
    pub received_over_time: Vec<Received>,
    /// Within the window of measurement, as are the next two.
    pub retransmitted_segs: u64,
    pub retransmitted_bytes: u64,
    pub sent_segs: u64,
    pub samples: Vec<Sample>,
    /// Response times of a ping-pong or of requests.
    pub responses: Vec<Response>,
    /// Requests that were answered within the window of measurement.
    pub answered: u64,
    /// Completed transfers.
    pub transfers: Vec<Transfer>,
    /// How the connections of transfers ended, at the sender and at the receiver, by the transfers'
    /// numbers; only where they may be reset.
    pub transfer_ends: [BTreeMap<u32, End>; 2],
}

impl FlowResult {
    /// Merges the reports of both ends.
    pub fn from_halves(sender: SenderHalf, receiver: ReceiverHalf) -> Self {
        // Only where that is the end of a transfer.
        let ended_at_ns = match &sender.transfers_acknowledged_at_ns[..] {
            [] => &receiver.transfers_ended_at_ns[..],
            acknowledged_at_ns => acknowledged_at_ns,
        };
        Self {
            transfers: match sender.transfer_ends.is_empty() {
                true => Transfer::ended(&sender.transfers, ended_at_ns),
                false => Transfer::whole(&sender.transfers, &receiver.transfer_ends),
            },
            transfer_ends: [sender.transfer_ends, receiver.transfer_ends],
            guest_has_ecn: sender.has_ecn,
            peer_has_ecn: receiver.has_ecn,
            payload_ok: sender.payload_ok && receiver.payload_ok,
            received_at_bounds_bytes: match sender.answers_at_bounds_bytes.is_empty() {
                true => receiver.received_at_bounds_bytes,
                false => sender.answers_at_bounds_bytes,
            },
            received_over_time: receiver.received_over_time,
            retransmitted_segs: sender.retransmitted_segs,
            retransmitted_bytes: sender.retransmitted_bytes,
            sent_segs: sender.sent_segs,
            samples: sender.samples,
            responses: sender.responses,
            answered: sender.answered,
        }
    }

    /// Payload that arrived within these phases; 0 is the first.
    pub fn received_bytes_in(&self, phases: &Range<u32>) -> u64 {
        let at = |bound: u32| self.received_at_bounds_bytes.get(bound as usize).copied();
        match (at(phases.start), at(phases.end)) {
            (Some(before), Some(after)) => after - before,
            _ => 0,
        }
    }

    /// Payload that arrived within the window of measurement.
    pub fn received_bytes(&self) -> u64 {
        let bounds = &self.received_at_bounds_bytes;
        bounds.last().zip(bounds.first()).map_or(0, |(last, first)| last - first)
    }
}
