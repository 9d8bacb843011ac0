//! Counts of the frames that the card has dropped.

/// Frames that the card has dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardCounts {
    /// From the guest: descriptors out of range, a header that contradicts its frame or the features
    /// that were negotiated, a frame too short or too long.
    pub bad_from_guest: u64,
    /// To the guest: longer than its buffers, or buffers out of range.
    pub bad_buffer: u64,
    /// To the guest: too many frames waited for its buffers.
    pub no_buffer: u64,
    /// To the guest: it needs an offload that the guest has not accepted, as just after a reboot.
    pub not_negotiated: u64,
    /// From the guest: the tap was down.
    pub wire_down: u64,
    /// From the guest: the tap did not take it, which found its header wrong or had no memory.
    pub wire_refused: u64,
    /// To the guest: the tap could not be read.
    pub wire_failed: u64,
}

/// How many reasons there are to drop a frame.
const REASONS: usize = 7;

impl CardCounts {
    /// Each count, and why frames are counted there.
    pub fn reasons(&self) -> [(u64, &'static str); REASONS] {
        [
            (
                self.bad_from_guest,
                "from the guest: an invalid frame, descriptor or virtio-net header",
            ),
            (
                self.bad_buffer,
                "to the guest: its receive buffers are too small or outside its memory",
            ),
            (self.no_buffer, "to the guest: it takes no more of them for now"),
            (
                self.not_negotiated,
                "to the guest: its driver has not negotiated the offload of the frame",
            ),
            (self.wire_down, "from the guest: the tap is down"),
            (
                self.wire_refused,
                "from the guest: the tap refused it, for a wrong header or lack of memory",
            ),
            (self.wire_failed, "to the guest: the tap could not be read"),
        ]
    }
}

/// The counts up to which the operator needs no further report.
#[derive(Default)]
pub(crate) struct Reported([u64; REASONS]);

impl Reported {
    /// Why frames were dropped, for each reason that has not been reported.
    pub(crate) fn news(&mut self, counts: &CardCounts) -> Vec<&'static str> {
        let mut news = Vec::new();
        for ((count, why), reported) in counts.reasons().into_iter().zip(&mut self.0) {
            if count > *reported {
                *reported = u64::MAX;
                news.push(why);
            }
        }
        news
    }

    /// Reports each reason again.
    pub(crate) fn begin_anew(&mut self, counts: &CardCounts) {
        self.0 = counts.reasons().map(|(count, _)| count);
    }
}
