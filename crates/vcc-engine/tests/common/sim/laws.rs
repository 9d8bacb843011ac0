//! The design's laws, checked from outside: by what went into the port and what came out of it.
//! Of the engine's state only its own account of reductions and of cwnd is looked at.

use vcc_engine::{Action, FlowState, Params, Segment, Underlay, sys};

use super::OPT_OURS;

const SYN: u16 = sys::TCP_SYN as u16;
const ACK: u16 = sys::TCP_ACK as u16;
const FIN: u16 = sys::TCP_FIN as u16;
const RST: u16 = sys::TCP_RST as u16;
const ECE: u16 = sys::TCP_ECE as u16;
const CWR: u16 = sys::TCP_CWR as u16;
const ECN_BITS: u16 = (sys::TCP_AE | sys::TCP_ECE | sys::TCP_CWR) as u16;
const ECT_0: u8 = sys::IP_ECN_ECT_0 as u8;
const CE: u8 = sys::IP_ECN_CE as u8;
const COUNTER_MASK: u64 = 0xff_ffff;

/// What one side's SYN or SYN-ACK said, as its receiver saw it.
#[derive(Clone, Copy, Default)]
struct Offer {
    seen: bool,
    scales: bool,
    sacks: bool,
    wscale: u8,
    /// As they left the port, and as their sender set them.
    ecn_bits: u16,
    own_ecn_bits: u16,
}

impl Offer {
    fn of(segment: &Segment, wscale: u8, flags: u16) -> Self {
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

/// An ACK with a window as the guest has it.
#[derive(Clone, Copy)]
struct Shown {
    received: u16,
    field: u16,
}

/// Where an ACK stands among those before it.
struct Place {
    ack: i64,
    is_old: bool,
    acked_bytes: i64,
    /// There was something to acknowledge.
    in_flight: bool,
}

pub struct Laws {
    params: Params,
    guest_opens: bool,
    /// As the fabric saw the guest's SYN, and the guest the peer's.
    guest: Offer,
    peer: Offer,
    /// The peer's scale as it believes it to be.
    peer_wscale: u8,
    guest_iss: u32,
    /// One of the guest's SYNs left with a request for ECN.
    asked: bool,
    /// One of them carried its own.
    guest_asked: bool,
    una: i64,
    nxt: i64,
    /// What the guest has acknowledged of the peer's, and up to where it takes more.
    peer_iss: u32,
    acknowledged: i64,
    takes_up_to: i64,
    /// The last current ACK, and the furthest edge.
    last: Option<Shown>,
    furthest_edge: i64,
    latched: bool,
    /// Where the last reduction began, until something beyond is acknowledged.
    reduced_at: Option<i64>,
    cwr_required: bool,
    cwr_allowed: bool,
    fins: (bool, bool),
    reset: bool,
    /// Its end has come; what still arrives belongs to no flow.
    forgotten: bool,
    /// Both ends are vcc, and said so.
    offered: bool,
    agreed: bool,
    /// What came for the guest as ECT and as CE, and what of that is still to be reported.
    ect0_bytes: u64,
    ce_bytes: u64,
    due_bytes: u64,
    due_ce: bool,
    pub counts: Counts,
}

/// How often the interesting things happened: a run without them has tested little.
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
            counts: Counts::default(),
        }
    }

    /// The counters of reports begin further on.
    pub fn counted_before(&mut self, counted: sys::vcc_feedback) {
        self.ect0_bytes += u64::from(counted.ect0_bytes);
        self.ce_bytes += u64::from(counted.ce_bytes);
    }

    pub fn agreed(&self) -> bool {
        self.agreed
    }

    /// Does the underlay send all but SYNs as ECT?
    fn marks_all(&self) -> bool {
        let underlay = Underlay::from_number(self.params.0.underlay).unwrap();
        underlay.name().starts_with("dctcp")
    }

    fn is_shadow(&self) -> bool {
        u32::from(self.params.0.mode) == sys::MODE_SHADOW
    }

    /// The offset of the guest's byte near `near` that `number` names.
    fn offset(&self, number: u32, near: i64) -> i64 {
        let near_number = self.guest_iss.wrapping_add(1).wrapping_add(near as u32);
        near + i64::from(number.wrapping_sub(near_number) as i32)
    }

    /// The same of the peer's byte.
    fn peer_offset(&self, number: u32) -> i64 {
        let near_number = self.peer_iss.wrapping_add(1).wrapping_add(self.acknowledged as u32);
        self.acknowledged + i64::from(number.wrapping_sub(near_number) as i32)
    }

    /// Law 17: does the guest take it (RFC 9293, 3.10.7.4; RFC 5961, 5.2)?
    fn accepts(&self, segment: &Segment) -> bool {
        let start = self.peer_offset(segment.seq);
        let end = start + i64::from(segment.payload_bytes) + i64::from(segment.flags & FIN != 0);
        let ack = self.offset(segment.ack, self.una);
        end >= self.acknowledged && start <= self.takes_up_to && ack <= self.nxt
    }

    /// Law 17: what the guest throws away has taught nobody anything, and shows it nothing new.
    fn refused(
        &mut self,
        before: &FlowState,
        after: &FlowState,
        segment: &Segment,
        action: &Action,
    ) {
        self.counts.refused += 1;
        assert!(before.0 == after.0, "law 17: thrown away, and yet it changes something");
        if self.is_shadow() || self.left_alone() {
            return;
        }
        self.ecn_to_guest(segment, action);
        let guest_scale = if self.scaled() { self.peer.wscale } else { 0 };
        let ack = self.offset(segment.ack, self.una);
        if segment.window == 0 {
            return;
        }
        if ack > self.nxt {
            let last = self.last.map_or(1, |last| last.field);
            assert!(action.window <= last.max(1), "law 17: more than was shown last");
            return;
        }
        let edge = ack + (i64::from(action.window) << guest_scale);
        let known = self.furthest_edge.max(self.nxt);
        assert!(edge < known + 2 * (1 << guest_scale), "law 17: {edge} beyond {known}");
    }

    fn scaled(&self) -> bool {
        self.guest.scales && self.peer.scales
    }

    /// Law 5: ECN is on where an ECN-setup SYN was answered by an ECN-setup SYN-ACK.
    fn fabric_ecn(&self) -> bool {
        let (syn, answer) =
            if self.guest_opens { (self.guest, self.peer) } else { (self.peer, self.guest) };
        syn.ecn_bits & (ECE | CWR) == (ECE | CWR) && answer.ecn_bits == ECE
    }

    /// A peer that answers the first SYN late does not know that a later one took its request
    /// back: it marks its data, and is owed the echo.
    fn peer_marks(&self) -> bool {
        let late_answer = self.guest_opens && self.asked && self.peer.ecn_bits == ECE;
        self.fabric_ecn() || late_answer
    }

    /// Does the guest take part in that ECN itself?
    fn guest_has_ecn(&self) -> bool {
        let own_bits = self.guest.own_ecn_bits;
        let takes_part = if self.guest_opens { ECE | CWR } else { ECE };
        self.fabric_ecn() && own_bits == takes_part
    }

    /// It asked, then took that back: what the peer believes is between the two of them.
    fn guest_fell_back(&self) -> bool {
        self.guest_opens && self.guest_asked && self.guest.own_ecn_bits == 0
    }

    fn left_alone(&self) -> bool {
        let leaves = u32::from(self.params.0.guest_ecn) == sys::GUEST_ECN_LEAVE;
        self.guest_has_ecn() && leaves
    }

    fn established(&self) -> bool {
        self.guest.seen && self.peer.seen
    }

    #[track_caller]
    fn untouched(&self, segment: &Segment, action: &Action) {
        assert_eq!(
            (action.verdict, action.flags, action.ip_ecn, action.window),
            (sys::VCC_PASS as u8, segment.flags, segment.ip_ecn, segment.window),
            "laws 8 and 11: untouched"
        );
        assert_eq!((action.mss, action.wscale), (segment.mss, segment.wscale), "in SYNs too");
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
        assert_eq!(u32::from(action.verdict), sys::VCC_PASS, "the guest's segments all pass");
        assert_eq!(action.window, segment.window, "the guest's own window is its own");
        if self.is_shadow() {
            self.untouched(segment, action);
        }
        assert_eq!(action.forget, 0, "law 10: a live flow was forgotten");
        assert_eq!((action.forged, action.strip), (0, 0), "nobody forges here");
        if segment.flags & SYN != 0 {
            assert_eq!(action.ip_ecn, 0, "RFC 3168, 6.1.1: no ECT on a SYN");
            self.hello_sent(segment, action);
            assert_eq!((action.mss, action.wscale), (segment.mss, segment.wscale));
            if !self.guest.seen {
                self.guest_iss = segment.seq;
            }
            if segment.flags & ACK == 0 {
                self.peer.seen = false; // it has seen no answer yet
                self.asked |= action.flags & (ECE | CWR) == (ECE | CWR);
                self.guest_asked |= segment.flags & ECN_BITS != 0;
            }
            self.guest = Offer::of(segment, segment.wscale, action.flags);
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
        let ecn = self.fabric_ecn() && !after.has(sys::FLOW_UNHEARD);
        let echoes = if self.guest_has_ecn() && !self.agreed {
            segment.flags & ECE != 0 // its receiver half is its own
        } else if self.guest_fell_back() {
            action.flags & ECE != 0
        } else {
            self.peer_marks() && self.latched
        };
        assert_eq!(
            action.ip_ecn,
            if ecn && (is_new_data || self.marks_all()) { ECT_0 } else { 0 },
            "law 5: ECT(0) on new data and nothing else, or on all"
        );
        assert_eq!(
            action.flags & ECE != 0,
            echoes,
            "law 5: ECE from CE until CWR (RFC 3168, 6.1.3)"
        );
        self.counts.echoes += u64::from(action.flags & ECE != 0);
        let has_cwr = action.flags & CWR != 0;
        if ecn && is_new_data {
            assert!(has_cwr || !self.cwr_required, "law 6: CWR on the next new data");
            assert!(!has_cwr || self.cwr_allowed, "law 6: CWR answers a reduction, once");
            self.cwr_required = false;
            self.cwr_allowed = false;
            self.counts.cwrs += u64::from(has_cwr);
        } else {
            assert!(!has_cwr, "law 6: CWR on new data only");
        }
        let ours = !(ECN_BITS | sys::TCP_PSH as u16);
        assert_eq!(action.flags & ours, segment.flags & ours, "the other flags are the guest's");
    }

    /// Our part of finding out whether both ends are vcc.
    fn hello_sent(&mut self, segment: &Segment, action: &Action) {
        let emitted = u32::from(action.emit);
        let answers = segment.flags & ACK != 0;
        if emitted == sys::EMIT_NOTHING {
            return;
        }
        assert_eq!(emitted, sys::EMIT_HELLO, "no report on a SYN");
        assert!(segment.option_room_bytes >= 8);
        if answers {
            assert_eq!(u32::from(action.hello), sys::HELLO_ACCEPT);
            assert!(self.offered, "nobody asked");
            self.agreed = true;
        } else {
            assert_eq!(u32::from(action.hello), sys::HELLO_OFFER);
            assert!(!self.guest.seen, "only the first SYN offers");
            self.offered = true;
        }
    }

    /// The receiver half: what came is reported, exactly and in time.
    fn reports(&mut self, segment: &Segment, action: &Action, after: &FlowState) {
        let emitted = u32::from(action.emit);
        let pure = segment.payload_bytes == 0 && segment.flags & FIN == 0;
        if !self.agreed {
            assert_eq!(emitted, sys::EMIT_NOTHING, "nothing was agreed");
            return;
        }
        let enough = self.due_ce || self.due_bytes >= 2 * u64::from(after.mss_bytes);
        let wanted = match (self.due_bytes > 0, pure) {
            (false, _) => sys::EMIT_NOTHING,
            (true, true) if segment.option_room_bytes >= 8 => sys::EMIT_PACK,
            (true, true) => sys::EMIT_FACK,
            (true, false) if enough => sys::EMIT_FACK,
            (true, false) => sys::EMIT_NOTHING,
        };
        assert_eq!(emitted, wanted, "{} bytes are due", self.due_bytes);
        if emitted == sys::EMIT_NOTHING {
            return;
        }
        self.counts.packs += u64::from(emitted == sys::EMIT_PACK);
        self.counts.facks += u64::from(emitted == sys::EMIT_FACK);
        let told = (action.feedback.ect0_bytes, action.feedback.ce_bytes);
        let counted = (self.ect0_bytes & COUNTER_MASK, self.ce_bytes & COUNTER_MASK);
        assert_eq!((u64::from(told.0), u64::from(told.1)), counted, "what came");
        (self.due_bytes, self.due_ce) = (0, false);
    }

    /// Law 6, from the engine's own account: at most one reduction a call and a window, and an
    /// ECE that no reduction has answered yet is answered now.
    fn note_reductions(&mut self, before: &FlowState, after: &FlowState, ack: Option<&Segment>) {
        let begun = after.reductions.wrapping_sub(before.reductions);
        let times_out = u32::from(after.ca_state) == sys::CA_LOSS
            && (u32::from(before.ca_state) != sys::CA_LOSS
                || after.rto_backoff > before.rto_backoff);
        assert!(begun <= 1, "law 6: {begun} reductions at once");
        assert!(after.cc.cwnd_segs >= 1, "cwnd is {}", after.cc.cwnd_segs);
        if begun == 1 {
            self.counts.reductions += 1;
            if let Some(reduced_at) = self.reduced_at {
                // A FACK acknowledges too, though not to the guest.
                let una = ack.map_or(self.una, |ack| self.una.max(self.offset(ack.ack, self.una)));
                // A timeout's window begins at `recover` itself: nothing beyond may have been
                // acknowledged, for that is what was lost.
                let reached = una > reduced_at || (times_out && una >= reduced_at);
                assert!(reached, "law 6: two reductions in one window");
            }
            self.reduced_at = Some(self.nxt);
            self.cwr_required = true;
            self.cwr_allowed = true;
        }
        if times_out {
            self.counts.timeouts += 1;
            self.cwr_allowed = true;
        }
        let Some(segment) = ack else { return };
        let unanswered = u32::from(before.ca_state) == sys::CA_OPEN
            || self.offset(segment.ack, self.una) > self.offset(before.recover, self.una);
        if !self.fabric_ecn() || !unanswered || self.left_alone() {
            return;
        }
        let reported = segment.options & (sys::OPT_PACK | sys::OPT_FACK) as u16 != 0;
        let marked = if !self.agreed || after.has(sys::FLOW_FEEDBACK_LOST) {
            segment.flags & ECE != 0
        } else if reported {
            after.heard.ce_bytes != before.heard.ce_bytes
        } else {
            segment.flags & ECE != 0 && !before.has(sys::FLOW_FEEDBACK_HEARD)
        };
        if marked {
            self.counts.marks_reported += u64::from(reported);
            assert_eq!(begun, 1, "law 6: a mark in a new window is answered");
        }
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
        assert_eq!(action.forged, 0, "nobody forges here");
        let ours = segment.options & OPT_OURS != 0;
        if ours && segment.options & sys::OPT_FACK as u16 != 0 {
            assert!(self.agreed, "a FACK came from nowhere");
            assert_eq!(u32::from(action.verdict), sys::VCC_CONSUME);
            self.note_reductions(before, after, Some(segment));
            return;
        }
        assert_eq!(action.strip != 0, ours, "no option of ours reaches the guest");
        if !self.accepts(segment) {
            self.refused(before, after, segment, action);
            return;
        }
        if self.agreed && segment.payload_bytes > 0 && segment.ip_ecn != 0 {
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

    fn syn_to_guest(&mut self, segment: &Segment, action: &Action) {
        assert_eq!(action.window, segment.window, "law 3: a SYN's window is untouched");
        let ours = segment.options & OPT_OURS != 0;
        assert_eq!(action.strip != 0, ours && !self.is_shadow(), "not for the guest");
        if segment.flags & ACK == 0 && self.guest.seen {
            return; // a copy of a SYN that the guest has answered: it asks for nothing
        }
        assert!(action.mss <= segment.mss && action.mss >= segment.mss.min(448), "law 12");
        assert!(action.wscale <= segment.wscale, "law 1: or windows could not be said");
        if self.peer.seen && self.guest.seen && !self.is_shadow() {
            assert_eq!(action.wscale.min(14), self.peer.wscale, "repeated as the first");
        }
        self.peer_wscale = segment.wscale.min(14);
        self.peer_iss = segment.seq;
        self.peer = Offer::of(segment, action.wscale, segment.flags);
        if ours && segment.flags & ACK == 0 && !self.guest_opens {
            self.offered = true;
        } else if ours && self.offered && self.peer_marks() {
            assert_eq!(u32::from(segment.hello), sys::HELLO_ACCEPT);
            self.agreed = true;
        }
        if self.left_alone() && self.guest_opens {
            self.untouched(segment, action);
        }
        if segment.flags & ACK != 0 && !self.is_shadow() && !self.guest_asked {
            assert_eq!(action.flags & ECN_BITS, 0, "law 5: the guest asked for no ECN");
        }
    }

    fn ecn_to_guest(&mut self, segment: &Segment, action: &Action) {
        if self.guest_has_ecn() {
            let hidden_bits = match (self.left_alone(), self.agreed) {
                (true, _) => 0,
                (false, false) => ECE,
                (false, true) => ECE | CWR,
            };
            assert_eq!(action.flags, segment.flags & !hidden_bits, "law 5: it negotiated the rest");
            let reported = self.agreed && segment.ip_ecn == CE;
            let seen = if reported { ECT_0 } else { segment.ip_ecn };
            assert_eq!(action.ip_ecn, seen, "law 5: marks are for it to echo, or were reported");
            return;
        }
        if !self.peer_marks() || self.guest_fell_back() {
            return;
        }
        assert_eq!(action.flags & ECN_BITS, 0, "law 5: no ECN flag reaches the guest");
        assert_eq!(action.ip_ecn, 0, "law 5: no mark reaches the guest");
        let hidden = segment.flags & (ECE | CWR) != 0 || segment.ip_ecn == CE;
        self.counts.marks_hidden += u64::from(hidden);
        assert_eq!(action.flags, segment.flags & !ECN_BITS, "the other flags are the peer's");
    }

    fn windows(&mut self, segment: &Segment, action: &Action, after: &FlowState, place: &Place) {
        let Place { ack, is_old, acked_bytes, in_flight } = *place;
        let (peer_scale, guest_scale) =
            if self.scaled() { (self.peer_wscale, self.peer.wscale) } else { (0, 0) };
        let offered_bytes = i64::from(segment.window) << peer_scale;
        let shown_bytes = i64::from(action.window) << guest_scale;
        // The largest window that the guest's scale can say is the most that can be offered.
        let said_bytes = offered_bytes.min(65535 << guest_scale);
        let edge = ack + shown_bytes;

        if self.left_alone() {
            assert_eq!(shown_bytes, said_bytes, "its windows are the peer's");
            assert_eq!(u32::from(action.verdict), sys::VCC_PASS);
            return;
        }
        assert!(shown_bytes <= offered_bytes, "law 1: {shown_bytes} of {offered_bytes} bytes");
        assert_eq!(action.window == 0, segment.window == 0, "law 3");
        self.counts.zero_windows += u64::from(segment.window == 0);

        let pure = segment.payload_bytes == 0 && segment.flags & FIN == 0;
        let repeats = self.last.is_some_and(|_| !is_old && acked_bytes == 0 && pure && in_flight);
        let last = self.last.unwrap_or(Shown { received: 0, field: 0 });
        let duplicate = repeats && segment.window == last.received;
        let has_sack = segment.options & sys::OPT_SACK as u16 != 0;
        let by_blocks = has_sack && self.guest.sacks && self.peer.sacks;
        if duplicate {
            self.counts.duplicates += 1;
            assert_eq!(u32::from(action.verdict), sys::VCC_PASS, "law 4: a duplicate is needed");
        }
        if duplicate && !by_blocks {
            assert_eq!(action.window, last.field, "law 4: a duplicate keeps the window");
        }
        self.counts.grants += u64::from(by_blocks && repeats && action.window > last.field);
        if u32::from(action.verdict) == sys::VCC_DROP {
            self.counts.updates_dropped += 1;
            assert!(repeats && !duplicate && !has_sack, "only a would-be duplicate is dropped");
            assert_eq!(action.window, last.field, "and only if it says nothing new");
        } else if repeats && !duplicate && !has_sack {
            assert_ne!(action.window, last.field, "law 4: a window update became a duplicate");
        }

        let unit_bytes = 1 << guest_scale;
        // To an old ACK the guest listens only if it has missed the newer ones: rounded down.
        let old_slack_bytes = if is_old { unit_bytes - 1 } else { 0 };
        let edge = edge + old_slack_bytes;
        assert!(
            edge >= self.furthest_edge.min(ack + said_bytes),
            "law 2: the right edge moved left"
        );
        // A FIN may lie one beyond the window; a duplicate repeats it all the same.
        let repeated = duplicate && !by_blocks;
        if !repeated {
            assert!(edge >= self.nxt.min(ack + said_bytes), "law 2: less than what is in flight");
        }
        if is_old {
            self.counts.old_acks += 1;
            return;
        }
        let mss_bytes = i64::from(after.mss_bytes);
        let by_cwnd = shown_bytes < said_bytes
            && !repeated
            && edge >= self.furthest_edge.max(self.nxt) + unit_bytes;
        if by_cwnd {
            self.counts.exact_windows += 1;
            let in_flight_bytes = self.nxt - self.una;
            let reduces = [sys::CA_CWR, sys::CA_RECOVERY].contains(&u32::from(after.ca_state));
            // Rounded up to what the scale can say. PRR counts from the flight, which may end
            // within a segment.
            let is_whole = |bytes: i64| bytes % mss_bytes < unit_bytes;
            assert!(
                is_whole(shown_bytes) || (reduces && is_whole(shown_bytes - in_flight_bytes)),
                "law 12: {shown_bytes} bytes are not whole segments of {mss_bytes}"
            );
            let in_flight_segs = (in_flight_bytes + mss_bytes - 1) / mss_bytes;
            let cwnd_segs = i64::from(after.cc.cwnd_segs);
            let dupacks = i64::from(after.dupacks);
            let most_segs = (cwnd_segs + dupacks).max(in_flight_segs + 1).max(2);
            assert!(
                shown_bytes < most_segs * mss_bytes + unit_bytes,
                "law 12: {shown_bytes} bytes for cwnd {cwnd_segs}, flight {in_flight_segs}"
            );
        }
        self.furthest_edge = self.furthest_edge.max(edge);
        self.last = Some(Shown { received: segment.window, field: action.window });
    }

    pub fn finish(&self) -> Counts {
        self.counts
    }
}
