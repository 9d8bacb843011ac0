//! What the ports' own programs cost, while the kernel counts it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vcc_port::RunTimeByDirection;
use vcc_view::{Cost, PortView, keys};

/// Over less, the cost would be that of single bursts. Readings are not taken exactly on the second.
const OVER: Duration = Duration::from_millis(900);

/// By the keys of ports.
#[derive(Default)]
pub struct Costs {
    since: Option<Instant>,
    begun: HashMap<Arc<str>, RunTimeByDirection>,
    shown: HashMap<Arc<str>, Cost>,
}

impl Costs {
    /// Gives the ports of a snapshot their cost over the last second.
    pub fn enter(&mut self, ports: &mut [PortView], now: Instant) {
        let keys = keys(ports.iter().map(|port| &*port.port));
        let passed = self.since.map(|since| now.duration_since(since));
        if passed.is_none_or(|passed| passed >= OVER) {
            let times = keys.iter().zip(&*ports);
            let times: HashMap<Arc<str>, RunTimeByDirection> =
                times.filter_map(|(key, port)| Some((key.clone(), port.run_time?))).collect();
            let cost = |(key, now): (&Arc<str>, _)| {
                let cost = Cost::of_programs(self.begun.get(key)?, now, passed?)?;
                Some((key.clone(), cost))
            };
            self.shown = times.iter().filter_map(cost).collect();
            (self.begun, self.since) = (times, Some(now));
        }
        for (port, key) in ports.iter_mut().zip(&keys) {
            port.cost = self.shown.get(key).copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use vcc_port::RunTime;
    use vcc_view::testing::port;

    use super::*;

    fn counted(runs: u64) -> PortView {
        let time = RunTime { runs, ns: 200 * runs };
        let run_time = RunTimeByDirection { from_guest: time, to_guest: time };
        PortView { run_time: Some(run_time), ..port("vnet3") }
    }

    #[test]
    fn a_cost_is_that_of_the_last_second() {
        let (mut costs, begin) = (Costs::default(), Instant::now());
        let mut enter = |after_ms, port: PortView| {
            let mut ports = [port, port_without()];
            costs.enter(&mut ports, begin + Duration::from_millis(after_ms));
            assert_eq!(ports[1].cost, None, "it was not counted");
            ports[0].cost.map(|cost| (cost.cpu * 1e6).round())
        };
        assert_eq!(enter(0, counted(1000)), None, "since when is not known");
        assert_eq!(enter(500, counted(2000)), None);
        assert_eq!(enter(1000, counted(3000)), Some(800.0), "400 us in each direction");
        assert_eq!(enter(1500, counted(9000)), Some(800.0), "until the second is over");
        assert_eq!(enter(2000, counted(9000)), Some(2400.0));
        assert_eq!(enter(3000, counted(10)), None, "other programs");
    }

    fn port_without() -> PortView {
        port("vnet4")
    }
}
