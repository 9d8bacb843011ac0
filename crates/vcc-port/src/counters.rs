//! Counters of segments that the datapath did not translate, by reason.

use vcc_engine::sys;

/// A reason, as the datapath numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    index: u32,
    /// The key in JSON and metrics.
    pub name: &'static str,
    /// A description for people, and for the table in docs/troubleshooting.md.
    pub meaning: &'static str,
}

/// Declares each counter: its name here, its number in the datapath, its name in JSON and metrics,
/// and its description. The order is that of their numbers.
macro_rules! counters {
    ($($constant:ident: $number:ident, $name:literal, $meaning:literal;)*) => {
        $(pub const $constant: Counter =
            Counter { index: sys::$number, name: $name, meaning: $meaning };)*

        pub const ALL: [Counter; sys::COUNT_MAX as usize] = [$($constant,)*];
    };
}

counters! {
    NOT_IP: COUNT_NOT_IP, "not_ip", "passed: not IP, or more than one VLAN tag";
    NOT_TCP: COUNT_NOT_TCP, "not_tcp", "passed: not TCP";
    FRAGMENT: COUNT_FRAGMENT, "fragment", "passed: an IP fragment";
    MALFORMED: COUNT_MALFORMED, "malformed", "passed: headers cut short or contradictory";
    BAD_OPTIONS: COUNT_BAD_OPTIONS, "bad_options", "translated: malformed TCP options, read up to the error";
    SIGNED: COUNT_SIGNED, "signed", "passed: signed by TCP-MD5 or TCP-AO, as for BGP";
    BAD_FLAGS: COUNT_BAD_FLAGS, "bad_flags", "passed: TCP flags that no TCP sends";
    UNKNOWN: COUNT_UNKNOWN, "unknown", "passed: a connection whose SYN did not pass while vcc was attached";
    TABLE_FULL: COUNT_TABLE_FULL, "table_full", "passed: no room for another connection";
    CONTENDED: COUNT_CONTENDED, "contended", "another CPU locked the connection for half a millisecond: translated with the window that the guest was last shown";
    DROPPED: COUNT_DROPPED, "dropped", "dropped: a window update that the guest would take for a duplicate ACK";
    REWRITE_FAILED: COUNT_REWRITE_FAILED, "rewrite_failed", "dropped: the kernel refused to change the segment, or has preempted too many runs";
    POLICED: COUNT_POLICED, "policed", "dropped: beyond the window that the guest was shown";
    FORGED: COUNT_FORGED, "forged", "ignored: feedback that was not negotiated, or is impossible";
    REPORT_LOST: COUNT_REPORT_LOST, "report_lost", "not sent: feedback beside data";
    EVENT_LOST: COUNT_EVENT_LOST, "event_lost", "not sent to the guest: no `vcc emit` took it";
    TRACE_LOST: COUNT_TRACE_LOST, "trace_lost", "not recorded: `vcc trace` was too slow";
    IGNORED: COUNT_IGNORED, "ignored", "passed: a connection whose rule ignores it";
    DEEP: COUNT_DEEP, "deep", "passed: behind more than four IPv6 extension headers";
    UNJUDGED: COUNT_UNJUDGED, "unjudged", "dropped under `police`: TCP that vcc cannot judge, such as fragments";
    REFUSED: COUNT_REFUSED, "refused", "dropped: no room for another connection";
    GAVE_WAY: COUNT_GAVE_WAY, "gave_way", "forgotten: a handshake that gave way to a newer one";
    UNTIMED: COUNT_UNTIMED, "untimed", "forgotten: a new connection whose expiry could not be scheduled";
    TIMER_LATE: COUNT_TIMER_LATE, "timer_late", "restarted: the expiry timer of connections";
    PROMISE_BROKEN: COUNT_PROMISE_BROKEN, "promise_broken", "reset: a guest did not take what was acknowledged in its name";
    OTHER_TUNNEL: COUNT_OTHER_TUNNEL, "other_tunnel", "passed: in another tunnel than the connection with the same addresses";
    CANNOT_MARK: COUNT_CANNOT_MARK, "cannot_mark", "passed: marked outside a tunnel whose inside cannot carry the mark";
    ONE_DIRECTION: COUNT_ONE_DIRECTION, "one_direction", "not limited, and under `police` its data is dropped: a connection of which the port sees only one direction";
    REVIVED: COUNT_REVIVED, "revived", "known again: a connection that was forgotten, and continued";
    UNKNOWN_DROPPED: COUNT_UNKNOWN_DROPPED, "unknown_dropped", "dropped under `police`: data of a connection whose SYN, or its answer, did not pass while vcc was attached";
    IN_FRAGMENTS: COUNT_IN_FRAGMENTS, "in_fragments", "translated, not limited: a connection whose guest sends in IP fragments";
    ACCEPTED: COUNT_ACCEPTED, "accepted", "answered: a SYN, in the name of a guest that is not running";
    NO_BUFFER: COUNT_NO_BUFFER, "no_buffer", "dropped: data for which its connection's share of the buffer has no room";
}

/// Of what no TCP connection sends, such as ARP and UDP: nothing there could be translated.
pub const OTHER_TRAFFIC: [Counter; 2] = [NOT_IP, NOT_TCP];

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

impl Counters {
    pub(crate) fn from_counts(counts: &[sys::vcc_counts]) -> Self {
        let mut sums = [0; ALL.len()];
        for on_cpu in counts {
            for (sum, segments) in sums.iter_mut().zip(on_cpu.segments) {
                *sum += segments;
            }
        }
        Self(sums)
    }
}
