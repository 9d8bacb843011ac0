//! Plain data: structures whose bytes are stored in the kernel's maps.

use vcc_engine::sys;

/// # Safety
/// Any bytes must be a valid value of the type.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a C struct of integers.
unsafe impl Plain for sys::vcc_params {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_key {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_arrival {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_entry {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_usage {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_host_usage {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_counts {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_event {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_neighbour_at {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_neighbour_key {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_policy {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_rule_set {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_prefix {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_port_sets {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_rule_totals {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_pool {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_host_constants {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_port {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_slots {}
// SAFETY: integers have no invalid bytes.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl<const BYTES: usize> Plain for [u8; BYTES] {}

/// # Safety
/// The type must have no padding. C headers have it refused by `#pragma GCC diagnostic error "-Wpadded"`.
pub(crate) unsafe trait Dense: Plain {}

// SAFETY: its header refuses padding.
unsafe impl Dense for sys::vcc_params {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_key {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_arrival {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_slots {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_neighbour_key {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_policy {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_rule_set {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_prefix {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_port_sets {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_rule_totals {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_pool {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_host_constants {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_port {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_entry {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_usage {}
// SAFETY: as above.
unsafe impl Dense for sys::vcc_host_usage {}
// SAFETY: it has no parts.
unsafe impl Dense for u32 {}
// SAFETY: nor holes between bytes.
unsafe impl<const BYTES: usize> Dense for [u8; BYTES] {}

/// None where the length differs from the type's.
pub(crate) fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the length is checked, the read is unaligned, and any bytes are a valid value.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

pub(crate) fn to_bytes<T: Dense>(value: &T) -> &[u8] {
    // SAFETY: pointer and length are those of the value, all of whose bytes are initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of_val(value)) }
}
