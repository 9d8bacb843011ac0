//! The log of the guest's pages that the card has written to, which a front end reads to copy the
//! memory of a guest that runs (vhost-user, "Migration").

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use vm_memory::bitmap::{Bitmap, BitmapSlice, NewBitmap, WithBitmapSlice};
use vm_memory::{FileOffset, GuestMemoryMmap, MmapRegion, VolatileMemory};

use vcc_net::vhost_user::{End, Message};

/// VHOST_LOG_PAGE.
const PAGE_BYTES: u64 = 0x1000;
const PAGES_A_BYTE: u64 = 8;

/// The guest's memory. Every write to it is in the log, if there is one.
pub(crate) type GuestMemory = GuestMemoryMmap<Pages>;

/// The front end's memory of a bit for each page.
#[derive(Debug)]
pub(crate) struct Log(MmapRegion);

impl Log {
    /// VHOST_USER_SET_LOG_BASE.
    pub(crate) fn map(message: &Message, fd: Option<OwnedFd>) -> Result<Self, End> {
        let (bytes, offset) = (message.long(0)?, message.long(1)?);
        let refused =
            |why: &str| End::refused(format!("a log of {bytes:#x} bytes at {offset:#x}: {why}"));
        let file = File::from(fd.ok_or_else(|| refused("without a descriptor"))?);
        let metadata = file.metadata().map_err(|error| refused(&error.to_string()))?;
        let end = offset.checked_add(bytes).ok_or_else(|| refused("beyond all memory"))?;
        // Whoever touches what lies behind is killed (SIGBUS).
        if metadata.is_file() && metadata.len() < end {
            return Err(refused(&format!("its file ends at {:#x}", metadata.len())));
        }
        let bytes = usize::try_from(bytes).map_err(|_| refused("beyond all memory"))?;
        let memory = MmapRegion::from_file(FileOffset::new(file, offset), bytes);
        memory.map(Log).map_err(|error| refused(&error.to_string()))
    }

    /// Has it a bit for each page before `end`?
    pub(crate) fn covers(&self, end: u64) -> bool {
        end.div_ceil(PAGE_BYTES * PAGES_A_BYTE) <= self.0.size() as u64
    }

    fn place(&self, page: u64) -> Option<(&AtomicU8, u8)> {
        let byte = usize::try_from(page / PAGES_A_BYTE).ok()?;
        let place = self.0.get_atomic_ref::<AtomicU8>(byte).ok()?;
        Some((place, 1 << (page % PAGES_A_BYTE)))
    }
}

/// Where the pages of a part of the guest's memory are in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    log: Option<Arc<Log>>,
    guest_at: u64,
}

impl Pages {
    pub(crate) fn new(log: Option<Arc<Log>>, guest_at: u64) -> Self {
        Pages { log, guest_at }
    }
}

impl WithBitmapSlice<'_> for Pages {
    type S = Self;
}

impl BitmapSlice for Pages {}

impl NewBitmap for Pages {
    fn with_len(_bytes: usize) -> Self {
        Self::default()
    }
}

impl Bitmap for Pages {
    /// The memory has been written to. The front end clears a bit before it copies the page.
    fn mark_dirty(&self, offset: usize, bytes: usize) {
        let (Some(log), Some(more)) = (&self.log, bytes.checked_sub(1)) else { return };
        let first = self.guest_at + offset as u64;
        for page in first / PAGE_BYTES..=(first + more as u64) / PAGE_BYTES {
            if let Some((place, bit)) = log.place(page) {
                place.fetch_or(bit, Ordering::SeqCst);
            }
        }
    }

    fn dirty_at(&self, offset: usize) -> bool {
        let page = (self.guest_at + offset as u64) / PAGE_BYTES;
        let place = self.log.as_ref().and_then(|log| log.place(page));
        place.is_some_and(|(place, bit)| place.load(Ordering::SeqCst) & bit != 0)
    }

    fn slice_at(&self, offset: usize) -> Self {
        Pages { log: self.log.clone(), guest_at: self.guest_at + offset as u64 }
    }
}
