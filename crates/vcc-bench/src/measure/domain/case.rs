//! A case: the segments of its turn, and how many leave for the fabric by it.

/// Payload of a segment: the MSS that the SYN-ACK offers the guest, which the port has rounded to the
/// unit of the windows shown, less timestamps.
pub(super) const SEG_BYTES: u32 = 1440;
/// Segments of data, or ACKs where there is no data, in each turn of a case. Also the underlay's
/// window.
pub(super) const SEGS_PER_TURN: u32 = 88;

/// An event at the port.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// The guest sends this many segments as one frame.
    Data { segs: u32 },
    /// The peer acknowledges this many more segments.
    Ack { segs: u32 },
    /// The peer sends a segment, which the guest's ring takes. The host's card has verified its
    /// checksum, or has left that to the port.
    Received { is_verified: bool },
    /// The guest's ring has room for as many segments: it takes turns.
    Room { segs: u32 },
    /// The port sends the acknowledgement that is due to the guest.
    Promise,
}

pub(super) struct Case {
    pub name: &'static str,
    pub what: &'static str,
    /// The turn is `times` of these.
    pub events: &'static [Event],
    pub times: u32,
    /// Segments that leave for the fabric in a turn: the others are held.
    pub leaving_segs: u32,
    /// Data with its ACKs.
    pub bulk: bool,
}
