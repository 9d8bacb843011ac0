//! A card's state on its way through a pipe of the front end's (vhost-user, "Migrating back-end
//! state"). Nothing waits for the other end.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;

/// Bytes of one read.
const PART_BYTES: usize = 1 << 16;
/// Reads of one turn, more than a pipe holds: the card is served meanwhile.
const PARTS_OF_A_TURN: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Save,
    Load,
}

/// Until its end, the pipe is open.
pub(crate) struct Transfer {
    pub direction: Direction,
    pipe: Option<File>,
    /// What is to be written, or has been read.
    bytes: Vec<u8>,
    written_bytes: usize,
    limit_bytes: usize,
}

impl Transfer {
    /// # Errors
    /// It is no pipe, whose reading or writing never waits.
    pub(crate) fn save(fd: OwnedFd, bytes: Vec<u8>) -> io::Result<Self> {
        let pipe = Some(pipe(fd)?);
        let limit_bytes = bytes.len();
        Ok(Transfer { direction: Direction::Save, pipe, bytes, written_bytes: 0, limit_bytes })
    }

    /// Takes no more than `limit_bytes`.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn load(fd: OwnedFd, limit_bytes: usize) -> io::Result<Self> {
        let pipe = Some(pipe(fd)?);
        let (direction, bytes) = (Direction::Load, Vec::new());
        Ok(Transfer { direction, pipe, bytes, written_bytes: 0, limit_bytes })
    }

    /// The pipe, until all has been carried.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.pipe.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Carries what the pipe takes or has now. True once all has been carried.
    ///
    /// # Errors
    /// The front end does not read on, or sends more than there can be.
    pub(crate) fn carry(&mut self) -> io::Result<bool> {
        let Some(pipe) = &mut self.pipe else { return Ok(true) };
        let carried = match self.direction {
            Direction::Save => write(pipe, &self.bytes, &mut self.written_bytes),
            Direction::Load => read(pipe, &mut self.bytes, self.limit_bytes),
        };
        match carried {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
            Ok(()) => {
                self.pipe = None;
                Ok(true)
            }
        }
    }

    /// What has been read.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

fn write(pipe: &mut File, bytes: &[u8], written_bytes: &mut usize) -> io::Result<()> {
    while *written_bytes < bytes.len() {
        match write_now(pipe, &bytes[*written_bytes..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            count => *written_bytes += count?,
        }
    }
    Ok(())
}

fn read(pipe: &mut File, bytes: &mut Vec<u8>, limit_bytes: usize) -> io::Result<()> {
    let mut part = vec![0; PART_BYTES];
    for _ in 0..PARTS_OF_A_TURN {
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

fn pipe(fd: OwnedFd) -> io::Result<File> {
    let pipe = File::from(fd);
    if !pipe.metadata()?.file_type().is_fifo() {
        return Err(io::Error::other("its descriptor is no pipe"));
    }
    Ok(pipe)
}

/// Whether the descriptor waits is the front end's to say, as it shares it, and to open the pipe anew needs
/// rights that only its maker has: so each call says that it does not wait (Linux 6.4).
fn read_now(pipe: &File, part: &mut [u8]) -> io::Result<usize> {
    let to = libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
    // SAFETY: `to` is all of `part`, which outlives the call.
    let count = unsafe { libc::preadv2(pipe.as_raw_fd(), &to, 1, -1, libc::RWF_NOWAIT) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn write_now(pipe: &File, bytes: &[u8]) -> io::Result<usize> {
    let from = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: `from` is all of `bytes`, which the kernel only reads.
    let count = unsafe { libc::pwritev2(pipe.as_raw_fd(), &from, 1, -1, libc::RWF_NOWAIT) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::FromRawFd;
    use std::thread;

    use super::*;

    /// Both ends wait, as a front end's may.
    fn pipe_ends() -> [OwnedFd; 2] {
        let mut fds = [0; 2];
        // SAFETY: the kernel writes two descriptors, which nobody else has.
        unsafe {
            assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
            fds.map(|fd| OwnedFd::from_raw_fd(fd))
        }
    }

    fn state() -> Vec<u8> {
        (0..3_000_000u32).map(|it| it as u8).collect()
    }

    /// A virtual machine monitor's user makes the pipe; the driver domain is another user. Returns false if
    /// the test is of a user who cannot become another.
    fn as_another_user(work: impl FnOnce() + Send) -> bool {
        let run = || {
            // SAFETY: this system call changes the thread alone.
            let can = unsafe { libc::syscall(libc::SYS_setresuid, 65533, 65533, 65533) } == 0;
            if can {
                work();
            }
            can
        };
        thread::scope(|scope| scope.spawn(run).join().expect("its end"))
    }

    fn carry(transfer: &mut Transfer) {
        while !transfer.carry().expect("carried") {
            thread::yield_now();
        }
    }

    #[test]
    fn a_pipe_of_another_user_takes_a_state() {
        let [reader, writer] = pipe_ends();
        let theirs = thread::spawn(move || {
            let mut read = Vec::new();
            File::from(reader).read_to_end(&mut read).expect("read");
            read
        });
        let can = as_another_user(|| carry(&mut Transfer::save(writer, state()).expect("a pipe")));
        let read = theirs.join().expect("its end");
        assert!(!can || read == state());
    }

    #[test]
    fn a_pipe_of_another_user_gives_a_state() {
        let [reader, writer] = pipe_ends();
        let theirs = thread::spawn(move || {
            // The test may run as a user who cannot become another.
            let _ = File::from(writer).write_all(&state());
        });
        as_another_user(|| {
            let mut transfer = Transfer::load(reader, 4_000_000).expect("a pipe");
            carry(&mut transfer);
            assert!(transfer.into_bytes() == state());
        });
        theirs.join().expect("its end");
    }

    #[test]
    fn an_empty_pipe_does_not_wait_nor_is_more_taken_than_there_can_be() {
        let [reader, writer] = pipe_ends();
        let mut transfer = Transfer::load(reader, 10).expect("a pipe");
        assert!(!transfer.carry().expect("nothing is there"));
        File::from(writer).write_all(&[0; 11]).expect("written");
        let error = transfer.carry().expect_err("too much");
        assert!(error.to_string().contains("longer than 10 bytes"), "{error}");
    }
}
