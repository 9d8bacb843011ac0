//! Modular comparison of sequence numbers (RFC 9293, 3.4).

#[inline]
pub fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[inline]
pub fn after(a: u32, b: u32) -> bool {
    before(b, a)
}
