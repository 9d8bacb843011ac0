//! Numbers of virtio (virtio 1.2) that a network card needs.

/// VIRTIO_NET_F_*, VIRTIO_RING_F_*, VIRTIO_F_*, and what vhost adds to them.
pub mod feature {
    /// The guest may leave checksums to the host, and the host to the guest.
    pub const CSUM: u64 = 1 << 0;
    pub const GUEST_CSUM: u64 = 1 << 1;
    /// The card knows its MTU and its address.
    pub const MTU: u64 = 1 << 3;
    pub const MAC: u64 = 1 << 5;
    /// Super-segments toward the guest, and from it.
    pub const GUEST_TSO4: u64 = 1 << 7;
    pub const GUEST_TSO6: u64 = 1 << 8;
    pub const GUEST_ECN: u64 = 1 << 9;
    pub const HOST_TSO4: u64 = 1 << 11;
    pub const HOST_TSO6: u64 = 1 << 12;
    pub const HOST_ECN: u64 = 1 << 13;
    /// A frame may take several receive buffers.
    pub const MRG_RXBUF: u64 = 1 << 15;
    /// Several pairs of rings.
    pub const MQ: u64 = 1 << 22;
    /// VHOST_F_LOG_ALL: the card logs the guest's pages that it writes to.
    pub const LOG_ALL: u64 = 1 << 26;
    pub const INDIRECT_DESC: u64 = 1 << 28;
    pub const EVENT_IDX: u64 = 1 << 29;
    /// VHOST_USER_F_PROTOCOL_FEATURES: the card has features of vhost-user itself.
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    pub const VERSION_1: u64 = 1 << 32;
}
