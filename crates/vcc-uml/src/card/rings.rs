//! The card's two rings in its guest's memory (virtio 1.2, 2.7).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use virtio_queue::{Queue, QueueT};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

use crate::system::strange;
use crate::vhost_user::Asked;

pub(super) const RECEIVE: usize = 0;
pub(super) const SEND: usize = 1;
/// Of each ring; what a User-Mode Linux asks for at the most.
const SIZE_MAX: u16 = 256;

pub(super) struct Rings {
    memory: GuestMemoryMmap,
    rings: [Ring; 2],
}

struct Ring {
    queue: Queue,
    is_enabled: bool,
}

impl Rings {
    pub fn new() -> io::Result<Self> {
        let ring = || {
            Ok::<_, io::Error>(Ring {
                queue: Queue::new(SIZE_MAX).map_err(strange)?,
                is_enabled: false,
            })
        };
        Ok(Self { memory: GuestMemoryMmap::new(), rings: [ring()?, ring()?] })
    }

    /// SET_MEM_TABLE: regions of (address in the guest, bytes, address in its process, offset).
    pub fn map(&mut self, asked: &Asked, fds: Vec<OwnedFd>) -> io::Result<()> {
        let count = asked.word(0) as usize;
        let regions: Vec<[u64; 4]> =
            (0..count).map(|i| [0, 1, 2, 3].map(|j| asked.long(1 + 4 * i + j))).collect();
        if fds.len() != count {
            return Err(strange(format!("{count} regions and {} files", fds.len())));
        }
        let mapped = regions.into_iter().zip(fds).map(|([address, bytes, _, offset], fd)| {
            let file = FileOffset::new(File::from(fd), offset);
            let region = MmapRegion::from_file(file, bytes as usize).map_err(strange)?;
            GuestRegionMmap::new(region, GuestAddress(address))
                .ok_or_else(|| strange("a region past the end of memory"))
        });
        let mapped = mapped.collect::<io::Result<Vec<_>>>()?;
        self.memory = GuestMemoryMmap::from_regions(mapped).map_err(strange)?;
        Ok(())
    }

    fn ring(&mut self, number: u32) -> io::Result<&mut Ring> {
        self.rings.get_mut(number as usize).ok_or_else(|| strange(format!("ring {number} of 2")))
    }

    pub fn set_size(&mut self, ring: u32, size: u32) -> io::Result<()> {
        let queue = &mut self.ring(ring)?.queue;
        queue.set_size(size as u16);
        Ok(())
    }

    /// Where the card goes on.
    pub fn set_base(&mut self, ring: u32, next: u32) -> io::Result<()> {
        let queue = &mut self.ring(ring)?.queue;
        queue.set_next_avail(next as u16);
        queue.set_next_used(next as u16);
        Ok(())
    }

    /// SET_VRING_ADDR: addresses of descriptors, used and available, after ring and flags.
    pub fn set_addresses(&mut self, asked: &Asked) -> io::Result<()> {
        let queue = &mut self.ring(asked.word(0))?.queue;
        let halves = |address: u64| (Some(address as u32), Some((address >> 32) as u32));
        let (low, high) = halves(asked.long(1));
        queue.set_desc_table_address(low, high);
        let (low, high) = halves(asked.long(2));
        queue.set_used_ring_address(low, high);
        let (low, high) = halves(asked.long(3));
        queue.set_avail_ring_address(low, high);
        Ok(())
    }

    pub fn enable(&mut self, ring: u32, is_enabled: bool, event_idx: bool) -> io::Result<()> {
        let ring = self.ring(ring)?;
        ring.is_enabled = is_enabled;
        ring.queue.set_event_idx(event_idx);
        ring.queue.set_ready(is_enabled);
        Ok(())
    }

    pub fn disable_all(&mut self) {
        for ring in &mut self.rings {
            ring.is_enabled = false;
            ring.queue.set_ready(false);
        }
    }

    pub fn is_up(&self) -> bool {
        self.rings.iter().all(|ring| ring.is_enabled)
    }

    /// What the guest has put up to send next, with the name by which it is given back. None: it
    /// will kick when there is more.
    pub fn take_sent(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<u16>> {
        let Ring { queue, is_enabled } = &mut self.rings[SEND];
        if !*is_enabled {
            return Ok(None);
        }
        loop {
            if let Some(chain) = queue.pop_descriptor_chain(&self.memory) {
                let head = chain.head_index();
                let mut reader = chain.reader(&self.memory).map_err(strange)?;
                bytes.clear();
                reader.read_to_end(bytes)?;
                return Ok(Some(head));
            }
            if !queue.enable_notification(&self.memory).map_err(strange)? {
                return Ok(None);
            }
        }
    }

    /// Gives back what was taken; it has been sent.
    pub fn give_back(&mut self, head: u16) -> io::Result<()> {
        self.rings[SEND].queue.add_used(&self.memory, head, 0).map_err(strange)
    }

    /// Puts a frame behind its header into the guest's next free buffer; false if there is none.
    pub fn put_received(&mut self, header: &[u8], frame: &[u8]) -> io::Result<bool> {
        let Ring { queue, is_enabled } = &mut self.rings[RECEIVE];
        if !*is_enabled {
            return Ok(false);
        }
        let Some(chain) = queue.pop_descriptor_chain(&self.memory) else { return Ok(false) };
        let head = chain.head_index();
        let mut writer = chain.writer(&self.memory).map_err(strange)?;
        writer.write_all(header)?;
        writer.write_all(frame)?;
        let bytes = (header.len() + frame.len()) as u32;
        queue.add_used(&self.memory, head, bytes).map_err(strange)?;
        Ok(true)
    }

    /// Whether the guest wants an interrupt for what it was given since it was last asked.
    pub fn wants_call(&mut self, ring: usize) -> io::Result<bool> {
        let Ring { queue, is_enabled } = &mut self.rings[ring];
        Ok(*is_enabled && queue.needs_notification(&self.memory).map_err(strange)?)
    }
}
