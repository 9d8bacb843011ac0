//! Shared by the engine's tests: segments, a connection seen from the port, and a simulation.

mod conn;
mod seg;
pub mod sim;

pub use conn::{Conn, PEER_ISS, PEER_WINDOW, PEER_WSCALE, ROOM_BYTES};
pub use seg::{Seg, linux_syn, seg};

use vcc_engine::{Action, Params, Segment};

/// Initial sequence numbers whose data crosses nothing, the sign bit, and the wrap.
pub const ISNS: [u32; 3] = [0, 0x7fff_ffff, 0xffff_ff00];

/// The default parameters with a change.
pub fn params(change: impl FnOnce(&mut vcc_engine::sys::vcc_params)) -> Params {
    let mut params = Params::default();
    change(&mut params.0);
    params
}

/// The default parameters with another underlay.
pub fn underlay(name: &str) -> Params {
    params(|p| p.underlay = name.parse::<vcc_engine::Underlay>().unwrap().number())
}

/// May the windows of SYNs to the guest be lowered to the first flight (law 3)?
pub fn limits_first_flight(params: &Params) -> bool {
    let p = &params.0;
    p.police != 0 || p.window_cap_bytes != 0 || p.rate_cap_bytes_per_ms != 0
}

/// Does the action request this of `enum vcc_emit`?
pub fn emits(action: &Action, emit: vcc_engine::sys::vcc_emit) -> bool {
    u32::from(action.emit) == emit
}

/// The segment leaves unchanged.
#[track_caller]
pub fn assert_untouched(action: &Action, segment: &Segment) {
    assert_eq!(action.verdict, vcc_engine::sys::VCC_PASS as u8, "verdict");
    assert_eq!(action.flags, segment.flags, "flags");
    assert_eq!(action.ip_ecn, segment.ip_ecn, "IP ECN field");
    assert_eq!(action.window, segment.window, "window");
    assert_eq!(action.mss, segment.mss, "MSS");
    assert_eq!(action.wscale, segment.wscale, "window scale");
    assert_eq!((action.strip, action.emit, action.forged), (0, 0, 0), "options of ours");
}

/// Are all of these TCP flags set?
pub fn has_flags(action: &Action, flags: u32) -> bool {
    u32::from(action.flags) & flags == flags
}

/// Is none of these TCP flags set?
pub fn lacks_flags(action: &Action, flags: u32) -> bool {
    u32::from(action.flags) & flags == 0
}

pub fn is_ect0(action: &Action) -> bool {
    u32::from(action.ip_ecn) == vcc_engine::sys::IP_ECN_ECT_0
}

pub fn is_not_ect(action: &Action) -> bool {
    u32::from(action.ip_ecn) == vcc_engine::sys::IP_ECN_NOT_ECT
}

pub fn is_dropped(action: &Action) -> bool {
    u32::from(action.verdict) == vcc_engine::sys::VCC_DROP
}
