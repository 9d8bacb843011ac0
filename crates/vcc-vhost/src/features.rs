//! The features that the card offers, and those that its guest has accepted.

use vcc_net::virtio::feature;

/// A set of [`feature`]s. With `MQ`, the virtual machine monitor serves the control ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features(pub u64);

impl Features {
    pub(crate) const OFFERED: Features = Features(
        feature::CSUM
            | feature::GUEST_CSUM
            | feature::GUEST_TSO4
            | feature::GUEST_TSO6
            | feature::GUEST_ECN
            | feature::HOST_TSO4
            | feature::HOST_TSO6
            | feature::HOST_ECN
            | feature::MRG_RXBUF
            | feature::MQ
            | feature::INDIRECT_DESC
            | feature::EVENT_IDX
            | feature::PROTOCOL_FEATURES
            | feature::VERSION_1,
    );

    pub(crate) fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }
}
