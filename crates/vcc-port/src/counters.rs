//! Counters of segments that the datapath did not translate, by reason.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::sys;

use crate::{Error, Result};

/// A reason, as the datapath numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    index: u32,
    /// The key in JSON and metrics.
    pub name: &'static str,
    /// A description for people.
    pub meaning: &'static str,
}

const fn counter(index: u32, name: &'static str, meaning: &'static str) -> Counter {
    Counter { index, name, meaning }
}

pub const NOT_IP: Counter = counter(sys::COUNT_NOT_IP, "not_ip", "passed: not IP, or tagged twice");
pub const NOT_TCP: Counter = counter(sys::COUNT_NOT_TCP, "not_tcp", "passed: not TCP");
pub const FRAGMENT: Counter = counter(sys::COUNT_FRAGMENT, "fragment", "passed: an IP fragment");
pub const MALFORMED: Counter =
    counter(sys::COUNT_MALFORMED, "malformed", "passed: headers cut short or contradictory");
pub const BAD_OPTIONS: Counter =
    counter(sys::COUNT_BAD_OPTIONS, "bad_options", "read so far: malformed TCP options");
pub const SIGNED: Counter =
    counter(sys::COUNT_SIGNED, "signed", "passed: of a signed connection, as BGP's often is");
pub const BAD_FLAGS: Counter =
    counter(sys::COUNT_BAD_FLAGS, "bad_flags", "passed: TCP flags that no TCP sends");
pub const UNKNOWN: Counter =
    counter(sys::COUNT_UNKNOWN, "unknown", "passed: of a connection older than the attachment");
pub const TABLE_FULL: Counter =
    counter(sys::COUNT_TABLE_FULL, "table_full", "passed: no room for another connection");
pub const CONTENDED: Counter =
    counter(sys::COUNT_CONTENDED, "contended", "passed: another CPU held the connection too long");
pub const DROPPED: Counter =
    counter(sys::COUNT_DROPPED, "dropped", "dropped: the guest would misread it");
pub const REWRITE_FAILED: Counter =
    counter(sys::COUNT_REWRITE_FAILED, "rewrite_failed", "dropped: the kernel refused a change");
pub const POLICED: Counter =
    counter(sys::COUNT_POLICED, "policed", "dropped: beyond the window that the guest was shown");
pub const FORGED: Counter =
    counter(sys::COUNT_FORGED, "forged", "not believed: feedback not agreed on, or impossible");
pub const REPORT_LOST: Counter =
    counter(sys::COUNT_REPORT_LOST, "report_lost", "not sent: feedback beside data");
pub const EVENT_LOST: Counter =
    counter(sys::COUNT_EVENT_LOST, "event_lost", "not sent to the guest: no `vcc emit` took it");
pub const TRACE_LOST: Counter =
    counter(sys::COUNT_TRACE_LOST, "trace_lost", "not recorded: `vcc trace` was too slow");
pub const IGNORED: Counter =
    counter(sys::COUNT_IGNORED, "ignored", "passed: a connection that the policy leaves alone");
pub const REFUSED: Counter =
    counter(sys::COUNT_REFUSED, "refused", "dropped: no room for another connection");
pub const GAVE_WAY: Counter =
    counter(sys::COUNT_GAVE_WAY, "gave_way", "forgotten: a handshake that made room for another");
pub const UNTIMED: Counter =
    counter(sys::COUNT_UNTIMED, "untimed", "forgotten: its end could not be timed");
pub const TIMER_LATE: Counter =
    counter(sys::COUNT_TIMER_LATE, "timer_late", "started again: the timer of connections' ends");

pub const DEEP: Counter =
    counter(sys::COUNT_DEEP, "deep", "passed: behind more IPv6 headers than vcc follows");
pub const UNJUDGED: Counter = counter(
    sys::COUNT_UNJUDGED,
    "unjudged",
    "dropped under `police`: TCP that vcc cannot judge, as in fragments",
);

pub const ALL: [Counter; sys::COUNT_MAX as usize] = [
    NOT_IP,
    NOT_TCP,
    FRAGMENT,
    MALFORMED,
    BAD_OPTIONS,
    SIGNED,
    BAD_FLAGS,
    UNKNOWN,
    TABLE_FULL,
    CONTENDED,
    DROPPED,
    REWRITE_FAILED,
    POLICED,
    FORGED,
    REPORT_LOST,
    EVENT_LOST,
    TRACE_LOST,
    IGNORED,
    DEEP,
    UNJUDGED,
    REFUSED,
    GAVE_WAY,
    UNTIMED,
    TIMER_LATE,
];

/// Segments by reason, summed over all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; ALL.len()]);

impl Counters {
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter.index as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> {
        ALL.into_iter().map(|counter| (counter, self.get(counter)))
    }
}

pub(crate) fn read(map: &MapHandle) -> Result<Counters> {
    let mut sums = [0; ALL.len()];
    for (sum, index) in sums.iter_mut().zip(0u32..) {
        let per_cpu = map
            .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| Error::system("read the port's counters", e))?
            .ok_or_else(|| Error::layout("read the port's counters"))?;
        for value in per_cpu {
            let value = value.try_into().map_err(|_| Error::layout("read the port's counters"))?;
            *sum += u64::from_ne_bytes(value);
        }
    }
    Ok(Counters(sums))
}
