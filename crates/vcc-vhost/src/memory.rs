//! The guest's memory, as the front end shares it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use vm_memory::{
    FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryRegion, GuestRegionMmap,
    mmap::MmapRegionBuilder,
};

use vcc_net::vhost_user::{End, Message};

use crate::dirty::{GuestMemory, Log, Pages};

/// Words of 64 bits: the number of regions, then four of each.
const REGION_WORDS: usize = 4;

/// The guest's memory, mapped.
pub(crate) struct Memory {
    pub guest: GuestMemory,
    regions: Vec<Region>,
}

/// Where the front end has a region itself.
struct Region {
    guest_at: u64,
    bytes: u64,
    front_end_at: u64,
}

impl Memory {
    pub(crate) fn none() -> Self {
        Memory { guest: GuestMemory::new(), regions: Vec::new() }
    }

    /// VHOST_USER_SET_MEM_TABLE.
    pub(crate) fn map(message: &Message, fds: Vec<OwnedFd>) -> Result<Self, End> {
        let count = message.word(0)? as usize;
        if count == 0 || count != fds.len() {
            let fds = fds.len();
            return Err(End::refused(format!("{count} memory regions with {fds} descriptors")));
        }
        let (mut mapped, mut regions) = (Vec::new(), Vec::new());
        for (index, fd) in fds.into_iter().enumerate() {
            let word = |at: usize| message.long(1 + REGION_WORDS * index + at);
            let (guest_at, bytes, front_end_at, offset) = (word(0)?, word(1)?, word(2)?, word(3)?);
            let refused = |why: String| {
                End::refused(format!("memory of {bytes:#x} bytes at {guest_at:#x}: {why}"))
            };
            let ends = [guest_at, front_end_at, offset].map(|at| at.checked_add(bytes));
            let size = usize::try_from(bytes).ok().filter(|_| ends.iter().all(Option::is_some));
            let size = size.ok_or_else(|| refused("beyond the end of all memory".to_owned()))?;
            let file = File::from(fd);
            let metadata = file.metadata().map_err(|error| refused(error.to_string()))?;
            // Whoever touches what lies behind is killed (SIGBUS). The end of a device is not known.
            if metadata.is_file() && metadata.len() < offset + bytes {
                return Err(refused(format!("its file ends at {:#x}", metadata.len())));
            }
            let file = FileOffset::new(file, offset);
            mapped.push(region(file, size, guest_at, None).map_err(refused)?);
            regions.push(Region { guest_at, bytes, front_end_at });
        }
        mapped.sort_by_key(|region| region.start_addr().0);
        let guest = GuestMemory::from_regions(mapped)
            .map_err(|error| End::refused(format!("memory: {error}")))?;
        Ok(Memory { guest, regions })
    }

    /// Writes are in this log from now on; None: in none.
    ///
    /// # Errors
    /// The log is shorter than the memory, or it cannot be mapped again.
    pub(crate) fn log_to(&mut self, log: Option<&Arc<Log>>) -> Result<(), End> {
        let refused = |why: String| End::refused(format!("a log of the memory: {why}"));
        let again = |mapped: &GuestRegionMmap<Pages>| {
            let (guest_at, size) = (mapped.start_addr().0, mapped.size());
            if log.is_some_and(|log| !log.covers(guest_at + size as u64)) {
                return Err(refused(format!("too short for {size:#x} bytes at {guest_at:#x}")));
            }
            let file = mapped.file_offset().expect("it was mapped from a file").clone();
            region(file, size, guest_at, log.cloned()).map_err(refused)
        };
        if self.regions.is_empty() {
            return Ok(());
        }
        let mapped = self.guest.iter().map(again).collect::<Result<Vec<_>, End>>()?;
        self.guest =
            GuestMemory::from_regions(mapped).map_err(|error| refused(error.to_string()))?;
        Ok(())
    }

    /// The guest's address for one of the front end's; None if it is in no region.
    pub(crate) fn guest_at(&self, front_end_at: u64) -> Option<GuestAddress> {
        self.regions.iter().find_map(|region| {
            let at = front_end_at.checked_sub(region.front_end_at)?;
            (at < region.bytes).then(|| GuestAddress(region.guest_at + at))
        })
    }
}

/// Maps a part of a file as the guest's memory.
fn region(
    file: FileOffset,
    size: usize,
    guest_at: u64,
    log: Option<Arc<Log>>,
) -> Result<GuestRegionMmap<Pages>, String> {
    let region = MmapRegionBuilder::new_with_bitmap(size, Pages::new(log, guest_at))
        .with_file_offset(file)
        .with_mmap_prot(libc::PROT_READ | libc::PROT_WRITE)
        .with_mmap_flags(libc::MAP_NORESERVE | libc::MAP_SHARED)
        .build()
        .map_err(|error| error.to_string())?;
    GuestRegionMmap::new(region, GuestAddress(guest_at))
        .ok_or_else(|| "beyond the end of all memory".to_owned())
}
