//! Windows that connections share.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Unique among the policy's pools.
    pub name: String,
    /// The sum of the windows of all its connections.
    pub window_bytes: u32,
}
