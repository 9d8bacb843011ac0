//! The engine's structs as bytes.

use vcc_engine::sys;

/// A struct of the engine without padding, of which any bytes are a value.
pub(crate) trait Plain: Sized {}

impl Plain for sys::vcc_cc_state {}
impl Plain for sys::vcc_cc_ack {}
impl Plain for sys::vcc_path {}
impl Plain for sys::vcc_params {}

pub(crate) fn from_plain<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: the memory of a live value, whose type is plain.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

pub(crate) fn of_mut<T: Plain>(value: &mut T) -> &mut [u8] {
    // SAFETY: likewise, and any bytes are a value of it.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}
