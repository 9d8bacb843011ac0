//! The metrics of a case: for each direction and size, the median of its transfers, or what the port
//! reports about their connections.

use super::file::{Machines, Parameters};
use super::transfer::Direction;
use super::verdicts::Verdict;
use crate::experiment::{Metric, Metrics};
use std::collections::{BTreeMap, BTreeSet};
use vcc_engine::DelayedBy;
use vcc_results::result::statistics::median;
use vcc_traffic::TcpCounters;
use vcc_vcpu::Shares;

/// Completion times of the transfers of one direction and size.
pub struct Transfers {
    pub direction: Direction,
    pub bytes: u32,
    pub times_s: Vec<f64>,
    /// What the guest's TCP counted during all of them, if that is measured.
    pub counters: Option<TcpCounters>,
    /// Of its connections with more than 20 measured waits, where there is a port.
    pub verdicts: Vec<Verdict>,
}

/// What the guest's TCP counts: a metric, its definition, and the kernel's names.
const COUNTS: [(&str, &str, &[&str]); 6] = [
    ("timeouts", "retransmission timeouts", &["TCPTimeouts"]),
    (
        "spurious",
        "timeouts that the guest found needless, by F-RTO, timestamps or DSACKs",
        &["TCPLossUndo", "TCPDSACKUndo"],
    ),
    ("retransmitted_segs", "retransmitted segments", &["RetransSegs"]),
    ("stalls", "PVTCP: stalls that connections met", &["TCPPVStalls"]),
    ("postponed_timers", "PVTCP: timers that a stall postponed", &["TCPPVTimers"]),
    ("replaced_samples", "PVTCP: RTT samples that a stall made", &["TCPPVSamples"]),
];

/// The directions and sizes of a case's transfers.
pub fn kinds(machines: &Machines, case: &Parameters) -> Vec<(Direction, u32)> {
    let sizes = case.sizes.as_ref().unwrap_or(&machines.sizes);
    match &machines.verdicts {
        None if machines.tcp_counters => {
            sizes.iter().map(|&bytes| (Direction::From, bytes)).collect()
        }
        None => {
            let both = |&bytes: &u32| Direction::TIMED.map(|direction| (direction, bytes));
            sizes.iter().flat_map(both).collect()
        }
        Some(verdicts) => {
            let from = sizes.iter().map(|&bytes| (Direction::From, bytes));
            from.chain([(Direction::Ask, verdicts.ask_bytes)]).collect()
        }
    }
}

/// `from_100k`: such transfers.
fn kind(direction: Direction, bytes: u32) -> String {
    let size = match bytes {
        _ if bytes % 1_000_000 == 0 => format!("{}m", bytes / 1_000_000),
        _ if bytes % 1000 == 0 => format!("{}k", bytes / 1000),
        _ => bytes.to_string(),
    };
    format!("{}_{size}", direction.name())
}

/// Those of an experiment with these cases.
pub fn all<'a>(machines: &Machines, cases: impl Iterator<Item = &'a Parameters>) -> Metrics {
    let kinds = cases.flat_map(|case| kinds(machines, case));
    // In the order of their sizes.
    let kinds: BTreeSet<(u32, Direction)> =
        kinds.map(|(direction, bytes)| (bytes, direction)).collect();
    let of_cpu = machines.verdicts.iter().flat_map(|_| of_cpu());
    let of_transfers = kinds.into_iter().flat_map(|(bytes, direction)| match machines.verdicts {
        None if machines.tcp_counters => {
            let counted = COUNTS.map(|(count, text, _)| counted(direction, bytes, count, text));
            timed(direction, bytes).into_iter().chain(counted).collect()
        }
        None => timed(direction, bytes),
        Some(_) => judged(direction, bytes),
    });
    let hint =
        ": it is DIRECTION_SIZE_UNIT, as to_100k_mbps, or with `verdicts` as from_100k_by_guest";
    Metrics::new(of_transfers.chain(of_cpu).collect()).with_hint(hint.into())
}

fn timed(direction: Direction, bytes: u32) -> Vec<Metric> {
    let (kind, phrase) = (kind(direction, bytes), direction.phrase());
    vec![
        Metric::new(format!("{kind}_ms"), format!("median time of {bytes} bytes {phrase}")),
        Metric::new(format!("{kind}_mbps"), format!("throughput of {bytes} bytes in that time")),
        Metric::new(format!("{kind}_gain"), "that throughput over the other case's"),
    ]
}

fn counted(direction: Direction, bytes: u32, count: &str, text: &str) -> Metric {
    let name = format!("{}_{count}", kind(direction, bytes));
    Metric::new(name, format!("{text}, per transfer of {bytes} bytes {}", direction.briefly()))
}

fn judged(direction: Direction, bytes: u32) -> Vec<Metric> {
    let (kind, phrase) = (kind(direction, bytes), direction.briefly());
    let by = DelayedBy::ALL.into_iter().map(|by| {
        let what = in_words(by);
        let text = format!(
            "share of connections with {bytes} bytes {phrase} that wait for {what}, as the port says"
        );
        Metric::new(format!("{kind}_by_{}", by.name()), text)
    });
    let delays = ["guest", "fabric"].map(|part| {
        let text = format!(
            "median of the {part} delays of connections with {bytes} bytes {phrase}, in us"
        );
        Metric::new(format!("{kind}_{part}_us"), text)
    });
    by.chain(delays).collect()
}

fn in_words(by: DelayedBy) -> &'static str {
    match by {
        DelayedBy::Guest => "the guest",
        DelayedBy::Fabric => "the fabric",
        DelayedBy::Both => "both",
        DelayedBy::Neither => "neither",
    }
}

fn of_cpu() -> [Metric; 3] {
    [
        ("cpu_waiting", "share of the time in which the guest's CPU had work and did not run"),
        ("cpu_running", "share of the time in which the guest's CPU ran"),
        ("cpu_idle", "share of the time in which the guest's CPU had no work"),
    ]
    .map(|(name, text)| Metric::new(name, text))
}

/// From what the port reported, and from the guest's CPU meanwhile.
pub fn of_verdicts(transfers: &[Transfers], cpu: &Shares) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::from([
        ("cpu_waiting".to_owned(), cpu.waiting),
        ("cpu_running".to_owned(), cpu.running),
        ("cpu_idle".to_owned(), cpu.idle),
    ]);
    for Transfers { direction, bytes, verdicts, .. } in transfers {
        let kind = kind(*direction, *bytes);
        let shares = DelayedBy::ALL.into_iter().filter(|_| !verdicts.is_empty()).map(|by| {
            let own = verdicts.iter().filter(|verdict| verdict.by == Some(by)).count();
            (format!("{kind}_by_{}", by.name()), own as f64 / verdicts.len() as f64)
        });
        metrics.extend(shares);
        let of = |part: fn(&Verdict) -> Option<u32>| {
            let delays: Vec<f64> = verdicts.iter().filter_map(part).map(f64::from).collect();
            median(&delays)
        };
        let guest_us = of(|verdict| verdict.guest_us).map(|us| (format!("{kind}_guest_us"), us));
        let fabric_us = of(|verdict| verdict.fabric_us).map(|us| (format!("{kind}_fabric_us"), us));
        metrics.extend(guest_us.into_iter().chain(fabric_us));
    }
    metrics
}

/// `against`: the metrics of the case that gains are over.
pub fn from_transfers(
    transfers: &[Transfers],
    against: Option<&BTreeMap<String, f64>>,
) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    for Transfers { direction, bytes, times_s, counters, .. } in transfers {
        let Some(time_s) = median(times_s) else { continue };
        if let Some(counters) = counters {
            metrics.extend(COUNTS.map(|(count, _, names)| {
                let sum: u64 = names.iter().map(|name| counters.get(name)).sum();
                let name = format!("{}_{count}", kind(*direction, *bytes));
                (name, sum as f64 / times_s.len() as f64)
            }));
        }
        let (kind, mbps) = (kind(*direction, *bytes), f64::from(*bytes) * 8.0 / time_s / 1e6);
        let throughput = format!("{kind}_mbps");
        if let Some(other) = against.and_then(|other| other.get(&throughput)) {
            metrics.insert(format!("{kind}_gain"), mbps / other);
        }
        metrics.insert(format!("{kind}_ms"), time_s * 1e3);
        metrics.insert(throughput, mbps);
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_its_medians_and_what_it_gains() {
        let transfers = |times_s: &[f64]| {
            let of = |direction, bytes, times_s: &[f64]| Transfers {
                direction,
                bytes,
                times_s: times_s.into(),
                counters: None,
                verdicts: Vec::new(),
            };
            [of(Direction::To, 100_000, times_s), of(Direction::From, 1_000_000, &[])]
        };
        let tap = from_transfers(&transfers(&[0.4, 0.1, 0.25]), None);
        assert_eq!((tap.len(), tap["to_100k_ms"], tap["to_100k_mbps"]), (2, 250.0, 3.2));
        assert_eq!(from_transfers(&transfers(&[0.0625]), Some(&tap))["to_100k_gain"], 4.0);
    }

    #[test]
    fn counts_are_per_transfer() {
        let counters = [("TCPTimeouts", 3), ("TCPLossUndo", 1), ("TCPDSACKUndo", 1)];
        let counters = counters.map(|(name, count)| (name.to_owned(), count)).into_iter().collect();
        let metrics = from_transfers(
            &[Transfers {
                direction: Direction::From,
                bytes: 5_000_000,
                times_s: vec![1.0, 2.0],
                counters: Some(counters),
                verdicts: Vec::new(),
            }],
            None,
        );
        let of =
            ["timeouts", "spurious", "stalls"].map(|count| metrics[&format!("from_5m_{count}")]);
        assert_eq!(of, [1.5, 1.0, 0.0]);
    }

    #[test]
    fn verdicts_are_shares_of_the_connections_that_were_long_enough() {
        let verdict = |by, guest_us, fabric_us| Verdict { by: Some(by), guest_us, fabric_us };
        let verdicts = vec![
            verdict(DelayedBy::Guest, Some(30_000), Some(200)),
            verdict(DelayedBy::Guest, Some(40_000), None),
            verdict(DelayedBy::Neither, Some(100), Some(100)),
            Verdict { by: None, guest_us: None, fabric_us: None },
        ];
        let of = |direction, verdicts| Transfers {
            direction,
            bytes: 5_000_000,
            times_s: vec![1.0],
            counters: None,
            verdicts,
        };
        let cpu = Shares { waiting: 0.5, running: 0.25, idle: 0.25 };
        let metrics =
            of_verdicts(&[of(Direction::From, verdicts), of(Direction::Ask, vec![])], &cpu);
        for (name, value) in [
            ("from_5m_by_guest", 0.5),
            ("from_5m_by_fabric", 0.0),
            ("from_5m_by_neither", 0.25),
            ("from_5m_guest_us", 30_000.0),
            ("from_5m_fabric_us", 150.0),
            ("cpu_waiting", 0.5),
        ] {
            assert_eq!(metrics.get(name), Some(&value), "{name}");
        }
        assert!(!metrics.keys().any(|name| name.starts_with("ask")), "{metrics:?}");
    }
}
