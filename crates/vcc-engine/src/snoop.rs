//! Acknowledging in a guest's name what its receive ring has (`engine/snoop.h`).

use crate::{Action, Buffer, FlowState, Hold, Params, Segment, native, sys};

/// The guest's receive ring as seen by a flow.
pub type Room = sys::vcc_room;
/// The buffers of the ring that matter to a flow; `SNOOP_NEVER_SEGS`: no number of them.
pub type Needs = sys::vcc_needs;
/// The acknowledgement, window and flags of a segment that leaves for the peer.
pub type Said = sys::vcc_snoop_ack;
/// What is due for a segment that is in the guest's ring, or stored.
pub type Placed = sys::vcc_placed;

/// A flow's state besides [`FlowState`], in a shell that acknowledges in the guest's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Snoop(pub sys::vcc_snoop);

impl Snoop {
    /// A SYN or SYN-ACK to the guest; `stripped`: it goes without MPTCP's options.
    #[inline]
    pub fn peer_syn(&mut self, segment: &Segment, tsval: u32, stripped: bool) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::snoop_peer_syn(&mut self.0, segment, tsval, stripped) }
    }

    /// The shell's SYN-ACK has been taken for the guest's.
    pub fn accept_begin(&mut self) {
        // SAFETY: a live value of the C type.
        unsafe { native::accept_begin(&mut self.0) }
    }

    /// The guest's own answer to a SYN that the shell has answered. False: it is none.
    #[must_use]
    pub fn accept_joins(&mut self, segment: &Segment) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::accept_joins(&mut self.0, segment) }
    }

    /// A SACK block of the guest.
    #[inline]
    pub fn sacked(&mut self, from: u32, end: u32) {
        // SAFETY: a live value of the C type.
        unsafe { native::snoop_sacked(&mut self.0, from, end) }
    }

    /// With this segment, has the peer sent all that it has for now?
    #[inline]
    pub fn ends_message(&self, segment: &Segment) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::ends_message(&self.0, segment) }
    }

    /// The peer has been silent, and sends again.
    #[inline]
    pub fn resumes(&mut self) {
        // SAFETY: a live value of the C type.
        unsafe { native::snoop_resumes(&mut self.0) }
    }

    /// The peer waits for an acknowledgement, and has sent what it may until then.
    #[inline]
    pub fn has_sent_all(&mut self) {
        // SAFETY: a live value of the C type.
        unsafe { native::snoop_has_sent_all(&mut self.0) }
    }

    /// The peer has sent nothing for a while, though it could, or has ended a message.
    #[inline]
    pub fn falls_silent(&mut self) {
        // SAFETY: a live value of the C type.
        unsafe { native::snoop_peer_silent(&mut self.0) }
    }

    /// Has data been acknowledged that the guest has not acknowledged itself?
    #[inline]
    pub fn is_promise_due(&self) -> bool {
        let is_ahead = (self.0.guest_ack.wrapping_sub(self.0.ring_nxt) as i32) < 0;
        let is_due = self.0.begun != 0 && is_ahead;
        // SAFETY: a live value of the C type.
        debug_assert_eq!(is_due, unsafe { native::is_promise_due(&self.0) });
        is_due
    }

    /// All data before it has been put into the guest's ring.
    #[inline]
    pub fn given_nxt(&self) -> u32 {
        self.0.ring_nxt.wrapping_sub(self.0.stored_bytes)
    }

    /// Has data been promised that is in the port's buffer, and not in the guest's ring yet?
    #[inline]
    pub fn has_stored(&self) -> bool {
        self.0.stored_bytes > 0
    }

    /// How much the guest's window admits of the next stored segment, which ends at `end` and consists of
    /// segments of `seg_bytes`.
    #[inline]
    pub fn gives_bytes(&self, end: u32, seg_bytes: u32) -> u32 {
        // SAFETY: a live value of the C type.
        unsafe { native::receive_gives_bytes(&self.0, end, seg_bytes) }
    }

    /// The guest has been given stored data up to `end`.
    #[inline]
    pub fn gave(&mut self, end: u32) {
        // SAFETY: a live value of the C type.
        unsafe { native::receive_gave(&mut self.0, end) }
    }

    /// Must the guest be asked for its window, because it is shut and data waits?
    #[inline]
    pub fn probes(&self) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { native::receive_probes(&self.0) }
    }
}

impl FlowState {
    /// A segment of the guest, before [`FlowState::from_guest`] sees it. False if a new connection
    /// begins.
    #[inline]
    pub fn snoop_guest_acked(&self, snoop: &mut Snoop, segment: &Segment) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::snoop_guest_acked(&self.0, &mut snoop.0, segment) }
    }

    /// Does the guest's segment bring nothing new to the peer?
    #[inline]
    pub fn snoop_absorbs(
        &self,
        snoop: &Snoop,
        params: &Params,
        room: &Room,
        segment: &Segment,
    ) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::snoop_absorbs(&self.0, &snoop.0, &params.0, room, segment) }
    }

    /// The guest's segment is absorbed.
    #[inline]
    pub fn snoop_absorbed(&mut self, segment: &Segment) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::snoop_absorbed(&mut self.0, segment) }
    }

    /// Runs `leave`, which has the engine see a segment that leaves: an acknowledgement beyond the
    /// guest's own is no answer of the guest's.
    #[inline]
    pub fn snoop_leave(&mut self, snoop: &Snoop, segment: &Segment, leave: impl FnOnce(&mut Self)) {
        if snoop.0.begun == 0 {
            return leave(self);
        }
        // SAFETY: all point to live values of the C types for the length of the call.
        let asked = unsafe { native::snoop_leave_begin(&mut self.0, &snoop.0, segment) };
        leave(self);
        // SAFETY: a live value of the C type.
        unsafe { native::snoop_leave_end(&mut self.0, asked) }
    }

    /// With a question that the guest has to answer at once, if the peer has used up its window and waits for the
    /// guest's own acknowledgement.
    #[must_use]
    pub fn snoop_asked(&self, snoop: &Snoop) -> Self {
        // SAFETY: both point to live values of the C types for the length of the call.
        if !unsafe { native::waits_for_room(&self.0, &snoop.0) } {
            return *self;
        }
        FlowState(sys::vcc_flow { asked: sys::ASKED_ACK as u8, ..self.0 })
    }

    /// What a segment that leaves for the peer says.
    #[inline]
    pub fn snoop_ack_to_send(
        &self,
        snoop: &Snoop,
        params: &Params,
        room: &Room,
        segment: &Segment,
    ) -> Said {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::snoop_ack_to_send(&self.0, &snoop.0, &params.0, room, segment) }
    }

    /// The acknowledgement is sent to the peer.
    #[inline]
    pub fn snoop_ack_sent(&self, snoop: &mut Snoop, answer: &Said) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::snoop_ack_sent(&self.0, &mut snoop.0, answer) }
    }

    /// The guest's ring has a segment, whose checksums are right. `sent` is the highest
    /// acknowledgement that the guest may be shown.
    #[inline]
    pub fn snoop_placed(
        &self,
        snoop: &mut Snoop,
        params: &Params,
        segment: &Segment,
        sent: u32,
        tsval: Option<u32>,
    ) -> Placed {
        let (stamped, tsval) = (tsval.is_some(), tsval.unwrap_or(0));
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe {
            let (flow, snoop) = (&self.0, &mut snoop.0);
            native::snoop_placed(flow, snoop, &params.0, segment, sent, stamped, tsval)
        }
    }

    /// The port has all data up to `nxt`. Returns whether more is promised now.
    #[inline]
    pub fn snoop_covered(&self, snoop: &mut Snoop, params: &Params, nxt: u32) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::snoop_covered(&self.0, &mut snoop.0, &params.0, nxt) }
    }

    /// Does the port store data of the flow?
    #[inline]
    pub fn buffers(&self, snoop: &Snoop, params: &Params) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::buffers(&self.0, &snoop.0, &params.0) }
    }

    /// What becomes of a segment that the guest accepts (`enum vcc_way`); `sent` as for
    /// [`FlowState::snoop_placed`]. If it must be stored and the port `can_store` it, it is, and the second is
    /// due for that.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "of one call of the engine")]
    pub fn receive(
        &self,
        snoop: &mut Snoop,
        params: &Params,
        room: &Room,
        segment: &Segment,
        sent: u32,
        tsval: Option<u32>,
        can_store: bool,
    ) -> (u32, Placed) {
        let (stamped, tsval) = (tsval.is_some(), tsval.unwrap_or(0));
        let mut placed = Placed::default();
        // SAFETY: all point to live values of the C types for the length of the call.
        let way = unsafe {
            let (flow, snoop, params, placed) = (&self.0, &mut snoop.0, &params.0, &mut placed);
            native::receive(
                flow, snoop, params, room, segment, sent, stamped, tsval, can_store, placed,
            )
        };
        (way.into(), placed)
    }

    /// Is a window update due to the peer, of the port's buffer?
    #[inline]
    pub fn receive_updates(&self, snoop: &Snoop, params: &Params, room: &Room) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::receive_updates(&self.0, &snoop.0, &params.0, room) }
    }

    /// May the peer be waiting for a window of the port's buffer?
    #[inline]
    pub fn is_shut(&self, snoop: &Snoop, params: &Params) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::is_shut(&self.0, &snoop.0, &params.0) }
    }

    /// [`FlowState::to_guest`] for a shell that holds segments: [`FlowState::snoop_to_guest`] where
    /// nothing is acknowledged in the guest's name.
    pub fn hold_to_guest(
        &mut self,
        hold: &mut Hold,
        buffer: &Buffer,
        params: &Params,
        segment: &Segment,
        action: &mut Action,
    ) -> bool {
        let shell = (&Snoop::default(), hold, buffer);
        let (hears, _) = self.snoop_to_guest(shell, params, segment, action);
        hears
    }

    /// [`FlowState::to_guest`] for a shell that holds segments, after which some may leave, and that
    /// acknowledges in the guest's name: the segment is judged by the guest's own acknowledgement. Returns whether the
    /// guest hears the segment, which is an ACK that it accepts, and whether it is a RST that the guest
    /// believes.
    #[inline]
    pub fn snoop_to_guest(
        &mut self,
        (snoop, hold, buffer): (&Snoop, &mut Hold, &Buffer),
        params: &Params,
        segment: &Segment,
        action: &mut Action,
    ) -> (bool, bool) {
        let (hold, buffer, params) = (&mut hold.0, buffer.raw(), &params.0);
        let (flow, snoop, mut is_reset) = (&mut self.0, &snoop.0, false);
        // SAFETY: all point to live values of the C types for the length of the call.
        let hears = unsafe {
            native::snoop_to_guest(
                flow,
                snoop,
                hold,
                buffer,
                params,
                segment,
                action,
                &mut is_reset,
            )
        };
        (hears, is_reset)
    }

    /// Is there an acknowledgement in the guest's name that the peer has not been sent?
    #[inline]
    pub fn is_answer_due(&self, snoop: &Snoop) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::is_answer_due(&self.0, &snoop.0) }
    }

    /// Has the ring room for what an acknowledgement lets the peer send?
    #[inline]
    pub fn snoop_has_room(&self, snoop: &Snoop, room: &Room) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::snoop_has_room(&self.0, &snoop.0, room) }
    }

    /// After each change of the flow, of which an acknowledgement `waits` for room or does not; and may its
    /// data be promised?
    #[inline]
    pub fn snoop_needs(&self, snoop: &Snoop, params: &Params, waits: bool) -> (Needs, bool) {
        let mut may_promise = false;
        // SAFETY: all point to live values of the C types for the length of the call.
        let needs =
            unsafe { native::snoop_needs(&self.0, &snoop.0, &params.0, waits, &mut may_promise) };
        (needs, may_promise)
    }
}
