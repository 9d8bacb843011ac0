//! Recordings of a run over time, in the units of figures.

use crate::result::{FlowResult, Pair, RunData};
use serde::{Deserialize, Serialize};
use vcc_traffic::{Received, Sample, Transfer};

/// Recordings of a run over time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    /// The send window of each flow: (seconds, segments).
    pub windows_segs: Vec<Vec<(f64, f64)>>,
    /// The guest's cwnd of each flow: (seconds, segments).
    pub cwnds_segs: Vec<Vec<(f64, f64)>>,
    /// The guest's smoothed RTT of each flow, and its RTO: (seconds, ms).
    #[serde(default)]
    pub srtts_ms: Vec<Vec<(f64, f64)>>,
    #[serde(default)]
    pub rtos_ms: Vec<Vec<(f64, f64)>>,
    /// The goodput of each flow: (seconds, Mbit/s since the previous point).
    pub goodput_mbps: Vec<Vec<(f64, f64)>>,
    /// The cwnd of the guest next to vcc's, for the first flow that vcc watches.
    pub tracking: Vec<Pair>,
    /// The round-trip times of the probes, in order.
    pub rtts_us: Vec<f64>,
    /// The throughput of each transfer.
    pub transfers_mbps: Vec<f64>,
    /// The bottleneck's queue: (seconds, bytes).
    pub queue_bytes: Vec<(f64, f64)>,
    /// The times between two ACKs, per flow.
    pub ack_gaps_us: Vec<Vec<u32>>,
}

impl Series {
    pub fn from_run(data: &RunData) -> Self {
        let queue = &data.emulator.links[data.bottleneck].queue_series;
        let pairs = data.translated.iter().map(|seen| seen.tracking.pairs());
        let pairs = pairs.into_iter().find(|pairs| !pairs.is_empty()).unwrap_or_default();
        let transfers = data.flows.iter().flat_map(|flow| &flow.transfers);
        let rtts_us = data.emulator.probes.samples.iter().map(|probe| probe.rtt_ns as f64 / 1e3);
        Self {
            windows_segs: sampled(data, Sample::send_window_segs),
            cwnds_segs: sampled(data, |sample| f64::from(sample.cwnd_segs)),
            srtts_ms: sampled(data, |sample| f64::from(sample.srtt_us) / 1e3),
            rtos_ms: sampled(data, |sample| f64::from(sample.rto_us) / 1e3),
            goodput_mbps: data.flows.iter().map(|flow| rates(&flow.received_over_time)).collect(),
            tracking: pairs,
            rtts_us: rtts_us.collect(),
            transfers_mbps: transfers.map(Transfer::mbps).collect(),
            queue_bytes: queue.iter().map(|&(us, bytes)| (seconds(us), bytes as f64)).collect(),
            ack_gaps_us: data.emulator.ack_gaps_us.clone(),
        }
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn sampled(data: &RunData, value: fn(&Sample) -> f64) -> Vec<Vec<(f64, f64)>> {
    let points = |flow: &FlowResult| {
        flow.samples.iter().map(|sample| (seconds(sample.at_us), value(sample))).collect()
    };
    data.flows.iter().map(points).collect()
}

fn rates(received: &[Received]) -> Vec<(f64, f64)> {
    let pairs = received.windows(2).filter(|pair| pair[0].at_us < pair[1].at_us);
    pairs
        .map(|pair| {
            let (us, bytes) = (pair[1].at_us - pair[0].at_us, pair[1].bytes - pair[0].bytes);
            (seconds(pair[1].at_us), bytes as f64 * 8.0 / us as f64)
        })
        .collect()
}
