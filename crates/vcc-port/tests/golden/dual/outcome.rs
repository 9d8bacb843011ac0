//! The output for a frame, which was the same of all.

use vcc_engine::Action;
use vcc_frames::wire::TCP_BYTES;

use crate::layout::Layout;

/// The outcome of a frame.
pub struct Outcome {
    pub at: Layout,
    /// If so, `frame` is the frame that was sent.
    pub dropped: bool,
    pub frame: Vec<u8>,
    pub action: Action,
    /// The FACK sent with it.
    pub fack: Option<Vec<u8>>,
}

impl Outcome {
    pub fn options(&self) -> &[u8] {
        &self.frame[self.at.l4 + TCP_BYTES..self.at.payload]
    }

    pub fn flags(&self) -> u16 {
        self.at.flags(&self.frame)
    }

    pub fn window(&self) -> u16 {
        self.at.window(&self.frame)
    }

    pub fn ecn(&self) -> u8 {
        self.at.ecn(&self.frame)
    }
}
