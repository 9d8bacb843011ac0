//! Windows that connections share.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Unique among the policy's pools.
    pub name: String,
    /// What the windows of its connections add up to, however many there are.
    pub window_bytes: u32,
}
