//! The laws of `engine/vcc.h`, checked from outside by the segments that enter and leave the port.
//! They read only the reduction counters and the cwnd of the engine's state.

mod accecn;
mod ecn;
mod feedback;
mod reductions;
mod refused;
pub mod unheld;
mod windows;

use vcc_engine::{Action, FlowState, Params, Segment, sys};

use super::OPT_OURS;
use crate::common::limits_first_flight;
use accecn::Counter;
use windows::{Place, Shown};

const SYN: u16 = sys::TCP_SYN as u16;
const ACK: u16 = sys::TCP_ACK as u16;
const FIN: u16 = sys::TCP_FIN as u16;
const RST: u16 = sys::TCP_RST as u16;
const ECE: u16 = sys::TCP_ECE as u16;
const CWR: u16 = sys::TCP_CWR as u16;
const ECN_BITS: u16 = (sys::TCP_AE | sys::TCP_ECE | sys::TCP_CWR) as u16;
const ECT_0: u8 = sys::IP_ECN_ECT_0 as u8;
const CE: u8 = sys::IP_ECN_CE as u8;

/// A SYN or SYN-ACK as its receiver saw it.
#[derive(Clone, Copy, Default)]
struct Offer {
    seen: bool,
    scales: bool,
    sacks: bool,
    wscale: u8,
    /// The ECN bits as they left the port, and as their sender set them.
    ecn_bits: u16,
    own_ecn_bits: u16,
}

impl Offer {
    fn from_segment(segment: &Segment, wscale: u8, flags: u16) -> Self {
        Offer {
            seen: true,
            scales: segment.options & sys::OPT_WSCALE as u16 != 0,
            sacks: segment.options & sys::OPT_SACK_PERMITTED as u16 != 0,
            wscale: wscale.min(14),
            ecn_bits: flags & ECN_BITS,
            own_ecn_bits: segment.flags & ECN_BITS,
        }
    }
}

pub struct Laws {
    params: Params,
    guest_opens: bool,
    /// The guest's SYN as the fabric saw it, and the peer's as the guest saw it.
    guest: Offer,
    peer: Offer,
    /// The scale that the peer announced.
    peer_wscale: u8,
    guest_iss: u32,
    /// A SYN of the guest left the port as an ECN-setup SYN.
    asked: bool,
    /// A SYN of the guest was an ECN-setup SYN itself.
    guest_asked: bool,
    una: i64,
    nxt: i64,
    /// The guest's acknowledgement of the peer's data, and its right edge.
    peer_iss: u32,
    acknowledged: i64,
    takes_up_to: i64,
    /// The last current ACK, and the highest right edge shown.
    last: Option<Shown>,
    furthest_edge: i64,
    latched: bool,
    /// snd_nxt at the last reduction.
    reduced_at: Option<i64>,
    cwr_required: bool,
    cwr_allowed: bool,
    fins: (bool, bool),
    reset: bool,
    /// The flow has ended; later segments belong to none.
    forgotten: bool,
    /// Feedback was offered, and negotiated.
    offered: bool,
    agreed: bool,
    /// Payload received for the guest as ECT and as CE, and how much is still to be reported.
    ect0_bytes: u64,
    ce_bytes: u64,
    due_bytes: u64,
    due_ce: bool,
    /// AccECN's, if both SYNs agreed on it.
    counter: Counter,
    pub counts: Counts,
}

/// How often each interesting event occurred, so that tests can demand them.
#[derive(Default, Clone, Copy, Debug)]
pub struct Counts {
    pub calls: u64,
    pub duplicates: u64,
    pub grants: u64,
    pub updates_dropped: u64,
    pub exact_windows: u64,
    pub echoes: u64,
    pub cwrs: u64,
    pub marks_hidden: u64,
    pub reductions: u64,
    pub timeouts: u64,
    pub old_acks: u64,
    pub zero_windows: u64,
    pub packs: u64,
    pub facks: u64,
    pub marks_reported: u64,
    pub refused: u64,
    /// Segments with AccECN's counter, and marks that it reported.
    pub counters: u64,
    pub marks_counted: u64,
}

impl Laws {
    pub fn new(params: Params, guest_opens: bool) -> Self {
        Laws {
            params,
            guest_opens,
            guest: Offer::default(),
            peer: Offer::default(),
            peer_wscale: 0,
            guest_iss: 0,
            asked: false,
            guest_asked: false,
            una: 0,
            nxt: 0,
            peer_iss: 0,
            acknowledged: 0,
            takes_up_to: 65535,
            last: None,
            furthest_edge: 0,
            latched: false,
            reduced_at: None,
            cwr_required: false,
            cwr_allowed: false,
            fins: (false, false),
            reset: false,
            forgotten: false,
            offered: false,
            agreed: false,
            ect0_bytes: 1,
            ce_bytes: 0,
            due_bytes: 0,
            due_ce: false,
            counter: Counter::default(),
            counts: Counts::default(),
        }
    }

    /// Adds to the initial counters of reports.
    pub fn counted_before(&mut self, counted: sys::vcc_feedback) {
        self.ect0_bytes += u64::from(counted.ect0_bytes);
        self.ce_bytes += u64::from(counted.ce_bytes);
    }

    pub fn agreed(&self) -> bool {
        self.agreed
    }

    fn is_shadow(&self) -> bool {
        u32::from(self.params.0.mode) == sys::MODE_SHADOW
    }

    /// The offset in the guest's stream of a sequence number, nearest to `near`.
    fn offset(&self, number: u32, near: i64) -> i64 {
        let near_number = self.guest_iss.wrapping_add(1).wrapping_add(near as u32);
        near + i64::from(number.wrapping_sub(near_number) as i32)
    }

    /// The offset in the peer's stream of a sequence number.
    fn peer_offset(&self, number: u32) -> i64 {
        let near_number = self.peer_iss.wrapping_add(1).wrapping_add(self.acknowledged as u32);
        self.acknowledged + i64::from(number.wrapping_sub(near_number) as i32)
    }

    fn scaled(&self) -> bool {
        self.guest.scales && self.peer.scales
    }

    fn established(&self) -> bool {
        self.guest.seen && self.peer.seen
    }

    #[track_caller]
    fn untouched(&self, segment: &Segment, action: &Action) {
        assert_eq!(
            (action.verdict, action.flags, action.ip_ecn, action.window),
            (sys::VCC_PASS as u8, segment.flags, segment.ip_ecn, segment.window),
            "laws 8 and 11: unchanged"
        );
        assert_eq!(
            (action.mss, action.wscale),
            (segment.mss, segment.wscale),
            "laws 8 and 11: SYNs unchanged"
        );
    }

    pub fn guest_sent(
        &mut self,
        before: &FlowState,
        after: &FlowState,
        segment: &Segment,
        action: &Action,
    ) {
        self.counts.calls += 1;
        if self.forgotten {
            self.untouched(segment, action);
            return;
        }
        assert_eq!(u32::from(action.verdict), sys::VCC_PASS, "a segment of the guest was dropped");
        assert_eq!(action.window, segment.window, "the guest's own window was changed");
        if self.is_shadow() {
            self.untouched(segment, action);
        }
        assert_eq!(action.forget, 0, "law 10: a live flow was forgotten");
        assert_eq!((action.forged, action.strip), (0, 0), "no forged options");
        if segment.flags & SYN != 0 {
            assert_eq!(action.ip_ecn, 0, "RFC 3168, 6.1.1: no ECT on a SYN");
            self.hello_sent(segment, action);
            assert_eq!((action.mss, action.wscale), (segment.mss, segment.wscale));
            if !self.guest.seen {
                self.guest_iss = segment.seq;
            }
            if segment.flags & ACK == 0 {
                self.peer.seen = false; // not answered yet
                self.asked |= action.flags & (ECE | CWR) == (ECE | CWR);
                self.counter.asked |= action.flags & ECN_BITS == ECN_BITS;
                self.guest_asked |= segment.flags & ECN_BITS != 0;
            }
            self.guest = Offer::from_segment(segment, segment.wscale, action.flags);
            return;
        }
        self.reset |= segment.flags & RST != 0;
        if segment.flags & RST == 0 && self.peer.seen {
            let ack = self.peer_offset(segment.ack);
            let scale = if self.scaled() { self.guest.wscale } else { 0 };
            self.acknowledged = self.acknowledged.max(ack);
            self.takes_up_to = self.takes_up_to.max(ack + (i64::from(segment.window) << scale));
        }
        self.fins.0 |= segment.flags & FIN != 0;
        let start = self.offset(segment.seq, self.nxt);
        let end = start + i64::from(segment.payload_bytes) + i64::from(segment.flags & FIN != 0);
        let is_new_data = end > self.nxt && start >= self.nxt && segment.payload_bytes > 0;
        self.nxt = self.nxt.max(end);
        self.note_reductions(before, after, None);
        if self.is_shadow() || segment.flags & RST != 0 {
            return;
        }
        if self.left_alone() {
            self.untouched(segment, action);
            return;
        }
        self.reports(segment, action, after);
        self.ecn_from_guest(segment, action, after, is_new_data);
    }

    pub fn time_passed(&mut self, before: &FlowState, after: &FlowState, action: &Action) {
        self.note_reductions(before, after, None);
        if action.forget != 0 {
            let delivered = self.fins == (true, true) && self.una == self.nxt;
            let finished = self.reset || delivered || !self.established();
            assert!(finished, "law 10: a live flow was forgotten");
            self.forgotten = true;
        }
    }

    pub fn guest_got(
        &mut self,
        before: &FlowState,
        after: &FlowState,
        segment: &Segment,
        action: &Action,
    ) {
        self.counts.calls += 1;
        if self.forgotten {
            self.untouched(segment, action);
            return;
        }
        if self.is_shadow() {
            self.untouched(segment, action);
        }
        if segment.flags & SYN != 0 {
            self.syn_to_guest(segment, action);
            return;
        }
        self.reset |= segment.flags & RST != 0;
        if !self.established() || segment.flags & RST != 0 {
            return;
        }
        assert_eq!(action.forged, 0, "no forged options");
        let ours = segment.options & OPT_OURS != 0;
        if ours && segment.options & sys::OPT_FACK as u16 != 0 {
            assert!(self.agreed, "a FACK without negotiation");
            assert_eq!(u32::from(action.verdict), sys::VCC_CONSUME);
            self.note_reductions(before, after, Some(segment));
            return;
        }
        assert_eq!(action.strip != 0, ours, "our options are stripped");
        if !self.accepts(segment) {
            self.refused(before, after, segment, action);
            return;
        }
        if self.has_accecn() && !self.is_shadow() {
            self.counter.received(segment);
        }
        if self.reports_bytes() && segment.payload_bytes > 0 && segment.ip_ecn != 0 {
            let bytes = u64::from(segment.payload_bytes);
            let marked = segment.ip_ecn == CE;
            *(if marked { &mut self.ce_bytes } else { &mut self.ect0_bytes }) += bytes;
            self.due_bytes += bytes;
            self.due_ce |= marked;
        }
        self.fins.1 |= segment.flags & FIN != 0;
        let ack = self.offset(segment.ack, self.una);
        let place = Place {
            ack,
            is_old: ack < self.una,
            acked_bytes: (ack - self.una).max(0),
            in_flight: self.nxt > self.una,
        };
        self.una = self.una.max(ack);
        self.note_reductions(before, after, (!place.is_old).then_some(segment));
        if !self.is_shadow() {
            self.ecn_to_guest(segment, action);
            self.windows(segment, action, after, &place);
        }
        if segment.flags & CWR != 0 {
            self.latched = false;
        }
        if segment.ip_ecn == CE && segment.payload_bytes > 0 {
            self.latched = true;
        }
    }

    pub(super) fn syn_to_guest(&mut self, segment: &Segment, action: &Action) {
        if self.is_shadow() || !limits_first_flight(&self.params) {
            assert_eq!(action.window, segment.window, "law 3: a SYN's window is untouched");
        }
        assert!(action.window <= segment.window, "law 1: a SYN's window");
        assert_eq!(action.window == 0, segment.window == 0, "law 3: a window is not closed");
        let ours = segment.options & OPT_OURS != 0;
        assert_eq!(
            action.strip != 0,
            ours && !self.is_shadow(),
            "our options are stripped from SYNs"
        );
        if segment.flags & ACK == 0 && self.guest.seen {
            return; // a copy of a SYN that the guest has answered
        }
        assert!(action.mss <= segment.mss && action.mss >= segment.mss.min(448), "law 12");
        assert!(action.wscale <= segment.wscale, "law 1: not every window could be expressed");
        if self.peer.seen && self.guest.seen && !self.is_shadow() {
            assert_eq!(action.wscale.min(14), self.peer.wscale, "a retransmission differs");
        }
        self.peer_wscale = segment.wscale.min(14);
        self.peer_iss = segment.seq;
        self.peer = Offer::from_segment(segment, action.wscale, segment.flags);
        if ours && segment.flags & ACK == 0 && !self.guest_opens {
            self.offered = true;
        } else if segment.options & sys::OPT_HELLO as u16 != 0 && self.offered && self.peer_marks()
        {
            assert_eq!(u32::from(segment.hello), sys::HELLO_ACCEPT);
            self.agreed = true;
        }
        if self.left_alone() && self.guest_opens {
            self.untouched(segment, action);
        }
        if segment.flags & ACK != 0 {
            self.counter.is_answered();
        }
        if segment.flags & ACK != 0 && !self.is_shadow() && !self.guest_asked {
            assert_eq!(action.flags & ECN_BITS, 0, "law 5: the guest did not request ECN");
        }
    }

    pub fn finish(&self) -> Counts {
        self.counts
    }
}
