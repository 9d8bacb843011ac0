//! Why there is no flow to show.

use crate::port::PortView;

/// `flows` is the number before a filter.
pub fn why_no_flows(ports: &[PortView], flows: usize) -> String {
    let older: u64 = ports.iter().filter_map(PortView::unknown_segments).sum();
    match (ports.is_empty(), flows, older) {
        (true, ..) => "vcc is attached nowhere: `vcc attach DEV`".into(),
        (_, 1.., _) => "no connection matches the filter".into(),
        (_, _, 0) => "no connections: new ones are shown as they begin".into(),
        _ => format!(
            "no connections, but {older} segments of connections that began before vcc was attached: these \
             pass untranslated, and new ones are shown as they begin"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Counter;
    use crate::testing;

    #[test]
    fn the_reason_is_given() {
        let mut port = testing::port("veth3");
        assert!(why_no_flows(&[], 0).contains("vcc attach DEV"));
        assert!(why_no_flows(&[port.clone()], 0).starts_with("no connections: new"));
        assert!(why_no_flows(&[port.clone()], 7).contains("filter"));
        port.counters = vec![Counter { name: "unknown", meaning: "", value: 12 }];
        let why = why_no_flows(&[port.clone(), port], 0);
        assert!(why.starts_with("no connections, but 24 segments of connections that"), "{why}");
    }
}
