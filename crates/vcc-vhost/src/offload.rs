//! The forms of frames, other than those on a wire, that a guest accepts.

use vcc_net::virtio::feature;

use crate::features::Features;

/// The offloads that a guest accepts in a frame to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Checksums to be completed.
    pub checksum: bool,
    /// Super-segments.
    pub tso4: bool,
    pub tso6: bool,
    /// Super-segments with CWR.
    pub ecn: bool,
}

impl Offload {
    /// Segmentation needs checksums (virtio 1.2, 5.1.3.1).
    pub(crate) fn from_features(features: Features) -> Self {
        let checksum = features.has(feature::GUEST_CSUM);
        let [tso4, tso6] =
            [feature::GUEST_TSO4, feature::GUEST_TSO6].map(|bit| checksum && features.has(bit));
        Offload { checksum, tso4, tso6, ecn: (tso4 || tso6) && features.has(feature::GUEST_ECN) }
    }
}
