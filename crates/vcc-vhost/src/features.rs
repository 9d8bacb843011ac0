//! The features that the card offers, and those that its guest has accepted.

/// VIRTIO_NET_F_*, VIRTIO_RING_F_*, VIRTIO_F_* and VHOST_USER_F_*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features(pub u64);

impl Features {
    /// The guest may leave checksums to the host, and the host to the guest.
    pub(crate) const CSUM: u64 = 1 << 0;
    pub(crate) const GUEST_CSUM: u64 = 1 << 1;
    /// Super-segments toward the guest, and from it.
    pub(crate) const GUEST_TSO4: u64 = 1 << 7;
    pub(crate) const GUEST_TSO6: u64 = 1 << 8;
    pub(crate) const GUEST_ECN: u64 = 1 << 9;
    pub(crate) const HOST_TSO4: u64 = 1 << 11;
    pub(crate) const HOST_TSO6: u64 = 1 << 12;
    pub(crate) const HOST_ECN: u64 = 1 << 13;
    /// A frame may take several receive buffers.
    pub(crate) const MRG_RXBUF: u64 = 1 << 15;
    /// Several pairs of rings. The virtual machine monitor serves the control ring.
    pub(crate) const MQ: u64 = 1 << 22;
    /// The card logs the guest's pages that it writes to.
    pub(crate) const LOG_ALL: u64 = 1 << 26;
    pub(crate) const INDIRECT_DESC: u64 = 1 << 28;
    pub(crate) const EVENT_IDX: u64 = 1 << 29;
    pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;
    pub(crate) const VERSION_1: u64 = 1 << 32;

    pub(crate) const OFFERED: Features = Features(
        Self::CSUM
            | Self::GUEST_CSUM
            | Self::GUEST_TSO4
            | Self::GUEST_TSO6
            | Self::GUEST_ECN
            | Self::HOST_TSO4
            | Self::HOST_TSO6
            | Self::HOST_ECN
            | Self::MRG_RXBUF
            | Self::MQ
            | Self::INDIRECT_DESC
            | Self::EVENT_IDX
            | Self::PROTOCOL_FEATURES
            | Self::VERSION_1,
    );

    pub(crate) fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }
}
