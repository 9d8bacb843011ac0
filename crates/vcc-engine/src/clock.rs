//! Times of a flow's state, which wrap; the finer ones within the hour.

/// The time since `then`; 0 if it is ahead, as another CPU's clock may slightly be.
pub fn since(then: u32, now: u64) -> u64 {
    u64::try_from((now as u32).wrapping_sub(then) as i32).unwrap_or(0)
}
