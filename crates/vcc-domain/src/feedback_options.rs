//! Options that vcc sends and reads, not its guest; `engine/feedback.h` has their layout.

use vcc_engine::sys;

/// The kind of AccECN0 (RFC 9768, 3.2.3).
pub(crate) const KIND_PACK: u8 = 172;
/// The kind of AccECN1, with the ECT counters in the other order.
pub(crate) const KIND_ACCECN1: u8 = 174;
/// The kind of experimental options (RFC 6994).
pub(crate) const KIND_EXPERIMENT: u8 = 253;
pub(crate) const EXPERIMENT_NAME: [u8; 2] = *b"vc";
pub(crate) const VERSION: u8 = 1;
/// The type of a FACK, in addition to those of `enum vcc_hello`.
pub(crate) const WHAT_FACK: u8 = 3;

/// Size of an appended or trimmed option: a Hello or a PACK.
pub(crate) const APPENDED_BYTES: usize = 8;
pub(crate) const FACK_BYTES: usize = 12;

pub(crate) fn hello(what: u8) -> [u8; APPENDED_BYTES] {
    let [v, c] = EXPERIMENT_NAME;
    [KIND_EXPERIMENT, APPENDED_BYTES as u8, v, c, VERSION, what, 0, 0]
}

pub(crate) fn pack(feedback: &sys::vcc_feedback) -> [u8; APPENDED_BYTES] {
    let mut option = [KIND_PACK, APPENDED_BYTES as u8, 0, 0, 0, 0, 0, 0];
    option[2..].copy_from_slice(&counters(feedback));
    option
}

pub(crate) fn fack(feedback: &sys::vcc_feedback) -> [u8; FACK_BYTES] {
    let [v, c] = EXPERIMENT_NAME;
    let mut option =
        [KIND_EXPERIMENT, FACK_BYTES as u8, v, c, VERSION, WHAT_FACK, 0, 0, 0, 0, 0, 0];
    option[6..].copy_from_slice(&counters(feedback));
    option
}

/// Two counters of 24 bits each.
fn counters(feedback: &sys::vcc_feedback) -> [u8; 6] {
    let [_, a, b, c] = feedback.ect0_bytes.to_be_bytes();
    let [_, d, e, f] = feedback.ce_bytes.to_be_bytes();
    [a, b, c, d, e, f]
}

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
