//! Times between the acknowledgements that go to each host.

use super::frame;

pub(super) struct AckGaps(Vec<Gaps>);

#[derive(Clone, Default)]
struct Gaps {
    last_ns: Option<u64>,
    gaps_us: Vec<u32>,
}

impl AckGaps {
    pub fn new(hosts: usize) -> Self {
        Self(vec![Gaps::default(); hosts])
    }

    /// A receiver has sent this.
    pub fn note(&mut self, now_ns: u64, frame: &[u8]) {
        let Some(to) = frame::destination(frame).and_then(|to| self.0.get_mut(to)) else { return };
        if let Some(last_ns) = to.last_ns {
            to.gaps_us.push(((now_ns - last_ns) / 1000) as u32);
        }
        to.last_ns = Some(now_ns);
    }

    /// By host, in microseconds.
    pub fn into_gaps_us(self) -> Vec<Vec<u32>> {
        self.0.into_iter().map(|host| host.gaps_us).collect()
    }
}
