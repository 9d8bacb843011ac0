//! Memory of frames that a port has let go, for the copies that it makes: to allocate it anew for each
//! takes longer than to copy a segment into it.

use crate::frame::Frame;

/// Frames of one segment. Smaller ones the allocator has at hand, and for larger ones it is the copying
/// that takes the time.
const FRAME_MIN_BYTES: usize = 1025;
const FRAME_MAX_BYTES: usize = 2 * (FRAME_MIN_BYTES - 1);
/// What a port keeps at most, of what it will probably need again: a window of a few hundred segments, in
/// 512 KiB.
const FRAMES_MAX: usize = 256;
/// What no copy has needed for at least so long is given back.
const IDLE_NS: u64 = 1_000_000_000;

/// It is no part of what the port accounts for: that is charged by its use. The last one comes first, as
/// it is still in the CPU's caches.
#[derive(Default)]
pub(crate) struct Spare {
    memory: Vec<Vec<u8>>,
    /// Since `looked_ns`.
    is_needed: bool,
    looked_ns: u64,
}

/// A copy of the port begins without.
impl Clone for Spare {
    fn clone(&self) -> Self {
        Spare::default()
    }
}

impl Spare {
    /// A copy of the frame.
    pub(crate) fn copy(&mut self, frame: &Frame) -> Frame {
        let mut bytes = self.memory_of(frame.bytes.len());
        bytes.extend_from_slice(&frame.bytes);
        Frame { bytes, ..*frame }
    }

    /// Memory for so many bytes, and for no more than twice as many.
    #[inline]
    pub(crate) fn memory_of(&mut self, size_bytes: usize) -> Vec<u8> {
        if !is_of_one_segment(size_bytes) {
            return Vec::with_capacity(size_bytes);
        }
        self.is_needed = true;
        let mut bytes = self.memory.pop().unwrap_or_default();
        bytes.clear();
        bytes.reserve_exact(size_bytes);
        bytes
    }

    /// The frame is not needed any more.
    #[inline]
    pub(crate) fn take(&mut self, frame: Frame) {
        if self.memory.len() < FRAMES_MAX && is_of_one_segment(frame.bytes.capacity()) {
            self.memory.push(frame.bytes);
        }
    }

    /// A flow's deadline has come: that of one that is idle, too.
    pub(crate) fn release_unused(&mut self, now_ns: u64) {
        if now_ns - self.looked_ns < IDLE_NS {
            return;
        }
        self.looked_ns = now_ns;
        if !std::mem::take(&mut self.is_needed) {
            self.memory = Vec::new();
        }
    }

    /// There are no flows.
    pub(crate) fn clear(&mut self) {
        self.memory = Vec::new();
    }
}

fn is_of_one_segment(bytes: usize) -> bool {
    (FRAME_MIN_BYTES..=FRAME_MAX_BYTES).contains(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Checksum;

    fn frame(bytes: usize, capacity: usize) -> Frame {
        let mut memory = Vec::with_capacity(capacity);
        memory.resize(bytes, 7);
        Frame { gso_size: 5, checksum: Checksum::Partial, bytes: memory }
    }

    #[test]
    fn a_copy_takes_memory_that_was_let_go() {
        let mut spare = Spare::default();
        let (old, new) = (frame(1100, 1100), frame(1500, 1500));
        let memory = frame(1800, 2000);
        let place = memory.bytes.as_ptr();
        spare.take(old);
        spare.take(memory);
        let copy = spare.copy(&new);
        assert_eq!((&copy, copy.bytes.as_ptr()), (&new, place), "the last one");
        let copy = spare.copy(&new);
        assert_eq!((&copy, copy.bytes.capacity()), (&new, 1500), "one that was too small");
        assert_eq!(spare.copy(&new), new, "one that is new");
    }

    #[test]
    fn little_is_kept_and_no_copy_takes_more_than_twice_its_size() {
        let mut spare = Spare::default();
        for capacity in [0, 60, 1024, 2049, 9000, 65_536] {
            spare.take(frame(0, capacity));
        }
        assert!(spare.memory.is_empty());
        for _ in 0..2 * FRAMES_MAX {
            spare.take(frame(FRAME_MAX_BYTES, FRAME_MAX_BYTES));
        }
        assert_eq!(spare.memory.len(), FRAMES_MAX);
        for bytes in [60, 1024, 1025, 2048, 2049] {
            let copy = spare.copy(&frame(bytes, bytes));
            assert_eq!(copy, frame(bytes, bytes));
            assert!(copy.bytes.capacity() <= 2 * bytes, "{bytes}");
        }
        assert!(spare.clone().memory.is_empty());
    }

    #[test]
    fn what_is_not_needed_is_given_back() {
        let mut spare = Spare::default();
        spare.take(frame(1500, 1500));
        for (now_ns, is_needed, kept) in [
            (IDLE_NS, true, 1),
            (2 * IDLE_NS - 1, false, 1),
            (2 * IDLE_NS, true, 1),
            (3 * IDLE_NS, false, 0),
        ] {
            if is_needed {
                let copy = spare.copy(&frame(1500, 1500));
                spare.take(copy);
            }
            spare.release_unused(now_ns);
            assert_eq!(spare.memory.len(), kept, "{now_ns}");
        }
    }
}
