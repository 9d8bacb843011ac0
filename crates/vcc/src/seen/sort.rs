//! In which order flows are shown.

use std::cmp::Ordering;

use clap::ValueEnum;

use super::FlowView;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// By port, guest and peer
    Place,
    /// Goodput
    Rate,
    Cwnd,
    /// The window that the guest is shown
    Window,
    /// What the guest has in flight
    Flight,
    Srtt,
    Alpha,
    Marks,
    Reductions,
    Retransmissions,
    /// By what limits them
    Limit,
}

impl SortKey {
    pub fn name(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Rate => "rate",
            Self::Cwnd => "cwnd",
            Self::Window => "window",
            Self::Flight => "flight",
            Self::Srtt => "srtt",
            Self::Alpha => "alpha",
            Self::Marks => "marks",
            Self::Reductions => "reductions",
            Self::Retransmissions => "retransmissions",
            Self::Limit => "limit",
        }
    }

    /// What can be counted comes with the most first; where it is not known, last.
    fn value(self, flow: &FlowView) -> Option<f64> {
        match self {
            Self::Place | Self::Limit => None,
            Self::Rate => flow.goodput_bits_per_s,
            Self::Cwnd => flow.cwnd_segs.map(f64::from),
            Self::Window => flow.window_shown_bytes.map(f64::from),
            Self::Flight => Some(flow.flight_bytes.into()),
            Self::Srtt => flow.srtt_us.map(f64::from),
            Self::Alpha => flow.alpha,
            // What happens now says more than what once happened, where it is known.
            Self::Marks => flow.marks_per_s.or(Some(flow.marks.into())),
            Self::Reductions => flow.reductions_per_s.or(Some(flow.reductions.into())),
            Self::Retransmissions => {
                flow.retransmissions_per_s.or(Some(flow.retransmissions.into()))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub key: SortKey,
    pub reverse: bool,
}

impl Sort {
    fn compare(&self, a: &FlowView, b: &FlowView) -> Ordering {
        let order = match self.key {
            SortKey::Limit => a.limited_by.cmp(b.limited_by),
            SortKey::Place => Ordering::Equal,
            key => {
                let (a, b) = (key.value(a), key.value(b));
                // Unknown comes last either way.
                match (a, b) {
                    (Some(a), Some(b)) => b.total_cmp(&a),
                    (None, None) => Ordering::Equal,
                    (known, _) => {
                        return if known.is_some() { Ordering::Less } else { Ordering::Greater };
                    }
                }
            }
        };
        let place = |flow: &FlowView| flow.key.1;
        let order = order.then_with(|| (&a.key.0, place(a)).cmp(&(&b.key.0, place(b))));
        if self.reverse { order.reverse() } else { order }
    }

    pub fn apply(&self, flows: &mut [FlowView]) {
        flows.sort_by(|a, b| self.compare(a, b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::testing::flow;

    fn order(key: SortKey, reverse: bool) -> Vec<u16> {
        let with = |port: u16, rate: Option<f64>| {
            let mut flow = flow(&format!("192.0.2.1:{port}"), "192.0.2.2:80");
            flow.goodput_bits_per_s = rate;
            flow
        };
        let mut flows =
            [with(3, None), with(2, Some(7.0)), with(1, Some(5.0)), with(10, Some(7.0))];
        Sort { key, reverse }.apply(&mut flows);
        flows.iter().map(|flow| flow.key.1.guest.port()).collect()
    }

    #[test]
    fn most_first_unknown_last_and_ports_as_numbers() {
        assert_eq!(order(SortKey::Place, false), [1, 2, 3, 10]);
        assert_eq!(order(SortKey::Place, true), [10, 3, 2, 1]);
        assert_eq!(order(SortKey::Rate, false), [2, 10, 1, 3]);
        assert_eq!(order(SortKey::Rate, true), [1, 10, 2, 3]);
    }
}
