//! Frames that wait for the guest's buffers, by pair of rings. More wait in the wire's queue.

use std::collections::VecDeque;

use vcc_domain::{Frame, Receipt};

use super::PAIRS_MAX;
use crate::header::Header;

/// All pairs together. Those in use share it.
pub(super) const LIMIT_BYTES: usize = 1 << 20;

/// The assumed size of a full segment. Longer ones than of Ethernet's MTU may wait in the wire's
/// queue.
const SEG_BYTES: usize = 2048;

/// A frame for the guest.
pub(super) struct Arrival {
    pub header: Header,
    pub frame: Frame,
    /// The port has passed it, and gets this back when it lies in the guest's ring. None: the port has
    /// made it.
    pub receipt: Option<Receipt>,
}

impl Arrival {
    /// Cuts off the first segment of a super-segment. CWR stays on it.
    pub(super) fn cut_first(&mut self) -> Option<Arrival> {
        let first = self.frame.cut_first()?;
        self.header = self.header.passed(&self.frame);
        let header = self.header.passed(&first);
        self.receipt = self.receipt.take().map(|_| Receipt::unread());
        Some(Arrival { header, frame: first, receipt: self.receipt.clone() })
    }

    fn charge_bytes(&self) -> usize {
        self.frame.bytes.len() + size_of::<Self>()
    }
}

#[derive(Default)]
struct Queue {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
}

#[derive(Default)]
pub(super) struct Backlog {
    queues: [Queue; PAIRS_MAX],
}

impl Backlog {
    pub(super) fn is_empty_at(&self, pair: usize) -> bool {
        self.queues[pair].arrivals.is_empty()
    }

    /// Has a pair its share of the limit, as one of this many that the guest uses?
    pub(super) fn is_full_at(&self, pair: usize, pairs: usize) -> bool {
        self.queues[pair].bytes >= LIMIT_BYTES / pairs
    }

    /// How many full segments more a pair has room for.
    pub(super) fn room_segs(&self, pair: usize, pairs: usize) -> u32 {
        ((LIMIT_BYTES / pairs).saturating_sub(self.queues[pair].bytes) / SEG_BYTES) as u32
    }

    /// The port's own frames are few, and may exceed the limit by as much again.
    pub(super) fn takes(&self, pair: usize, pairs: usize, arrival: &Arrival) -> bool {
        match arrival.receipt.is_some() {
            true => !self.is_full_at(pair, pairs),
            false => self.queues[pair].bytes < 2 * LIMIT_BYTES / pairs,
        }
    }

    pub(super) fn push_back(&mut self, pair: usize, mut arrival: Arrival) {
        arrival.frame.shrink_to_keep();
        self.queues[pair].bytes += arrival.charge_bytes();
        self.queues[pair].arrivals.push_back(arrival);
    }

    pub(super) fn push_front(&mut self, pair: usize, arrival: Arrival) {
        self.queues[pair].bytes += arrival.charge_bytes();
        self.queues[pair].arrivals.push_front(arrival);
    }

    pub(super) fn pop(&mut self, pair: usize) -> Option<Arrival> {
        let arrival = self.queues[pair].arrivals.pop_front()?;
        self.queues[pair].bytes -= arrival.charge_bytes();
        Some(arrival)
    }

    /// All that waits, by pair.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arrival> {
        self.queues.iter().flat_map(|queue| &queue.arrivals)
    }

    /// Takes all that waits for a pair.
    pub(super) fn take(&mut self, pair: usize) -> VecDeque<Arrival> {
        std::mem::take(&mut self.queues[pair]).arrivals
    }

    pub(super) fn clear(&mut self) {
        *self = Backlog::default();
    }
}
