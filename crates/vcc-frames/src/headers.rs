//! Offsets of a frame's headers.

/// Offsets of the headers from the start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    pub ipv6: bool,
    pub l3: usize,
    pub l4: usize,
    /// The end of the IP packet, where Ethernet's padding begins.
    pub end: usize,
}
