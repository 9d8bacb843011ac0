//! Segments for tests.

use super::captured::{ACK, Captured, IpFields};
use crate::options::Options;

/// An ACK, changed.
pub(crate) fn captured(change: impl FnOnce(&mut Captured)) -> Captured {
    let ip = IpFields {
        traffic_class: 0,
        hops: 64,
        flow_label: 0,
        dont_fragment: true,
        ipv4_id: Some(1),
        more: Vec::new(),
    };
    let mut segment = Captured {
        offset: 0,
        time_ns: 0,
        ip,
        seq: 0,
        ack: 0,
        flags: ACK,
        reserved: 0,
        window: 100,
        scale: Some(0),
        urgent: 0,
        options: Options::default(),
        timestamps: None,
        payload_bytes: 0,
        payload: Vec::new(),
    };
    change(&mut segment);
    segment
}
