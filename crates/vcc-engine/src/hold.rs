//! Holding a guest's segments until the underlay's window admits them (`engine/hold.h`).

use crate::{BufferPolicy, FlowState, Params, Segment, native, sys};

/// The fate of a segment from the guest.
pub type Admission = sys::vcc_admission;

/// The buffer that a port's flows share.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Buffer(sys::vcc_buffer);

impl Buffer {
    /// An empty buffer.
    pub fn new(size_bytes: u32, policy: BufferPolicy) -> Self {
        let policy = policy.number().into();
        Buffer(sys::vcc_buffer { size_bytes, used_bytes: 0, granted_bytes: 0, policy })
    }

    /// Changes its size and policy; what is in it and what was granted stays.
    pub fn change(&mut self, size_bytes: u32, policy: BufferPolicy) {
        self.0.size_bytes = size_bytes;
        self.0.policy = policy.number().into();
    }

    #[inline]
    pub fn size_bytes(&self) -> u32 {
        self.0.size_bytes
    }

    /// By what is held and retained.
    #[inline]
    pub fn used_bytes(&self) -> u32 {
        self.0.used_bytes
    }

    /// To guests, which have not used it yet.
    #[inline]
    pub fn granted_bytes(&self) -> u32 {
        self.0.granted_bytes
    }

    pub(crate) fn raw(&self) -> &sys::vcc_buffer {
        &self.0
    }

    pub(crate) fn raw_mut(&mut self) -> &mut sys::vcc_buffer {
        &mut self.0
    }
}

/// A flow's state besides [`FlowState`], in a shell that holds its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Hold(pub sys::vcc_hold);

impl Hold {
    /// `bytes` of the buffer are free again.
    #[inline]
    pub fn left(&mut self, buffer: &mut Buffer, bytes: u32) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::hold_left(&mut self.0, &mut buffer.0, bytes) }
    }

    /// The flow has ended, or is idle: it gives back what it was granted.
    #[inline]
    pub fn gives_back(&mut self, buffer: &mut Buffer) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::hold_gives_back(&mut self.0, &mut buffer.0) }
    }
}

impl FlowState {
    /// The fate of a segment from the guest, before [`FlowState::from_guest`] sees it.
    #[inline]
    pub fn hold_admit(&mut self, hold: &mut Hold, params: &Params, segment: &Segment) -> Admission {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_admit(&mut self.0, &mut hold.0, &params.0, segment) }
    }

    /// The next sequence number of new data from the guest.
    #[inline]
    pub fn hold_guest_nxt(&self, hold: &Hold) -> u32 {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::hold_guest_nxt(&self.0, &hold.0) }
    }

    /// The sequence number for a segment without data that passes what is held.
    #[inline]
    pub fn hold_seq(&self, hold: &Hold, segment: &Segment) -> u32 {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_seq(&self.0, &hold.0, segment) }
    }

    /// Does a segment that does not pass acknowledge or offer more than has been sent to the peer?
    #[inline]
    pub fn hold_acks(&self, segment: &Segment) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::hold_acks(&self.0, segment) }
    }

    /// How much of the first segment held may leave now, in sequence numbers.
    #[inline]
    pub fn hold_leaves_bytes(&self, hold: &Hold, params: &Params, segment: &Segment) -> u32 {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_leaves_bytes(&self.0, &hold.0, &params.0, segment) }
    }

    /// With a window of few segments, and of fractions of one: the time in us until the next may leave; 0: now
    /// (Swift, 3.6).
    #[inline]
    pub fn segment_interval_us(&self, params: &Params, now_us: u32) -> u32 {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::segment_interval_us(&self.0, &params.0, now_us) }
    }

    /// What may be in flight at present, by underlay, cap, pool and the peer's window.
    pub fn hold_leaving_bytes(&self, hold: &Hold, params: &Params) -> u32 {
        // SAFETY: all point to live values of the C types for the length of the call.
        let edge = unsafe { native::hold_leaving_edge(&self.0, &hold.0, &params.0) };
        edge.wrapping_sub(self.snd_una)
    }

    /// The shell holds a segment, in `bytes` of the buffer.
    #[inline]
    pub fn hold_kept(
        &self,
        hold: &mut Hold,
        buffer: &mut Buffer,
        params: &Params,
        segment: &Segment,
        bytes: u32,
    ) {
        let (hold, buffer) = (&mut hold.0, &mut buffer.0);
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_kept(&self.0, hold, buffer, &params.0, segment, bytes) }
    }

    /// The bytes of the buffer that the next segment of the guest, up to `end`, may take.
    #[inline]
    pub fn hold_room_bytes(&self, hold: &Hold, buffer: &Buffer, params: &Params, end: u32) -> u32 {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_room_bytes(&self.0, &hold.0, &buffer.0, &params.0, end) }
    }

    /// The bytes of the buffer that the flow may take (vFlood, equation 1).
    #[inline]
    pub fn hold_share_bytes(&self, hold: &Hold, buffer: &Buffer, params: &Params) -> u32 {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_share_bytes(&self.0, &hold.0, &buffer.0, &params.0) }
    }

    /// Does the flow have more than its share, if what others were granted and have not used is free?
    #[inline]
    pub fn hold_exceeds_share(&self, hold: &Hold, buffer: &Buffer, params: &Params) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_exceeds_share(&self.0, &hold.0, &buffer.0, &params.0) }
    }

    /// Settles what the flow is granted of the buffer, after a segment of either end.
    #[inline]
    pub fn hold_settle(&self, hold: &mut Hold, buffer: &mut Buffer, params: &Params, now_ms: u32) {
        let (hold, buffer) = (&mut hold.0, &mut buffer.0);
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_settle(&self.0, hold, buffer, &params.0, now_ms) }
    }

    /// For how long the guest has sent nothing new, with nothing held or in flight.
    #[inline]
    pub fn hold_idle_ms(&self, hold: &Hold, now_ms: u32) -> u32 {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::hold_idle_ms(&self.0, &hold.0, now_ms) }
    }

    /// After a SYN-ACK to the guest: is a window update due behind it, with the flow's last
    /// acknowledgement and window?
    #[inline]
    pub fn hold_opens(&mut self, hold: &Hold, buffer: &Buffer, params: &Params) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::hold_opens(&mut self.0, &hold.0, &buffer.0, &params.0) }
    }

    /// Does the shell hold the flow's segments?
    #[inline]
    pub fn is_holding(&self, hold: &Hold, params: &Params) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::is_holding(&self.0, &hold.0, &params.0) }
    }
}
