//! A card's state on its way through a pipe of the front end's (vhost-user, "Migrating back-end
//! state"). Nothing waits for the other end.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::watch::{Source, Watch};

/// Bytes of one call.
const PART_BYTES: usize = 1 << 16;
/// Parts between two turns of the card. The longest pipe that a process without privileges makes
/// (pipe-max-size) has fewer, so one turn empties that of a front end that has written all.
const PARTS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Save,
    Load,
}

/// To be [closed](Transfer::close) before it is dropped.
pub(crate) struct Transfer {
    pub direction: Direction,
    /// Until all has been carried. The front end has made it, and may have descriptors of the same open
    /// file, so the front end decides whether it blocks; nor may we open it anew, as it belongs to the front
    /// end's user.
    pipe: Option<OwnedFd>,
    /// Bytes to write, or that have been read.
    bytes: Vec<u8>,
    written_bytes: usize,
    limit_bytes: usize,
}

impl Transfer {
    /// # Errors
    /// It is no pipe, whose reading or writing never waits.
    pub(crate) fn save(fd: OwnedFd, bytes: Vec<u8>) -> io::Result<Self> {
        let pipe = Some(checked(fd)?);
        let limit_bytes = bytes.len();
        Ok(Transfer { direction: Direction::Save, pipe, bytes, written_bytes: 0, limit_bytes })
    }

    /// Takes no more than `limit_bytes`.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn load(fd: OwnedFd, limit_bytes: usize) -> io::Result<Self> {
        let pipe = Some(checked(fd)?);
        let (direction, bytes) = (Direction::Load, Vec::new());
        Ok(Transfer { direction, pipe, bytes, written_bytes: 0, limit_bytes })
    }

    /// Carries what the pipe takes or has at once, and has the rest waited for.
    ///
    /// # Errors
    /// As of [`Transfer::carry`], or this host has no memory for what is waited for.
    pub(crate) fn begin(&mut self, watch: &Watch) -> io::Result<()> {
        if self.carry(watch)? {
            return Ok(());
        }
        let Some(pipe) = &self.pipe else { return Ok(()) };
        match self.direction {
            Direction::Save => watch.add_written(pipe.as_raw_fd(), Source::State),
            Direction::Load => watch.add(pipe.as_raw_fd(), Source::State),
        }
    }

    /// Carries what the pipe takes or has now, or as much as is for one turn. True once all has been
    /// carried.
    ///
    /// # Errors
    /// The front end does not read on, or sends more than there can be.
    pub(crate) fn carry(&mut self, watch: &Watch) -> io::Result<bool> {
        let Some(pipe) = &self.pipe else { return Ok(true) };
        let carried = match self.direction {
            Direction::Save => write(pipe, &self.bytes, &mut self.written_bytes),
            Direction::Load => read(pipe, &mut self.bytes, self.limit_bytes),
        };
        match carried {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            carried => {
                self.close(watch);
                carried.map(|()| true)
            }
        }
    }

    /// While the front end has a descriptor of the same open file, it would continue to wake us.
    pub(crate) fn close(&mut self, watch: &Watch) {
        if let Some(pipe) = self.pipe.take() {
            watch.remove(pipe.as_raw_fd());
        }
    }

    /// What has been read.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// # Errors
/// `WouldBlock`: not all yet.
fn write(pipe: &OwnedFd, bytes: &[u8], written_bytes: &mut usize) -> io::Result<()> {
    for _ in 0..=PARTS {
        let rest = &bytes[*written_bytes..];
        if rest.is_empty() {
            return Ok(());
        }
        match write_now(pipe, &rest[..rest.len().min(PART_BYTES)]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            count => *written_bytes += count?,
        }
    }
    Err(ErrorKind::WouldBlock.into())
}

/// # Errors
/// `WouldBlock`: not all yet.
fn read(pipe: &OwnedFd, bytes: &mut Vec<u8>, limit_bytes: usize) -> io::Result<()> {
    let mut part = vec![0; PART_BYTES];
    for _ in 0..=PARTS {
        match read_now(pipe, &mut part) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) => return Ok(()),
            count => bytes.extend_from_slice(&part[..count?]),
        }
        if bytes.len() > limit_bytes {
            return Err(io::Error::other(format!("it is longer than {limit_bytes} bytes")));
        }
    }
    Err(ErrorKind::WouldBlock.into())
}

/// There is no place in a pipe.
const NO_OFFSET: libc::off_t = -1;

/// Fails with EAGAIN where write(2) might wait: pipes know RWF_NOWAIT since Linux 6.4.
fn write_now(pipe: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the call reads memory that the part borrows.
    let count = unsafe { libc::pwritev2(pipe.as_raw_fd(), &part, 1, NO_OFFSET, libc::RWF_NOWAIT) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Likewise.
fn read_now(pipe: &OwnedFd, bytes: &mut [u8]) -> io::Result<usize> {
    let part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the call writes to memory that the part borrows alone.
    let count = unsafe { libc::preadv2(pipe.as_raw_fd(), &part, 1, NO_OFFSET, libc::RWF_NOWAIT) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Of a file on a disk, reading waits for the disk.
fn checked(fd: OwnedFd) -> io::Result<OwnedFd> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the call writes a status, or fails.
    let status = unsafe {
        if libc::fstat(fd.as_raw_fd(), status.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        status.assume_init()
    };
    match status.st_mode & libc::S_IFMT {
        libc::S_IFIFO => Ok(fd),
        _ => Err(io::Error::other("its descriptor is no pipe")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::thread;

    use super::*;
    use crate::testing::pipe;

    /// Linux's struct __user_cap_header_struct, and two of __user_cap_data_struct.
    const CAPABILITY_VERSION_3: u32 = 0x2008_0522;
    const CAP_NET_ADMIN: u32 = 12;

    /// This thread has those of packaging/vcc-domain@.service, if it had them.
    fn limit_capabilities() {
        let header = [CAPABILITY_VERSION_3, 0];
        let mut sets = [0_u32; 6];
        // SAFETY: the kernel reads and writes memory of the sizes that it has for this version.
        unsafe {
            let got = libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr());
            assert_eq!(got, 0, "{}", io::Error::last_os_error());
            let kept = 1 << CAP_NET_ADMIN;
            let limited = [sets[0] & kept, sets[1] & kept, 0, 0, 0, 0];
            let set = libc::syscall(libc::SYS_capset, header.as_ptr(), limited.as_ptr());
            assert_eq!(set, 0, "{}", io::Error::last_os_error());
        }
    }

    /// The front end is not root, and root without CAP_DAC_OVERRIDE may not open its pipe, whose
    /// descriptor waits.
    #[test]
    fn a_state_passes_through_a_pipe_that_may_not_be_opened() {
        let carried = thread::spawn(|| {
            limit_capabilities();
            let watch = Watch::new().expect("a watch");
            let (reader, writer) = pipe();
            // SAFETY: the call reads nothing but its arguments.
            assert_eq!(unsafe { libc::fchmod(reader.as_raw_fd(), 0) }, 0);
            let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
            let opened = File::open(path).expect_err("another's");
            assert_eq!(opened.kind(), ErrorKind::PermissionDenied);
            let mut loaded = Transfer::load(reader.into(), 100).expect("a pipe");
            assert!(!loaded.carry(&watch).expect("nothing yet"));
            let mut saved = Transfer::save(writer.into(), b"state".to_vec()).expect("a pipe");
            assert!(saved.carry(&watch).expect("it is written"));
            assert!(loaded.carry(&watch).expect("it is read"));
            loaded.into_bytes()
        });
        assert_eq!(carried.join().expect("carried"), b"state");
    }

    /// More than the pipe takes at once, of a front end that keeps the ends that it passes.
    #[test]
    fn a_pipe_that_others_have_open_wakes_nobody_when_all_is_carried() {
        let watch = Watch::new().expect("a watch");
        let (reader, writer) = pipe();
        let kept = [&reader, &writer].map(|end| end.try_clone().expect("a descriptor"));
        let state = vec![7; 100_000];
        let mut saved = Transfer::save(writer.into(), state.clone()).expect("a pipe");
        let mut loaded = Transfer::load(reader.into(), state.len()).expect("a pipe");
        saved.begin(&watch).expect("its start is written");
        assert_eq!(watch.wait(true).expect("a wait"), [], "it is full");
        loaded.begin(&watch).expect("its start is read");
        assert_eq!(watch.wait(true).expect("a wait"), [Source::State], "there is room");
        assert!(saved.carry(&watch).expect("it is written"));
        let [_, mut writer] = kept;
        writer.write_all(b"more").expect("written");
        assert_eq!(watch.wait(true).expect("a wait"), [Source::State]);
        assert!(loaded.carry(&watch).is_err(), "more than there can be");
        writer.write_all(b"more").expect("written");
        assert_eq!(watch.wait(true).expect("a wait"), []);
    }

    /// It writes on while the card reads, which has other work.
    #[test]
    fn a_turn_ends_however_fast_the_front_end_is() {
        let watch = Watch::new().expect("a watch");
        let (reader, mut writer) = pipe();
        let turn_bytes = (PARTS + 1) * PART_BYTES;
        let writing = thread::spawn(move || writer.write_all(&vec![7; 8 * turn_bytes]));
        let mut loaded = Transfer::load(reader.into(), usize::MAX).expect("a pipe");
        let mut before_bytes = 0;
        while !loaded.carry(&watch).expect("it is read") {
            let read_bytes = loaded.bytes.len() - before_bytes;
            assert!(read_bytes <= turn_bytes, "{read_bytes}");
            before_bytes += read_bytes;
        }
        assert_eq!(loaded.into_bytes().len(), 8 * turn_bytes);
        writing.join().expect("a thread").expect("written");
    }

    /// As it is when the front end has asked whether all has come.
    #[test]
    fn a_full_pipe_is_emptied_in_one_turn() {
        let watch = Watch::new().expect("a watch");
        let (reader, mut writer) = pipe();
        let length = (PARTS * PART_BYTES) as libc::c_int;
        // SAFETY: the call reads nothing but its arguments.
        let set = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, length) };
        assert_eq!(set, length, "{}", io::Error::last_os_error());
        writer.write_all(&vec![7; PARTS * PART_BYTES]).expect("there is room");
        drop(writer);
        let mut loaded = Transfer::load(reader.into(), usize::MAX).expect("a pipe");
        assert!(loaded.carry(&watch).expect("it is read"));
    }
}
