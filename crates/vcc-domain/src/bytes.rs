//! Values as bytes, for another process of the same version on this machine.

use vcc_engine::sys;

/// The bytes are of another version, or cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBytes;

/// First: what must be equal in both processes.
pub(crate) const HEAD: [u32; 7] = [
    u32::from_le_bytes(*b"vcc\0"),
    sys::LAYOUT_VERSION,
    size_of::<sys::vcc_params>() as u32,
    size_of::<sys::vcc_key>() as u32,
    size_of::<sys::vcc_flow>() as u32,
    size_of::<sys::vcc_pool>() as u32,
    sys::COUNT_MAX,
];

/// # Safety
/// A type without padding, of which any bytes are a value.
pub(crate) unsafe trait Plain: Copy + Default {}

// SAFETY: structs of integers, whose header refuses padding.
unsafe impl Plain for sys::vcc_params {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_key {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_flow {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_rule_totals {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_delays {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_pool {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}

pub(crate) fn write<T: Plain>(value: &T, bytes: &mut Vec<u8>) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: the bytes of a plain value, all of which are initialised.
    bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start, size_of::<T>()) });
}

pub(crate) fn read<T: Plain>(bytes: &mut &[u8]) -> Result<T, BadBytes> {
    let (value, rest) = bytes.split_at_checked(size_of::<T>()).ok_or(BadBytes)?;
    *bytes = rest;
    // SAFETY: as many bytes as the type has, of which any are a value, at any address.
    Ok(unsafe { value.as_ptr().cast::<T>().read_unaligned() })
}

pub(crate) fn write_text(text: &str, bytes: &mut Vec<u8>) {
    write(&(text.len() as u32), bytes);
    bytes.extend_from_slice(text.as_bytes());
}

pub(crate) fn read_text(bytes: &mut &[u8]) -> Result<String, BadBytes> {
    let length = read::<u32>(bytes)? as usize;
    let (text, rest) = bytes.split_at_checked(length).ok_or(BadBytes)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).map_err(|_| BadBytes)
}

/// With the head alone.
pub(crate) fn begin() -> Vec<u8> {
    let mut bytes = Vec::new();
    HEAD.iter().for_each(|word| write(word, &mut bytes));
    bytes
}

/// Takes the head off.
pub(crate) fn read_head(bytes: &mut &[u8]) -> Result<(), BadBytes> {
    for word in HEAD {
        if read::<u32>(bytes)? != word {
            return Err(BadBytes);
        }
    }
    Ok(())
}

/// All bytes have been read.
pub(crate) fn at_end<T>(bytes: &[u8], value: T) -> Result<T, BadBytes> {
    if bytes.is_empty() { Ok(value) } else { Err(BadBytes) }
}
