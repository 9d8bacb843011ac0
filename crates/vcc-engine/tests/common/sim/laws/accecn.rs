//! AccECN between vcc and the peer, from outside: the counter, the option, and ECT (RFC 9768).

use vcc_engine::{Action, Segment, sys};

use super::feedback::COUNTER_MASK;
use super::{CE, ECE, ECN_BITS, ECT_0, FIN, Laws};

/// Marked packets that came for the guest.
#[derive(Default)]
pub(super) struct Counter {
    /// A SYN of the guest left the port with the request.
    pub asked: bool,
    /// 5 plus those that came, or 0 before the first segment.
    packets: u32,
    /// The guest's next ACK acknowledges a SYN-ACK, and no data has come.
    answers: bool,
    has_data: bool,
    /// An option has left.
    reported: bool,
}

const INITIAL: u32 = 5;
/// How a SYN-ACK reports that the SYN arrived as Not-ECT.
const NOT_ECT: u32 = 2;

fn ace(flags: u16) -> u32 {
    u32::from(flags & ECN_BITS) >> 6
}

/// Table 2 of RFC 9768.
pub(super) fn accepts_accecn(flags: u16) -> bool {
    let bits = flags & ECN_BITS;
    bits != 0 && bits != ECE && bits != ECN_BITS
}

impl Counter {
    /// The guest has got a SYN-ACK.
    pub(super) fn is_answered(&mut self) {
        self.answers = !self.has_data;
    }

    pub(super) fn received(&mut self, segment: &Segment) {
        let packets = segment.payload_bytes.max(1).div_ceil(segment.seg_bytes.max(1));
        let packets = if segment.seg_bytes == 0 { 1 } else { packets };
        self.packets += if segment.ip_ecn == CE { packets } else { 0 };
        self.has_data |= segment.payload_bytes > 0;
        self.answers &= !self.has_data;
    }
}

impl Laws {
    /// Did vcc and the peer agree on AccECN, perhaps by an answer to a SYN before the last?
    pub(super) fn has_accecn(&self) -> bool {
        let (syn, answer) = self.ecn_bits();
        let asked = if self.guest_opens { self.counter.asked } else { syn == ECN_BITS };
        self.established() && asked && accepts_accecn(answer)
    }

    /// Are received bytes counted for the peer?
    pub(super) fn reports_bytes(&self) -> bool {
        self.agreed || self.has_accecn()
    }

    /// The counter goes with each segment, exactly, except for values that super-segments cannot
    /// carry.
    pub(super) fn counter_sent(&mut self, segment: &Segment, action: &Action, ecn: bool) {
        self.counts.counters += 1;
        assert_eq!(action.ip_ecn, if ecn { ECT_0 } else { 0 }, "all segments are ECT");
        let ours = !(ECN_BITS | sys::TCP_PSH as u16);
        assert_eq!(action.flags & ours, segment.flags & ours, "the other flags are the guest's");
        let empty = segment.payload_bytes == 0 && segment.flags & FIN == 0;
        let answers = std::mem::take(&mut self.counter.answers);
        if self.guest_opens && answers && empty {
            assert_eq!(ace(action.flags), NOT_ECT, "how the SYN-ACK arrived");
            return;
        }
        let splits = segment.seg_bytes > 0 && segment.payload_bytes > segment.seg_bytes;
        if splits && (self.counter.packets + INITIAL) & 2 != 0 {
            let ahead = 4 - (self.counter.packets + INITIAL) % 4;
            self.counter.packets += ahead;
        }
        assert_eq!(ace(action.flags), (self.counter.packets + INITIAL) % 8, "r.cep");
    }

    /// The option goes with each segment that has room for it and no data, if it is news.
    pub(super) fn counter_reports(&mut self, segment: &Segment, action: &Action) {
        let empty = segment.payload_bytes == 0 && segment.flags & FIN == 0;
        let news = self.due_bytes > 0 || !self.counter.reported;
        let wanted = empty && news && segment.option_room_bytes >= 8;
        assert_eq!(u32::from(action.emit) == sys::EMIT_PACK, wanted, "{}", self.due_bytes);
        if !wanted {
            return;
        }
        self.counts.packs += 1;
        let reported = (action.feedback.ect0_bytes, action.feedback.ce_bytes);
        let counted = (self.ect0_bytes & COUNTER_MASK, self.ce_bytes & COUNTER_MASK);
        assert_eq!((u64::from(reported.0), u64::from(reported.1)), counted, "counters");
        (self.due_bytes, self.due_ce, self.counter.reported) = (0, false, true);
    }
}
