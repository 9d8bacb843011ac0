//! Watching ports from one read to the next.

use crate::source::Source;

/// What ports have counted when it began.
pub trait Watch {
    /// What a port has shown since.
    type Seen: Clone;

    fn begin(ports: &[Source]) -> Self;

    /// Since it began, of the same ports; None where it is not known.
    fn end(&self, ports: &[Source]) -> Vec<Option<Self::Seen>>;
}

pub struct Watches<W> {
    /// With the devices of the ports.
    last: Option<(Vec<String>, W)>,
}

impl<W> Default for Watches<W> {
    fn default() -> Self {
        Self { last: None }
    }
}

impl<W: Watch> Watches<W> {
    /// Since the last read, of each port; none after the first, and where the ports are others since.
    pub fn next(&mut self, ports: &[Source]) -> Vec<Option<W::Seen>> {
        let devices: Vec<String> = ports.iter().map(|port| port.device().to_owned()).collect();
        let last = self.last.take().filter(|(before, _)| *before == devices);
        let seen = last.map_or_else(|| vec![None; ports.len()], |(_, watch)| watch.end(ports));
        self.last = Some((devices, W::begin(ports)));
        seen
    }
}
