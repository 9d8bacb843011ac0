//! The translation engine as Rust sees it: the C of `engine/`, compiled natively and unchanged.
//!
//! A shell hands each segment to [`Flow::from_guest`] or [`Flow::to_guest`] and carries out the
//! [`Action`] that comes back; [`Flow::deadline`] when nothing came. The engine does no I/O and
//! reads no clock.

mod params;
mod pool;
mod told;
mod treatment;
mod underlay;

pub mod sys {
    //! The engine's C types, generated from `engine/vcc.h` and `datapath/abi.h`.
    #![allow(non_camel_case_types, non_upper_case_globals, non_snake_case, missing_docs)]
    #![allow(clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use params::{GuestEcn, Mode, OnFull, Params, ParseNameError};
pub use pool::Pool;
pub use told::Stage;
pub use treatment::{PoolShare, Treatment};
pub use underlay::Underlay;

/// A segment as the shell parsed it.
pub type Segment = sys::vcc_segment;
/// What to do with it.
pub type Action = sys::vcc_action;

unsafe extern "C-unwind" {
    fn vcc_native_from_guest(
        flow: *mut sys::vcc_flow,
        params: *const sys::vcc_params,
        segment: *const Segment,
    ) -> Action;
    fn vcc_native_to_guest(
        flow: *mut sys::vcc_flow,
        params: *const sys::vcc_params,
        segment: *const Segment,
    ) -> Action;
    fn vcc_native_deadline(
        flow: *mut sys::vcc_flow,
        params: *const sys::vcc_params,
        now_us: u64,
    ) -> Action;
    fn vcc_native_judge_anew(flow: *mut sys::vcc_flow, params: *const sys::vcc_params);
    fn vcc_native_is_bound(flow: *const sys::vcc_flow) -> bool;
    fn vcc_native_is_managed(flow: *const sys::vcc_flow) -> bool;
    fn vcc_native_rto_us(flow: *const sys::vcc_flow, rto_min_us: u32) -> u32;
    fn vcc_native_look_within_ms(flow: *const sys::vcc_flow, params: *const sys::vcc_params)
    -> u32;
    fn vcc_native_gives_way(
        flow: *const sys::vcc_flow,
        now_ms: u32,
        flows: u32,
        flows_max: u32,
    ) -> bool;
    fn vcc_native_half_open_max(flows_max: u32) -> u32;
}

/// So many flows in their handshake fit a table of `flows_max`.
pub fn half_open_max(flows_max: u32) -> u32 {
    // SAFETY: it takes and returns a number.
    unsafe { vcc_native_half_open_max(flows_max) }
}

/// What two vcc ends tell each other on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feedback {
    /// The far end did not say that it is under vcc.
    None,
    Agreed,
    /// Agreed on, but then it ceased or could not be believed.
    Lost,
}

/// The state of one connection: the same bytes as in the kernel's map.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct FlowState(pub sys::vcc_flow);

impl std::ops::Deref for FlowState {
    type Target = sys::vcc_flow;

    fn deref(&self) -> &sys::vcc_flow {
        &self.0
    }
}

impl FlowState {
    /// Hands the engine a segment that the guest sent.
    pub fn from_guest(&mut self, params: &Params, segment: &Segment) -> Action {
        // SAFETY: all three point to live values of the C types for the length of the call.
        unsafe { vcc_native_from_guest(&mut self.0, &params.0, segment) }
    }

    /// Hands the engine a segment on its way to the guest.
    pub fn to_guest(&mut self, params: &Params, segment: &Segment) -> Action {
        // SAFETY: as above.
        unsafe { vcc_native_to_guest(&mut self.0, &params.0, segment) }
    }

    /// Tells the engine that time has passed, in us of the segments' clock.
    pub fn deadline(&mut self, params: &Params, now_us: u64) -> Action {
        // SAFETY: as above.
        unsafe { vcc_native_deadline(&mut self.0, &params.0, now_us) }
    }

    /// After a segment: no later than in so many ms the shell has to call [`FlowState::deadline`].
    pub fn look_within_ms(&self, params: &Params) -> u32 {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { vcc_native_look_within_ms(&self.0, &params.0) }
    }

    /// Has the connection closed, so that it is forgotten before its time in a table that is more
    /// than half full?
    pub fn gives_way(&self, now_ms: u32, flows: u32, flows_max: u32) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { vcc_native_gives_way(&self.0, now_ms, flows, flows_max) }
    }

    /// Is its handshake still going on?
    pub fn is_half_open(&self) -> bool {
        u32::from(self.stage) < sys::STAGE_ESTABLISHED
    }

    /// From the next segment on, a flow whose handshake has ended is treated by `params`.
    pub fn judge_anew(&mut self, params: &Params) {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { vcc_native_judge_anew(&mut self.0, &params.0) }
    }

    /// Did vcc have a part in the handshake, so that the connection would not do well without it?
    pub fn is_bound(&self) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { vcc_native_is_bound(&self.0) }
    }

    /// Is the underlay's law computed for this flow?
    pub fn is_managed(&self) -> bool {
        // SAFETY: a live value of the C type.
        unsafe { vcc_native_is_managed(&self.0) }
    }

    /// The retransmission timeout that a sender in the guest's place would have (RFC 6298).
    pub fn rto_us(&self, params: &Params) -> u32 {
        // SAFETY: a live value of the C type.
        unsafe { vcc_native_rto_us(&self.0, params.0.rto_min_us) }
    }

    /// The mean fraction of marked bytes, where the underlay is DCTCP or one of its kind.
    pub fn alpha(&self) -> Option<f64> {
        let underlay = Underlay::from_number(self.underlay)?;
        let has_alpha = ["dctcp", "dctcp-priority"].contains(&underlay.name());
        let alpha = f64::from(self.cc.own[sys::DCTCP_ALPHA as usize]);
        (has_alpha && self.is_managed()).then(|| alpha / f64::from(sys::DCTCP_ALPHA_ONE))
    }

    /// Whether the far end is under vcc and tells of marked bytes.
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
    pub fn has(&self, flag: sys::vcc_flow_flag) -> bool {
        self.flags & flag != 0
    }

    /// Bytes that the guest has in flight.
    pub fn flight_bytes(&self) -> u32 {
        self.snd_nxt.wrapping_sub(self.snd_una)
    }

    /// The last window that the guest was shown, in bytes.
    pub fn window_shown_bytes(&self) -> u32 {
        u32::from(self.window_shown) << self.wscale_shown
    }
}

/// Called by the engine where one of the design's laws does not hold. Only in builds with
/// debug assertions.
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
