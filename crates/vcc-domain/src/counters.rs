//! Counters of segments that were not translated, by reason.

use vcc_engine::sys;

/// A value of `enum vcc_count` (`datapath/abi.h`), which [`vcc_engine::sys`] has as `COUNT_...`.
/// Those of the kernel shell stay 0: `COUNT_CONTENDED`, `COUNT_REWRITE_FAILED`, `COUNT_TRACE_LOST`.
pub type Reason = sys::vcc_count;

/// Segments by reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; sys::COUNT_MAX as usize]);

impl Default for Counters {
    fn default() -> Self {
        Counters([0; sys::COUNT_MAX as usize])
    }
}

impl Counters {
    /// # Panics
    /// If there is no such reason.
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// All of them, in the order of `enum vcc_count`.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        (0..).zip(self.0)
    }

    pub(crate) fn count(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }
}
