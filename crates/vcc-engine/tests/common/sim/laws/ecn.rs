//! Laws 5 and 6: the guest and the fabric see exactly the ECN negotiated for each, and CWR answers a
//! reduction.

use vcc_engine::{Action, FlowState, Segment, Underlay, sys};

use super::{CE, CWR, ECE, ECN_BITS, ECT_0, Laws};

impl Laws {
    /// The ECN bits of the SYN and of its answer, as they were between vcc and the peer.
    pub(super) fn ecn_bits(&self) -> (u16, u16) {
        let (syn, answer) =
            if self.guest_opens { (self.guest, self.peer) } else { (self.peer, self.guest) };
        (syn.ecn_bits, answer.ecn_bits)
    }

    /// Is ECN on, because an ECN-setup SYN was answered by an ECN-setup SYN-ACK (law 5)?
    pub(super) fn fabric_ecn(&self) -> bool {
        let (syn, answer) = self.ecn_bits();
        let classic = syn & (ECE | CWR) == (ECE | CWR) && answer == ECE;
        classic || (self.has_accecn() && syn == ECN_BITS)
    }

    /// Does the peer send ECT? It does even if its SYN-ACK answers the first SYN after a later one
    /// has fallen back; its marks must then be echoed.
    pub(super) fn peer_marks(&self) -> bool {
        let late_answer = self.guest_opens && self.asked && self.peer.ecn_bits == ECE;
        self.fabric_ecn() || self.has_accecn() || late_answer
    }

    /// Did the guest negotiate that ECN itself?
    pub(super) fn guest_has_ecn(&self) -> bool {
        self.fabric_ecn() && !self.has_accecn() && self.guest_takes_part()
    }

    /// Did the guest's own bits ask for classic ECN, or accept it?
    fn guest_takes_part(&self) -> bool {
        let takes_part = if self.guest_opens { ECE | CWR } else { ECE };
        self.guest.own_ecn_bits == takes_part
    }

    /// The guest requested ECN itself and fell back: the peer's view is up to the two of them.
    pub(super) fn guest_fell_back(&self) -> bool {
        self.guest_opens && self.guest_asked && self.guest.own_ecn_bits == 0
    }

    pub(super) fn left_alone(&self) -> bool {
        let leaves = u32::from(self.params.0.guest_ecn) == sys::GUEST_ECN_LEAVE;
        self.guest_has_ecn() && leaves
    }

    /// Does the underlay send all segments but SYNs as ECT?
    pub(super) fn marks_all(&self) -> bool {
        let underlay = Underlay::from_number(self.params.0.underlay).unwrap();
        underlay.name().starts_with("dctcp")
    }

    /// Laws 5 and 6 on a segment of the guest that is no SYN.
    pub(super) fn ecn_from_guest(
        &mut self,
        segment: &Segment,
        action: &Action,
        after: &FlowState,
        is_new_data: bool,
    ) {
        let ecn = self.fabric_ecn() && !after.has(sys::FLOW_UNHEARD);
        if self.has_accecn() {
            self.counter_sent(segment, action, ecn && !after.has(sys::FLOW_ECN_FELL_BACK));
            return;
        }
        let echoes = if self.guest_has_ecn() && !self.agreed {
            segment.flags & ECE != 0 // it echoes marks itself
        } else if self.guest_fell_back() {
            action.flags & ECE != 0
        } else {
            self.peer_marks() && self.latched
        };
        assert_eq!(
            action.ip_ecn,
            if ecn && (is_new_data || self.marks_all()) { ECT_0 } else { 0 },
            "law 5: ECT(0) on new data only, or on everything"
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
            assert!(!has_cwr || self.cwr_allowed, "law 6: one CWR per reduction");
            self.cwr_required = false;
            self.cwr_allowed = false;
            self.counts.cwrs += u64::from(has_cwr);
        } else {
            assert!(!has_cwr, "law 6: CWR on new data only");
        }
        let ours = !(ECN_BITS | sys::TCP_PSH as u16);
        assert_eq!(action.flags & ours, segment.flags & ours, "the other flags are the guest's");
    }

    pub(super) fn ecn_to_guest(&mut self, segment: &Segment, action: &Action) {
        if self.guest_has_ecn() {
            let hidden_bits = match (self.left_alone(), self.agreed) {
                (true, _) => 0,
                (false, false) => ECE,
                (false, true) => ECE | CWR,
            };
            assert_eq!(
                action.flags,
                segment.flags & !hidden_bits,
                "law 5: the guest negotiated the other flags"
            );
            let reported = self.agreed && segment.ip_ecn == CE;
            let seen = if reported { ECT_0 } else { segment.ip_ecn };
            assert_eq!(action.ip_ecn, seen, "law 5: the guest echoes marks, or vcc reports them");
            return;
        }
        if !self.peer_marks() || self.guest_fell_back() {
            return;
        }
        assert_eq!(action.flags & ECN_BITS, 0, "law 5: no ECN flag reaches the guest");
        // Beside AccECN, the guest may see ECT if it negotiated classic ECN.
        let ect = if segment.ip_ecn == CE { ECT_0 } else { segment.ip_ecn };
        let seen = if self.has_accecn() && self.guest_takes_part() { ect } else { 0 };
        assert_eq!(action.ip_ecn, seen, "law 5: no mark reaches the guest");
        let hidden = segment.flags & (ECE | CWR) != 0 || segment.ip_ecn == CE;
        self.counts.marks_hidden += u64::from(hidden);
        assert_eq!(action.flags, segment.flags & !ECN_BITS, "the other flags are the peer's");
    }
}
