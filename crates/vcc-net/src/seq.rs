//! Modular comparison of sequence numbers (RFC 9293, 3.4).

#[inline]
pub fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[inline]
pub fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

/// By how many bytes `to` is ahead of `from`; 0 if it is behind.
#[inline]
pub fn advance(from: u32, to: u32) -> u32 {
    if after(to, from) { to.wrapping_sub(from) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advance_wraps_and_is_never_negative() {
        assert_eq!(advance(7, 7), 0);
        assert_eq!(advance(u32::MAX - 1, 3), 5);
        assert_eq!(advance(3, u32::MAX - 1), 0);
        assert_eq!(advance(0, i32::MAX as u32), i32::MAX as u32);
    }
}
