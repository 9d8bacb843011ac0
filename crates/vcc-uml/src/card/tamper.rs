//! What stands between a guest's kernel and its port, and changes what passes: a kernel that does
//! not keep to the rules.

/// Frames that take the place of one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tampered {
    /// To the port, as the guest's.
    pub sent: Vec<Vec<u8>>,
    /// To the guest's kernel.
    pub received: Vec<Vec<u8>>,
}

/// Frames are as on a wire: super-segments are cut, checksums are complete.
pub trait Tamper {
    /// A frame that the guest's kernel sends.
    fn sends(&mut self, frame: Vec<u8>) -> Tampered;

    /// A frame that the port hands to the guest.
    fn receives(&mut self, frame: Vec<u8>) -> Tampered;
}
