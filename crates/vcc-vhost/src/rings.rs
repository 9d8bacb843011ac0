//! The guest's rings: frames out of descriptor chains, and into them (virtio 1.2, 2.7).
//!
//! The guest may write anything there at any time. What is read is bounded by a frame's length and
//! by a ring's size.

use std::ops::Deref;
use std::sync::atomic::{Ordering, fence};

use virtio_queue::{DescriptorChain, Error, Queue, QueueOwnedT, QueueT};
use vm_memory::{Address, Bytes, GuestAddress};

use crate::dirty::GuestMemory;
use crate::header::{FRAME_MAX_BYTES, HEADER_BYTES, Header};

/// The longest ring that the card takes, and so the longest chain.
pub(crate) const RING_MAX: u16 = 1024;
/// VRING_AVAIL_F_NO_INTERRUPT.
const NO_INTERRUPT: u16 = 1;

/// The next entry in the guest's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Nothing,
    Frame(Header),
    /// No frame: descriptors out of range, too short, too long.
    Bad,
}

/// Takes the next frame that the guest has queued. It is in our memory then, and its descriptors are
/// the guest's again.
///
/// # Errors
/// The ring itself is broken.
pub(crate) fn take(
    queue: &mut Queue,
    memory: &GuestMemory,
    frame: &mut Vec<u8>,
) -> Result<Taken, Error> {
    let Some(chain) = queue.iter(memory)?.next() else { return Ok(Taken::Nothing) };
    let head = chain.head_index();
    let header = gather(chain, memory, frame);
    queue.add_used(memory, head, 0)?;
    Ok(header.map_or(Taken::Bad, Taken::Frame))
}

/// Reads the chain: header, then frame. What `frame` has is overwritten where it is: to clear it for
/// each super-segment first would cost a sixth of the copy.
fn gather<M>(chain: DescriptorChain<M>, memory: &GuestMemory, frame: &mut Vec<u8>) -> Option<Header>
where
    M: Deref<Target = GuestMemory>,
{
    let mut header = [0; HEADER_BYTES];
    let (mut header_bytes, mut frame_bytes) = (0, 0);
    for part in chain.take(DESCRIPTORS_MAX) {
        if part.is_write_only() {
            break;
        }
        let of_header = (part.len() as usize).min(HEADER_BYTES - header_bytes);
        let place = &mut header[header_bytes..header_bytes + of_header];
        memory.read_slice(place, part.addr()).ok()?;
        header_bytes += of_header;
        let before_bytes = frame_bytes;
        frame_bytes += part.len() as usize - of_header;
        if frame_bytes > FRAME_MAX_BYTES {
            return None;
        }
        if frame.len() < frame_bytes {
            frame.resize(frame_bytes, 0);
        }
        let at = part.addr().checked_add(of_header as u64)?;
        memory.read_slice(&mut frame[before_bytes..frame_bytes], at).ok()?;
    }
    frame.truncate(frame_bytes);
    (header_bytes == HEADER_BYTES).then(|| Header::read(&header))
}

/// Descriptors that are looked at for a frame. A chain ends by itself after as many as its table has,
/// which for an indirect one the guest decides.
const DESCRIPTORS_MAX: usize = RING_MAX as usize;

/// Descriptors that the card has used, and the bytes it has written there.
struct Used {
    head: u16,
    bytes: u32,
}

/// What became of a frame for the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It lies in the guest's ring.
    Yes,
    /// The guest has no buffer free.
    NoBuffer,
    /// It is longer than all that the guest's buffers take, or they are out of range.
    Bad,
}

/// Puts a frame into the guest's next buffers; several only if they are `mergeable`.
///
/// # Errors
/// The ring itself is broken.
pub(crate) fn place(
    queue: &mut Queue,
    memory: &GuestMemory,
    mergeable: bool,
    header: Header,
    frame: &[u8],
) -> Result<Placed, Error> {
    let needed_bytes = HEADER_BYTES + frame.len();
    let buffers_max = if mergeable { queue.size() } else { 1 };
    let mut used: Vec<Used> = Vec::new();
    let mut places: Vec<(GuestAddress, usize)> = Vec::new();
    let mut room_bytes = 0;
    let mut descriptors_left = DESCRIPTORS_MAX;
    let first = queue.next_avail();
    let mut chains = queue.iter(memory)?;
    while room_bytes < needed_bytes && used.len() < buffers_max.into() {
        let Some(chain) = chains.next() else {
            queue.set_next_avail(first);
            return Ok(Placed::NoBuffer);
        };
        let head = chain.head_index();
        let before_bytes = room_bytes;
        for part in chain.take(descriptors_left) {
            descriptors_left -= 1;
            if part.is_write_only() {
                let bytes = (part.len() as usize).min(needed_bytes - room_bytes);
                places.push((part.addr(), bytes));
                room_bytes += bytes;
            }
            if room_bytes == needed_bytes {
                break;
            }
        }
        used.push(Used { head, bytes: (room_bytes - before_bytes) as u32 });
        // More such buffers would have us look through all of the ring for each frame.
        if room_bytes == before_bytes {
            break;
        }
    }
    let buffers = used.len() as u16;
    let header = header.in_buffers(buffers).bytes();
    let fits = room_bytes == needed_bytes && scatter(memory, &places, &header, frame);
    if !fits {
        used.iter_mut().for_each(|used| used.bytes = 0);
    }
    publish(queue, memory, &used)?;
    Ok(if fits { Placed::Yes } else { Placed::Bad })
}

/// False if a place is out of range.
fn scatter(
    memory: &GuestMemory,
    places: &[(GuestAddress, usize)],
    header: &[u8],
    frame: &[u8],
) -> bool {
    let mut rest = [header, frame];
    for &(at, bytes) in places {
        let mut at = at;
        let mut room = bytes;
        for part in &mut rest {
            let (now, later) = part.split_at(part.len().min(room));
            if now.is_empty() {
                continue;
            }
            let Some(end) = at.checked_add(now.len() as u64) else { return false };
            if memory.write_slice(now, at).is_err() {
                return false;
            }
            (at, room, *part) = (end, room - now.len(), later);
        }
    }
    true
}

/// Publishes used buffers together: a guest that saw some of a frame's would take it for broken.
fn publish(queue: &mut Queue, memory: &GuestMemory, used: &[Used]) -> Result<(), Error> {
    let Some((last, before)) = used.split_last() else { return Ok(()) };
    let size = queue.size();
    for Used { head, bytes } in before {
        let slot = u64::from(queue.next_used() % size);
        let at = GuestAddress(queue.used_ring()).checked_add(4 + 8 * slot);
        let at = at.ok_or(Error::AddressOverflow)?;
        let element = u64::from(*head) | u64::from(*bytes) << 32;
        memory.write_obj(element.to_le(), at).map_err(Error::GuestMemory)?;
        queue.set_next_used(queue.next_used().wrapping_add(1));
    }
    queue.add_used(memory, last.head, last.bytes)
}

/// The buffers that the guest has added, and the card has not used. A broken ring has none.
pub(crate) fn free_buffers(queue: &Queue, memory: &GuestMemory) -> Result<u16, Error> {
    let avail = queue.avail_idx(memory, Ordering::Acquire)?;
    let free = avail.0.wrapping_sub(queue.next_avail());
    Ok(if free <= queue.size() { free } else { 0 })
}

/// Does the guest want an interrupt for what it was given since its used index was `before`?
pub(crate) fn wants_call(queue: &Queue, memory: &GuestMemory, before: u16) -> Result<bool, Error> {
    let now = queue.next_used();
    if now == before {
        return Ok(false);
    }
    // The used index is written before the guest's wish is read (virtio 1.2, 2.7.7.2).
    fence(Ordering::SeqCst);
    let avail = GuestAddress(queue.avail_ring());
    let read = |offset: u64| -> Result<u16, Error> {
        let at = avail.checked_add(offset).ok_or(Error::AddressOverflow)?;
        memory.load(at, Ordering::Relaxed).map(u16::from_le).map_err(Error::GuestMemory)
    };
    if !queue.event_idx_enabled() {
        return Ok(read(0)? & NO_INTERRUPT == 0);
    }
    let used_event = read(4 + 2 * u64::from(queue.size()))?;
    Ok(now.wrapping_sub(used_event).wrapping_sub(1) < now.wrapping_sub(before))
}

/// Asks for a kick as soon as the guest queues more than it had at `seen`, an index from before the
/// ring was worked on. True if it has since, so that no kick may come.
pub(crate) fn want_kick(queue: &Queue, memory: &GuestMemory, seen: u16) -> Result<bool, Error> {
    if queue.event_idx_enabled() {
        let offset = 4 + 8 * u64::from(queue.size());
        let at = GuestAddress(queue.used_ring()).checked_add(offset);
        let at = at.ok_or(Error::AddressOverflow)?;
        memory.store(seen.to_le(), at, Ordering::Relaxed).map_err(Error::GuestMemory)?;
    }
    // The wish is written before the index is read again (virtio 1.2, 2.7.10.1).
    fence(Ordering::SeqCst);
    Ok(queue.avail_idx(memory, Ordering::Relaxed)?.0 != seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIPTORS: u64 = 0x1000;
    const DATA: u64 = 0x3800;
    const AVAILABLE: u64 = 0x2000;
    const USED: u64 = 0x3000;
    const SIZE: u16 = 16;

    fn ring() -> (GuestMemory, Queue) {
        let memory = GuestMemory::from_ranges(&[(GuestAddress(0), 0x4000)]);
        let mut queue = Queue::new(RING_MAX).expect("a ring");
        queue.set_size(SIZE);
        queue.set_desc_table_address(Some(DESCRIPTORS as u32), Some(0));
        queue.set_avail_ring_address(Some(AVAILABLE as u32), Some(0));
        queue.set_used_ring_address(Some(USED as u32), Some(0));
        (memory.expect("memory"), queue)
    }

    /// A frame that comes between the work on a ring and the request for a kick has no kick of its
    /// own.
    #[test]
    fn what_came_since_the_look_is_not_waited_for() {
        let (memory, mut queue) = ring();
        queue.set_event_idx(true);
        let queued = |index: u16| memory.write_obj(index.to_le(), GuestAddress(AVAILABLE + 2));
        let wanted = || -> u16 {
            let at = GuestAddress(USED + 4 + 8 * u64::from(SIZE));
            u16::from_le(memory.read_obj(at).expect("in memory"))
        };
        queued(7).expect("in memory");
        assert!(!want_kick(&queue, &memory, 7).expect("a ring"));
        assert_eq!(wanted(), 7, "a kick for the next entry");
        queued(8).expect("in memory");
        assert!(want_kick(&queue, &memory, 7).expect("a ring"), "it came without a kick");
    }

    /// Frames are read into the same memory.
    #[test]
    fn a_frame_has_nothing_of_the_one_before() {
        let (memory, mut queue) = ring();
        queue.set_ready(true);
        let mut frame = Vec::new();
        for (index, frame_bytes) in [(1_u16, 300_usize), (2, 7), (3, 900)] {
            let data = [vec![0; HEADER_BYTES], vec![index as u8; frame_bytes]].concat();
            memory.write_slice(&data, GuestAddress(DATA)).expect("in memory");
            // One descriptor, which is the first of the table.
            memory.write_obj(DATA.to_le(), GuestAddress(DESCRIPTORS)).expect("in memory");
            let length = (data.len() as u32).to_le();
            memory.write_obj(length, GuestAddress(DESCRIPTORS + 8)).expect("in memory");
            memory.write_obj(index.to_le(), GuestAddress(AVAILABLE + 2)).expect("in memory");
            let taken = take(&mut queue, &memory, &mut frame).expect("a ring");
            assert!(matches!(taken, Taken::Frame(_)));
            assert_eq!(frame, vec![index as u8; frame_bytes]);
        }
    }
}
