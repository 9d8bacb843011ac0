//! The card's two rings in its guest's memory (virtio 1.2, 2.7).

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use vcc_domain::ReceiveRing;
use vcc_net::vhost_user::Message;
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

use crate::system::strange;

pub(super) const RECEIVE: usize = 0;
pub(super) const SEND: usize = 1;
/// Size of each ring; User-Mode Linux requests at most this.
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

    /// SET_MEM_TABLE: regions of (guest address, size, address in the guest's process, offset).
    pub fn map(&mut self, asked: &Message, fds: Vec<OwnedFd>) -> io::Result<()> {
        let count = asked.word(0)? as usize;
        if fds.len() != count {
            return Err(strange(format!("{count} regions and {} files", fds.len())));
        }
        let mapped = fds.into_iter().enumerate().map(|(i, fd)| {
            let word = |at: usize| asked.long(1 + 4 * i + at);
            let (address, bytes, offset) = (word(0)?, word(1)?, word(3)?);
            let file = FileOffset::new(File::from(fd), offset);
            let region = MmapRegion::from_file(file, bytes as usize).map_err(strange)?;
            GuestRegionMmap::new(region, GuestAddress(address))
                .ok_or_else(|| strange("a region beyond the end of memory"))
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

    /// Sets the index at which the card continues.
    pub fn set_base(&mut self, ring: u32, next: u32) -> io::Result<()> {
        let queue = &mut self.ring(ring)?.queue;
        queue.set_next_avail(next as u16);
        queue.set_next_used(next as u16);
        Ok(())
    }

    /// SET_VRING_ADDR: after ring and flags, the addresses of descriptors, used and available ring.
    pub fn set_addresses(&mut self, asked: &Message) -> io::Result<()> {
        let queue = &mut self.ring(asked.word(0)?)?.queue;
        let halves = |address: u64| (Some(address as u32), Some((address >> 32) as u32));
        let (low, high) = halves(asked.long(1)?);
        queue.set_desc_table_address(low, high);
        let (low, high) = halves(asked.long(2)?);
        queue.set_used_ring_address(low, high);
        let (low, high) = halves(asked.long(3)?);
        queue.set_avail_ring_address(low, high);
        Ok(())
    }

    pub fn enable(&mut self, number: u32, is_enabled: bool, event_idx: bool) -> io::Result<()> {
        let ring = self.ring(number)?;
        ring.is_enabled = is_enabled;
        ring.queue.set_event_idx(event_idx);
        ring.queue.set_ready(is_enabled);
        if is_enabled { self.want_no_kick(number as usize) } else { Ok(()) }
    }

    /// Suppresses kicks: the card polls the ring when the guest waits. By the event index, the
    /// guest would kick (virtio 1.2, 2.7.7.2) when it reaches the entry that has just been taken,
    /// for which the ring has no room.
    pub fn want_no_kick(&mut self, ring: usize) -> io::Result<()> {
        let queue = &self.rings[ring].queue;
        if !queue.event_idx_enabled() {
            return Ok(());
        }
        let avail_event = queue.used_ring() + 4 + 8 * u64::from(queue.size());
        let never = queue.next_avail().wrapping_sub(1);
        self.memory.write_obj(never.to_le(), GuestAddress(avail_event)).map_err(strange)
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

    /// Takes the next frame that the guest has queued: fills `header`, and `frame` with the rest.
    /// Returns its descriptor for give_back(), or None if there is no complete frame.
    pub fn take_sent(&mut self, header: &mut [u8], frame: &mut Vec<u8>) -> io::Result<Option<u16>> {
        let Ring { queue, is_enabled } = &mut self.rings[SEND];
        if !*is_enabled {
            return Ok(None);
        }
        let Some(chain) = queue.pop_descriptor_chain(&self.memory) else { return Ok(None) };
        let head = chain.head_index();
        frame.clear();
        let mut header_bytes = 0;
        for part in chain.readable() {
            let bytes = part.len() as usize;
            let of_header = bytes.min(header.len() - header_bytes);
            let place = &mut header[header_bytes..header_bytes + of_header];
            self.memory.read_slice(place, part.addr()).map_err(strange)?;
            header_bytes += of_header;
            let rest = GuestAddress(part.addr().0 + of_header as u64);
            let (memory, rest_bytes) = (&self.memory, bytes - of_header);
            memory.write_all_volatile_to(rest, frame, rest_bytes).map_err(strange)?;
        }
        Ok(Some(head))
    }

    /// Completes a frame that has been sent.
    pub fn give_back(&mut self, head: u16) -> io::Result<()> {
        self.rings[SEND].queue.add_used(&self.memory, head, 0).map_err(strange)
    }

    /// Puts header and frame into the guest's next free buffer. False if there is none.
    pub fn put_received(&mut self, header: &[u8], frame: &[u8]) -> io::Result<bool> {
        let Ring { queue, is_enabled } = &mut self.rings[RECEIVE];
        if !*is_enabled {
            return Ok(false);
        }
        let Some(chain) = queue.pop_descriptor_chain(&self.memory) else { return Ok(false) };
        let head = chain.head_index();
        let mut parts = [header, frame].into_iter();
        let mut part = parts.next().unwrap_or_default();
        for place in chain.writable() {
            let (mut at, mut room) = (place.addr(), place.len() as usize);
            while room > 0 {
                if part.is_empty() {
                    let Some(next) = parts.next() else { break };
                    part = next;
                }
                let (now, later) = part.split_at(part.len().min(room));
                self.memory.write_slice(now, at).map_err(strange)?;
                (at, room) = (GuestAddress(at.0 + now.len() as u64), room - now.len());
                part = later;
            }
        }
        if !part.is_empty() || parts.next().is_some() {
            return Err(strange(format!(
                "a buffer too small for a frame of {} bytes",
                frame.len()
            )));
        }
        let bytes = (header.len() + frame.len()) as u32;
        queue.add_used(&self.memory, head, bytes).map_err(strange)?;
        Ok(true)
    }

    /// The guest's buffers for frames.
    pub fn receive_ring(&self) -> io::Result<ReceiveRing> {
        let Ring { queue, is_enabled } = &self.rings[RECEIVE];
        if !*is_enabled {
            return Ok(ReceiveRing::default());
        }
        let free_segs = self.free_receive_segs()?;
        Ok(ReceiveRing { size_segs: queue.size().into(), free_segs, behind_segs: 0 })
    }

    /// The guest's buffers without a frame.
    pub fn free_receive_segs(&self) -> io::Result<u32> {
        let Ring { queue, is_enabled } = &self.rings[RECEIVE];
        if !*is_enabled {
            return Ok(0);
        }
        let avail = queue.avail_idx(&self.memory, Ordering::Acquire).map_err(strange)?;
        Ok(avail.0.wrapping_sub(queue.next_avail()).into())
    }

    /// Does the guest want an interrupt for what it was given since the last call?
    pub fn wants_call(&mut self, ring: usize) -> io::Result<bool> {
        let Ring { queue, is_enabled } = &mut self.rings[ring];
        Ok(*is_enabled && queue.needs_notification(&self.memory).map_err(strange)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: u64 = 0x2000;
    const SIZE: u16 = SIZE_MAX;

    /// vring_need_event() of linux/virtio_ring.h: a guest's condition for a kick.
    fn would_kick(avail_event: u16, new: u16, old: u16) -> bool {
        new.wrapping_sub(avail_event).wrapping_sub(1) < new.wrapping_sub(old)
    }

    #[test]
    fn no_guest_kicks_for_what_fits_into_its_ring() {
        for next in [0, 1, 255, 256, 65_535] {
            let mut rings = Rings::new().expect("rings");
            let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), 0x4000)]);
            rings.memory = memory.expect("memory");
            let ring = SEND as u32;
            rings.set_size(ring, SIZE.into()).expect("a size");
            rings.set_base(ring, next).expect("a base");
            let queue = &mut rings.rings[SEND].queue;
            queue.set_used_ring_address(Some(USED as u32), Some(0));
            rings.enable(ring, true, true).expect("enabled");
            let at = GuestAddress(USED + 4 + 8 * u64::from(SIZE));
            let avail_event = u16::from_le(rings.memory.read_obj(at).expect("an index"));
            let next = next as u16;
            for (old, new) in (0..SIZE).map(|old| (old, old + 1)).chain([(0, SIZE)]) {
                let kicks = would_kick(avail_event, next.wrapping_add(new), next.wrapping_add(old));
                assert!(!kicks, "from {old} to {new} behind {next}");
            }
        }
    }
}
