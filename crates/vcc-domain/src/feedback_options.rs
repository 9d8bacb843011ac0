//! Options that vcc sends and reads, not its guest; `engine/feedback.h` has their layout.

use vcc_engine::sys;
pub(crate) use vcc_engine::{fack_option as fack, hello_option as hello, pack_option as pack};

/// Size of an appended or trimmed option: a Hello or a PACK.
pub(crate) const APPENDED_BYTES: usize = sys::OPT_PACK_BYTES as usize;
pub(crate) const FACK_BYTES: usize = sys::OPT_FACK_BYTES as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_layout_of_feedback_h() {
        let feedback = sys::vcc_feedback { ect0_bytes: 0x01_0203, ce_bytes: 0xf4_f5f6 };
        assert_eq!(pack(&feedback), [172, 8, 1, 2, 3, 0xf4, 0xf5, 0xf6]);
        assert_eq!(fack(&feedback), [253, 12, 0x76, 0x63, 1, 3, 1, 2, 3, 0xf4, 0xf5, 0xf6]);
        let accept = sys::HELLO_ACCEPT as u8;
        assert_eq!(hello(accept), [253, 8, 0x76, 0x63, 1, 2, 0, 0]);
    }
}
