//! A port's promises in a file of the runtime directory, which is memory that outlives the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use vcc_domain::{Ledger, Promise};
use vcc_engine::FlowKey;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

const MAGIC: u32 = u32::from_le_bytes(*b"vccl");
const VERSION: u32 = 1;
/// Magic and version.
const HEAD_BYTES: usize = 8;
const PROMISE_BYTES: usize = 68;
/// Which of the two that follow is in force; 0: none.
const SLOT_BYTES: usize = 4 + 2 * PROMISE_BYTES;
const FILE_MODE: u32 = 0o600;
/// More than a policy's largest table has (2^24 connections, and as many that were ended).
const LONGEST_BYTES: u64 = (HEAD_BYTES + (1 << 25) * SLOT_BYTES) as u64;
const SET_ASIDE_MAX: u32 = 9;
/// The end of a file's name that is not in place yet.
const NEW: &str = "new";

/// The file, mapped.
pub struct FileLedger {
    path: PathBuf,
    memory: MmapRegion,
}

impl FileLedger {
    /// The promises that a process has left behind; none if there is no file.
    ///
    /// # Errors
    /// It is no file, cannot be read, or is no ledger of this version.
    pub fn left(path: &Path) -> io::Result<Vec<Promise>> {
        let opened = OpenOptions::new()
            .read(true)
            // The file's place may hold a FIFO, which would wait for its other end.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut file = BufReader::new(file.take(LONGEST_BYTES));
        let mut head = Vec::new();
        file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        // Without a head, an older vcc was killed as it made the file.
        if head.len() < HEAD_BYTES {
            return Ok(Vec::new());
        }
        match [word(&head, 0), word(&head, 4)] {
            [MAGIC, VERSION] => {}
            [0, 0] => return Ok(Vec::new()),
            [MAGIC, version] => {
                return Err(io::Error::other(format!("it is of version {version}, not {VERSION}")));
            }
            _ => return Err(io::Error::other("it is no ledger")),
        }
        let mut left = Vec::new();
        let mut slot = [0; SLOT_BYTES];
        while read_whole(&mut file, &mut slot)? {
            left.extend(in_force(&slot));
        }
        Ok(left)
    }

    /// Renames what is in place of a ledger and cannot be read, so that another can be made. Returns its
    /// new name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
        let free = (1..=SET_ASIDE_MAX).map(|number| beside(path, &format!("unreadable-{number}")));
        let place = free.into_iter().find(|place| place.symlink_metadata().is_err());
        let place = place.ok_or_else(|| {
            io::Error::other(format!("{SET_ASIDE_MAX} of them are there already: remove them"))
        })?;
        fs::rename(path, &place)?;
        Ok(place)
    }

    /// An empty ledger with so many slots, in a file next to `path`, of which the whole room is reserved:
    /// a page that a full file system lacks would end the process at a promise, by SIGBUS. What is there
    /// stays until [`FileLedger::publish`], however this process ends.
    ///
    /// # Errors
    /// There cannot be such a file.
    pub fn create(path: &Path, slots: usize) -> io::Result<Self> {
        let place = beside(path, NEW);
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let made = Self::make(path, &place, slots);
        if made.is_err() {
            // The room that it has may be what another process lacks.
            let _ = fs::remove_file(&place);
        }
        made
    }

    fn make(path: &Path, place: &Path, slots: usize) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(place)?;
        let bytes = HEAD_BYTES + slots * SLOT_BYTES;
        reserve(&file, bytes)?;
        let memory = MmapRegion::from_file(FileOffset::new(file, 0), bytes);
        let memory = memory.map_err(io::Error::other)?;
        let ledger = FileLedger { path: path.to_owned(), memory };
        let head = [MAGIC, VERSION].map(u32::to_le_bytes).concat();
        ledger.memory().write_slice(&head, 0).map_err(io::Error::other)?;
        Ok(ledger)
    }

    /// Puts it in place of what is there, at once. To be called once, when it has all that is to be
    /// kept of that, and before it has a promise of its own.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub fn publish(&self) -> io::Result<()> {
        fs::rename(beside(&self.path, NEW), &self.path)
    }

    fn memory(&self) -> VolatileSlice<'_> {
        self.memory.as_volatile_slice()
    }
}

impl Ledger for FileLedger {
    fn write(&self, slot: usize, promise: Option<&Promise>) {
        let (memory, at) = (self.memory(), HEAD_BYTES + slot * SLOT_BYTES);
        let now: u32 = memory.load(at, Ordering::Relaxed).expect("a slot of the ledger's");
        let next = promise.map_or(0_u32, |promise| {
            // Next to the one in force, which stays whole until it is replaced at once.
            let next = if u32::from_le(now) == 1 { 2 } else { 1 };
            let place = at + 4 + (next as usize - 1) * PROMISE_BYTES;
            memory.write_slice(&to_bytes(promise), place).expect("a slot of the ledger's");
            next
        });
        memory.store(next.to_le(), at, Ordering::Release).expect("a slot of the ledger's");
    }
}

/// No tap has a colon in its name (Linux: dev_valid_name), so this is the ledger of none.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(":");
    name.push(what);
    path.with_file_name(name)
}

fn reserve(file: &File, bytes: usize) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    loop {
        // SAFETY: the descriptor is open for the length of the call, which takes no pointers.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => {
                let why = io::Error::from_raw_os_error(error);
                let needs = format!("it needs {} KiB: {why}", bytes.div_ceil(1024));
                return Err(io::Error::new(why.kind(), needs));
            }
        }
    }
}

/// False if no whole slot is left.
fn read_whole(file: &mut impl Read, slot: &mut [u8; SLOT_BYTES]) -> io::Result<bool> {
    match file.read_exact(slot) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// None also if no connection is like that: somebody else has written it.
fn in_force(slot: &[u8]) -> Option<Promise> {
    let (which, promises) = slot.split_at(4);
    let index = word(which, 0).checked_sub(1)?;
    let promise = promises.chunks_exact(PROMISE_BYTES).nth(index as usize).map(of_bytes)?;
    let (guest, peer) = (promise.key.guest(), promise.key.peer());
    (guest.is_ipv4() == peer.is_ipv4()).then_some(promise)
}

fn to_bytes(promise: &Promise) -> [u8; PROMISE_BYTES] {
    let address = |end: SocketAddr| match end.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let (guest, peer) = (promise.key.guest(), promise.key.peer());
    let vlan = promise.key.vlan().unwrap_or(0);
    let ports = [guest.port(), peer.port(), vlan, 0].map(u16::to_le_bytes).concat();
    let Promise { guest_mac, next_hop_mac, snd_una, snd_nxt, promised, rcv_nxt, .. } = *promise;
    let numbers = [snd_una, snd_nxt, promised, rcv_nxt].map(u32::to_le_bytes).concat();
    let parts: [&[u8]; 6] =
        [&address(guest), &address(peer), &ports, &guest_mac, &next_hop_mac, &numbers];
    parts.concat().try_into().expect("their lengths together")
}

fn of_bytes(bytes: &[u8]) -> Promise {
    let end = |address_at: usize, port_at: usize| {
        let octets: [u8; 16] = bytes[address_at..address_at + 16].try_into().expect("16 bytes");
        SocketAddr::new(Ipv6Addr::from(octets).to_canonical(), half_word(bytes, port_at))
    };
    let mac = |at: usize| bytes[at..at + 6].try_into().expect("6 bytes");
    Promise {
        key: FlowKey::new(end(0, 32), end(16, 34), Some(half_word(bytes, 36))),
        guest_mac: mac(40),
        next_hop_mac: mac(46),
        snd_una: word(bytes, 52),
        snd_nxt: word(bytes, 56),
        promised: word(bytes, 60),
        rcv_nxt: word(bytes, 64),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn half_word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(host: &str, number: u32) -> Promise {
        let end = |host: &str, port: u32| format!("{host}:{port}").parse().expect("an end");
        Promise {
            key: FlowKey::new(end(host, 1000 + number), end(host, 80), Some(7)),
            guest_mac: [2, 0, 0, 0, 0, 1],
            next_hop_mac: [2, 0, 0, 0, 0, 2],
            snd_una: number,
            snd_nxt: number + 1,
            promised: number + 2,
            rcv_nxt: u32::MAX - number,
        }
    }

    fn published(path: &Path, slots: usize) -> FileLedger {
        let ledger = FileLedger::create(path, slots).expect("a ledger");
        ledger.publish().expect("in place");
        ledger
    }

    #[test]
    fn what_was_promised_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger");
        assert_eq!(FileLedger::left(&path).expect("nothing"), []);
        let ledger = published(&path, 3);
        assert_eq!(FileLedger::left(&path).expect("an empty one"), []);
        let [v4, v6] = [promise("10.0.0.1", 1), promise("[fd00::1]", 2)];
        ledger.write(2, Some(&promise("10.0.0.9", 9)));
        ledger.write(0, Some(&v6));
        ledger.write(2, Some(&v4));
        assert_eq!(FileLedger::left(&path).expect("promises"), [v6, v4]);
        ledger.write(0, None);
        let again = promise("10.0.0.1", 3);
        ledger.write(2, Some(&again));
        drop(ledger);
        assert_eq!(FileLedger::left(&path).expect("promises"), [again]);
        published(&path, 1);
        assert_eq!(FileLedger::left(&path).expect("an empty one"), []);
    }

    /// The process may be killed between any two stores.
    #[test]
    fn a_write_that_was_not_finished_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger");
        let ledger = published(&path, 1);
        let first = promise("10.0.0.1", 1);
        ledger.write(0, Some(&first));
        let before = std::fs::read(&path).expect("a file");
        ledger.write(0, Some(&promise("10.0.0.1", 2)));
        let after = std::fs::read(&path).expect("a file");
        let differ: Vec<usize> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
        assert!(differ.len() > 4, "{differ:?}");
        // All but the word that names the one in force.
        let mut torn = after;
        torn[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&before[HEAD_BYTES..HEAD_BYTES + 4]);
        std::fs::write(&path, torn).expect("written");
        assert_eq!(FileLedger::left(&path).expect("promises"), [first]);
    }

    /// The process may be killed before it has written down what is left of the one before it.
    #[test]
    fn promises_stay_until_the_next_ledger_is_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tap1");
        let left = [1, 2].map(|number| promise("10.0.0.1", number));
        let before = published(&path, 2);
        before.write(0, Some(&left[0]));
        before.write(1, Some(&left[1]));
        drop(before);
        for killed_after in 0..=2 {
            let next = FileLedger::create(&path, 2).expect("a ledger");
            for (slot, promise) in left.iter().enumerate().take(killed_after) {
                next.write(slot, Some(promise));
            }
            drop(next);
            assert_eq!(FileLedger::left(&path).expect("promises"), left);
        }
        published(&path, 2);
        assert_eq!(FileLedger::left(&path).expect("an empty one"), []);
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn what_is_no_ledger_of_this_version_is_refused_and_set_aside() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger");
        let refused = || FileLedger::left(&path).expect_err("refused").to_string();
        let mut other = [MAGIC, VERSION + 1].map(u32::to_le_bytes).concat();
        fs::write(&path, &other).expect("written");
        assert_eq!(refused(), "it is of version 2, not 1");
        other.truncate(5);
        fs::write(&path, &other).expect("written");
        assert_eq!(FileLedger::left(&path).expect("nothing was begun"), []);
        fs::write(&path, [7; 300]).expect("written");
        assert_eq!(refused(), "it is no ledger");
        let name = FileLedger::set_aside(&path).expect("set aside");
        assert_eq!(name.file_name().expect("a name"), "ledger:unreadable-1");
        assert_eq!(FileLedger::left(&path).expect("nothing"), []);

        fs::create_dir_all(path.join("full")).expect("a directory");
        assert_eq!(refused(), "it is no file");
        let name = FileLedger::set_aside(&path).expect("set aside");
        assert_eq!(name.file_name().expect("a name"), "ledger:unreadable-2");
        std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
        assert!(FileLedger::left(&path).is_err());
        FileLedger::set_aside(&path).expect("set aside");
        // A FIFO has no other end.
        let fifo = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("a path");
        // SAFETY: it points to a string for the length of the call.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        assert_eq!(refused(), "it is no file");
        for _ in 4..=SET_ASIDE_MAX {
            FileLedger::set_aside(&path).expect("set aside");
            fs::write(&path, [7; 300]).expect("written");
        }
        let full = FileLedger::set_aside(&path).expect_err("no name is free").to_string();
        assert_eq!(full, "9 of them are there already: remove them");
    }

    #[test]
    fn what_is_whole_of_a_damaged_ledger_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger");
        let ledger = published(&path, 4);
        let promises = [1, 2, 3].map(|number| promise("10.0.0.1", number));
        for (slot, promise) in promises.iter().enumerate() {
            ledger.write(slot, Some(promise));
        }
        drop(ledger);
        let mut bytes = fs::read(&path).expect("a file");
        // The second has ends of two families, and the file ends within the third.
        bytes[HEAD_BYTES + SLOT_BYTES + 4..][..16].fill(0x20);
        bytes.truncate(HEAD_BYTES + 3 * SLOT_BYTES - 1);
        fs::write(&path, &bytes).expect("written");
        assert_eq!(FileLedger::left(&path).expect("one"), promises[..1]);
    }

    #[test]
    fn the_whole_file_has_its_room() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger");
        let ledger = published(&path, 10_000);
        let file = fs::metadata(&path).expect("a file");
        let has_bytes = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
        assert!(has_bytes >= file.len(), "{has_bytes} bytes of {}", file.len());
        drop(ledger);
        // As much as no file system has.
        let refused = FileLedger::create(&path, 1 << 50).err().expect("refused").to_string();
        assert!(refused.starts_with("it needs "), "{refused}");
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }
}
