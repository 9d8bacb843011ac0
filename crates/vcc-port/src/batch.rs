//! BPF_MAP_LOOKUP_BATCH: reading all entries of a map, many per system call. The iterator of
//! libbpf-rs takes most errors for the end of the map.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapHandle, libbpf_sys};

/// Iterates over a map. Every kernel with TCX has this system call.
pub(crate) struct Batches<'map> {
    map: &'map MapHandle,
    keys: Vec<u8>,
    values: Vec<u8>,
    /// The number of entries that the buffers hold.
    pub(crate) room: usize,
    position: Position,
}

/// The position in the iteration. The kernel defines the bytes: a hash bucket, or a key.
#[derive(Clone)]
enum Position {
    Start,
    At(Vec<u8>),
    End,
}

struct Answer {
    errno: i32,
    count: usize,
    next: Vec<u8>,
}

impl<'map> Batches<'map> {
    pub(crate) fn new(map: &'map MapHandle, room: usize) -> Self {
        let (keys, values) = (Vec::new(), Vec::new());
        let mut batches = Self { map, keys, values, room: 0, position: Position::Start };
        batches.make_room(room);
        batches
    }

    fn make_room(&mut self, entries: usize) {
        self.room = entries;
        // The allocator's zeros: nothing touches the part that no answer fills.
        self.keys = vec![0; entries * self.map.key_size() as usize];
        self.values = vec![0; entries * self.map.value_size() as usize];
    }

    /// The next keys with their values; None at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<impl Iterator<Item = (&[u8], &[u8])>>> {
        let count = loop {
            let start = match &self.position {
                Position::Start => None,
                Position::At(position) => Some(position.clone()),
                Position::End => return Ok(None),
            };
            let Answer { errno, count, next } = self.lookup(start);
            match errno {
                0 => self.position = Position::At(next),
                libc::ENOENT => self.position = Position::End,
                libc::ENOSPC => {
                    // One bucket has more entries than the buffers hold. Nothing was read, so
                    // nothing is lost.
                    self.make_room(self.room * 2);
                    continue;
                }
                errno => return Err(io::Error::from_raw_os_error(errno)),
            }
            break count;
        };
        let keys = self.keys.chunks_exact(self.map.key_size() as usize);
        let values = self.values.chunks_exact(self.map.value_size() as usize);
        Ok(Some(keys.zip(values).take(count)))
    }

    fn lookup(&mut self, mut start: Option<Vec<u8>>) -> Answer {
        // A hash map needs room for the index of a bucket.
        let mut next = vec![0; (self.map.key_size() as usize).max(size_of::<u32>())];
        let mut count = self.room as u32;
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        // SAFETY: the buffers hold `count` keys and values of the map's sizes, and a position the
        // larger of a key and an index.
        let status = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                self.map.as_fd().as_raw_fd(),
                start.as_mut().map_or(std::ptr::null_mut(), |start| start.as_mut_ptr().cast()),
                next.as_mut_ptr().cast(),
                self.keys.as_mut_ptr().cast(),
                self.values.as_mut_ptr().cast(),
                &mut count,
                &options,
            )
        };
        Answer { errno: -status, count: count as usize, next }
    }
}
