//! The translation engine for Rust: the C of `engine/`, compiled natively.
//!
//! A shell passes each segment to [`FlowState::from_guest`] or [`FlowState::to_guest`] and carries
//! out the returned [`Action`]. It calls [`FlowState::deadline`] when a deadline expires. The
//! engine does no I/O and reads no clock.
//!
//! What a shell calls for each segment is inline, or each call would be two.

mod ack_thinning;
mod carried;
mod clock;
mod delay;
pub mod export;
mod flow_key;
mod flow_report;
mod frames;
mod guest_rate;
mod handover;
mod histogram;
mod hold;
mod limit;
mod loaded;
mod name;
mod params;
mod pmtu;
mod pool;
mod repair;
mod snoop;
mod split;
mod underlay;

pub mod sys {
    //! The engine's C types, generated from `engine/vcc.h` and `datapath/abi.h`.
    #![allow(non_camel_case_types, non_upper_case_globals, non_snake_case, missing_docs)]
    #![allow(clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

mod native {
    //! The functions of `native.c` and `frames.c`, without their prefix `vcc_native_`.
    #![allow(non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/native.rs"));
}

pub use ack_thinning::{Shown, Thin, is_ring_crowded};
pub use carried::Field;
pub use delay::DelayedBy;
pub use flow_key::FlowKey;
pub use flow_report::Stage;
pub use frames::{
    TcpLayout, fack_option, hello_option, holds_tcp, option_bytes, pack_option, parse_tcp,
    parse_tcp_options,
};
pub use guest_rate::{GuestRate, RateDue};
pub use histogram::{Delays, Histogram};
pub use hold::{Admission, Buffer, Hold};
pub use limit::{Awaited, Elsewhere, Limit, Phase, Repair, Untranslated, Unused};
pub use loaded::{Hooks, Loaded, Slot};
pub use name::ParseNameError;
pub use params::{Act, BufferPolicy, GuestEcn, Mode, OnFull, OnUnknown, Params, Receive};
pub use pmtu::{PathMtu, TooBig};
pub use pool::Pool;
pub use repair::{Recovery, RepairTimer, Retained};
pub use snoop::{Needs, Placed, Room, Said, Snoop};
pub use underlay::Underlay;

/// A parsed segment.
pub type Segment = sys::vcc_segment;
/// The engine's decision about it.
pub type Action = sys::vcc_action;

/// Is a table of `flows_max` so full that closed flows give way early?
pub fn is_crowded(flows: u32, flows_max: u32) -> bool {
    // SAFETY: it takes numbers and returns a bool.
    unsafe { native::is_crowded(flows, flows_max) }
}

/// The limit of half-open flows in a table of `flows_max`.
pub fn half_open_max(flows_max: u32) -> u32 {
    // SAFETY: it takes and returns a number.
    unsafe { native::half_open_max(flows_max) }
}

/// What is kept of a flow that was forgotten (engine/minisock.h).
#[derive(Clone, Copy, Debug, Default)]
pub struct Minisock(sys::vcc_minisock);

impl Minisock {
    /// Did the guest send the first SYN?
    pub fn guest_opened(&self) -> bool {
        self.0.flags & sys::FLOW_GUEST_OPENED != 0
    }

    /// Does a SYN of the guest begin another connection, so that the guest has ended this one?
    pub fn is_superseded(&self, segment: &Segment) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::is_superseded(&self.0, segment) }
    }
}

/// State of a connection's feedback between two vcc ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feedback {
    /// Not negotiated.
    None,
    Agreed,
    /// Negotiated, but reports stopped or were impossible.
    Lost,
}

/// The state of a connection, with the layout of the kernel's map.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct FlowState(pub sys::vcc_flow);

impl std::ops::Deref for FlowState {
    type Target = sys::vcc_flow;

    #[inline]
    fn deref(&self) -> &sys::vcc_flow {
        &self.0
    }
}

impl FlowState {
    /// A segment from the guest.
    #[inline]
    pub fn from_guest(&mut self, params: &Params, segment: &Segment) -> Action {
        let mut action = Action::default();
        self.from_guest_into(params, segment, &mut action);
        action
    }

    /// The same, with the action where it is used: a copy of memory that has just been written
    /// takes long.
    #[inline]
    pub fn from_guest_into(&mut self, params: &Params, segment: &Segment, action: &mut Action) {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::from_guest(&mut self.0, &params.0, segment, action) }
    }

    /// A segment to the guest.
    #[inline]
    pub fn to_guest(&mut self, params: &Params, segment: &Segment) -> Action {
        let mut action = Action::default();
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::to_guest(&mut self.0, &params.0, segment, &mut action) }
        action
    }

    /// A deadline expired; `now_us` is on the segments' clock. In a [crowded](is_crowded) table, a
    /// closed flow is forgotten early.
    pub fn deadline(&mut self, params: &Params, now_us: u64, crowded: bool) -> Action {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::deadline(&mut self.0, &params.0, now_us, crowded) }
    }

    /// After a segment: [`FlowState::deadline`] is due within this time.
    #[inline]
    pub fn look_within_ms(&self, params: &Params) -> u32 {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::look_within_ms(&self.0, &params.0) }
    }

    /// Is the handshake incomplete?
    #[inline]
    pub fn is_half_open(&self) -> bool {
        u32::from(self.stage) < sys::STAGE_ESTABLISHED
    }

    /// Takes over a connection that comes with its guest, as it was described elsewhere. None if no
    /// connection can have such a state.
    pub fn arrive(mut self, params: &Params, now_us: u64) -> Option<Self> {
        // SAFETY: both point to live values of the C types for the length of the call.
        let err = unsafe { native::arrive(&mut self.0, &params.0, now_us) };
        (err == 0).then_some(self)
    }

    /// What is kept of the flow, treated by `params`, when it is forgotten. None if nobody depends on
    /// it any more.
    pub fn minisock(&self, params: &Params) -> Option<Minisock> {
        let mut minisock = Minisock::default();
        // SAFETY: all point to live values of the C types for the length of the call.
        let leaves = unsafe { native::leave_minisock(&self.0, &params.0, &mut minisock.0) };
        leaves.then_some(minisock)
    }

    /// Has the handshake completed at some time?
    pub fn has_been_open(&self) -> bool {
        // SAFETY: it points to a live value of the C type for the length of the call.
        unsafe { native::has_been_open(&self.0) }
    }

    /// Restores a new flow from the minisock. Returns false if no connection can have such a state.
    pub fn revive(&mut self, minisock: &Minisock, params: &Params, now_us: u64) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::revive(&mut self.0, &minisock.0, &params.0, now_us) == 0 }
    }

    /// Does the guest come back, with the numbers of a description, to the flow that has stayed
    /// here? Then the flow keeps what it knows, and catches up.
    pub fn come_back(&mut self, described: &Self, now_ms: u32) -> bool {
        // SAFETY: it points to a live value of the C type for the length of the call.
        unsafe { native::come_back(&mut self.0, described.snd_una, described.rcv_wup, now_ms) }
    }

    /// The guest has sent the first fragment of a segment, which has this much of it. Returns whether
    /// that releases the flow (engine/fragments.h).
    pub fn fragment_from_guest(&mut self, params: &Params, segment: &Segment) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::fragment_from_guest(&mut self.0, &params.0, segment) }
    }

    /// Treats the flow by `params` from its next segment on.
    pub fn judge_anew(&mut self, params: &Params) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::judge_anew(&mut self.0, &params.0) }
    }

    /// Continues with `to` if its underlay is `from`. Both must bring ECN, or neither.
    pub fn move_underlay(&mut self, from: Underlay, to: Underlay) {
        // SAFETY: a live value of the C type for the length of the call.
        unsafe { native::move_underlay(&mut self.0, from.number(), to.number()) }
    }

    /// Does header prediction cover the segment (engine/header_prediction.h)?
    pub fn is_expected(&self, params: &Params, segment: &Segment, to_guest: bool) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::is_predicted(&self.0, &params.0, segment, to_guest) }
    }

    /// Does a segment that header prediction covers need the exact time (engine/clock.h)?
    pub fn needs_time(&self, params: &Params, segment: &Segment, to_guest: bool) -> bool {
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::needs_time(&self.0, &params.0, segment, to_guest) }
    }

    /// What a shell does with a segment while another CPU holds the flow for too long
    /// (engine/contended_flow.h).
    pub fn unheld(&self, params: &Params, segment: &Segment, to_guest: bool) -> Action {
        let mut action = Action::default();
        // SAFETY: all point to live values of the C types for the length of the call.
        unsafe { native::unheld(&self.0, &params.0, segment, to_guest, &mut action) }
        action
    }

    /// Did vcc change the handshake, so that the connection depends on it?
    pub fn is_bound(&self) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { native::is_bound(&self.0) }
    }

    /// Does the state satisfy the invariant of every flow between two calls (`engine/invariant.h`)?
    pub fn is_sound(&self) -> bool {
        // SAFETY: the engine reads the flow only.
        unsafe { native::is_sound(&self.0) }
    }

    /// Do guest and peer use different window scales, or may they when the handshake ends?
    pub fn depends_on_translation(&self) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { native::depends_on_translation(&self.0) }
    }

    /// Does the connection, or its handshake so far, depend on vcc?
    pub fn is_kept(&self) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { native::is_kept(&self.0) }
    }

    /// Does the engine compute the underlay's window for this flow?
    pub fn is_managed(&self) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { native::is_managed(&self.0) }
    }

    /// The modelled sender's RTO (RFC 6298).
    pub fn rto_us(&self, params: &Params) -> u32 {
        // SAFETY: a live value of the C type.
        unsafe { native::rto_us(&self.0, params.0.rto_min_us) }
    }

    /// DCTCP's alpha, if the underlay keeps one.
    pub fn alpha(&self) -> Option<f64> {
        let has_alpha = Underlay::from_number(self.underlay)?.has_alpha();
        let alpha = f64::from(self.cc.own[sys::CC_OWN_ALPHA as usize]);
        (has_alpha && self.is_managed()).then(|| alpha / f64::from(sys::CC_ALPHA_ONE))
    }

    /// Is the far end under vcc, and does it report marked bytes?
    pub fn feedback(&self) -> Feedback {
        if self.has(sys::FLOW_FEEDBACK_LOST) {
            Feedback::Lost
        } else if self.has(sys::FLOW_FEEDBACK) {
            Feedback::Agreed
        } else {
            Feedback::None
        }
    }

    /// Is one of `enum vcc_flow_flag` set?
    #[inline]
    pub fn has(&self, flag: sys::vcc_flow_flag) -> bool {
        self.flags & flag != 0
    }

    /// An ACK to the guest that repeats the last acknowledgement and window that it was shown. It has
    /// no options: Linux accepts a segment without timestamps from a peer that negotiated them (RFC
    /// 7323, 3.2 would drop it), and stale ones would fail PAWS.
    pub fn repeated_ack(&self) -> Segment {
        Segment {
            seq: self.rcv_nxt,
            ack: self.snd_una,
            window: self.window_shown,
            flags: sys::TCP_ACK as u16,
            ..Segment::default()
        }
    }

    /// Bytes that the guest has in flight.
    #[inline]
    pub fn flight_bytes(&self) -> u32 {
        self.snd_nxt.wrapping_sub(self.snd_una)
    }
}

/// Called by the engine when a law is broken, in builds with debug assertions only.
#[unsafe(no_mangle)]
extern "C-unwind" fn vcc_law_broken(
    law: *const std::ffi::c_char,
    file: *const std::ffi::c_char,
    line: std::ffi::c_int,
) {
    // SAFETY: the engine passes string literals.
    let (law, file) = unsafe { (std::ffi::CStr::from_ptr(law), std::ffi::CStr::from_ptr(file)) };
    panic!("law broken at {}:{line}: {}", file.to_string_lossy(), law.to_string_lossy());
}
