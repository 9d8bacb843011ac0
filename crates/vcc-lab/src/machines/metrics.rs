//! The metrics of a case: for each direction and size, the median of its transfers.

use super::file::File;
use super::transfer::Direction;
use std::collections::{BTreeMap, BTreeSet};
use vcc_results::result::statistics::median;

/// Completion times of the transfers of one direction and size.
pub struct Transfers {
    pub direction: Direction,
    pub bytes: u32,
    pub times_s: Vec<f64>,
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

/// Name and definition of each metric of a file.
pub(super) fn all(file: &File) -> Vec<(String, String)> {
    let own = file.cases.iter().flat_map(|case| case.sizes.iter().flatten());
    let sizes: BTreeSet<u32> = file.machines.sizes.iter().chain(own).copied().collect();
    let mut all = Vec::new();
    for bytes in sizes {
        for direction in Direction::BOTH {
            let (kind, told) = (kind(direction, bytes), direction.told());
            all.extend([
                (format!("{kind}_ms"), format!("median time of {bytes} bytes {told}")),
                (format!("{kind}_mbps"), format!("throughput of {bytes} bytes in that time")),
                (format!("{kind}_gain"), "that throughput over the other case's".into()),
            ]);
        }
    }
    all
}

/// `against`: the metrics of the case that gains are over.
pub fn of(
    transfers: &[Transfers],
    against: Option<&BTreeMap<String, f64>>,
) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    for Transfers { direction, bytes, times_s } in transfers {
        let Some(time_s) = median(times_s) else { continue };
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
            let to =
                Transfers { direction: Direction::To, bytes: 100_000, times_s: times_s.into() };
            let none = Transfers { direction: Direction::From, bytes: 1_000_000, times_s: vec![] };
            [to, none]
        };
        let tap = of(&transfers(&[0.4, 0.1, 0.25]), None);
        assert_eq!((tap.len(), tap["to_100k_ms"], tap["to_100k_mbps"]), (2, 250.0, 3.2));
        assert_eq!(of(&transfers(&[0.0625]), Some(&tap))["to_100k_gain"], 4.0);
    }
}
