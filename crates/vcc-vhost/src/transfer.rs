//! A card's state on its way through a pipe of the front end's (vhost-user, "Migrating back-end
//! state"). Nothing waits for the other end.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

/// Bytes of one read.
const PART_BYTES: usize = 1 << 16;

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
        let pipe = Some(own_end(&fd, OpenOptions::new().write(true))?);
        let limit_bytes = bytes.len();
        Ok(Transfer { direction: Direction::Save, pipe, bytes, written_bytes: 0, limit_bytes })
    }

    /// Takes no more than `limit_bytes`.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn load(fd: OwnedFd, limit_bytes: usize) -> io::Result<Self> {
        let pipe = Some(own_end(&fd, OpenOptions::new().read(true))?);
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
        match pipe.write(&bytes[*written_bytes..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            count => *written_bytes += count?,
        }
    }
    Ok(())
}

fn read(pipe: &mut File, bytes: &mut Vec<u8>, limit_bytes: usize) -> io::Result<()> {
    let mut part = vec![0; PART_BYTES];
    loop {
        match pipe.read(&mut part) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) => return Ok(()),
            count => bytes.extend_from_slice(&part[..count?]),
        }
        if bytes.len() > limit_bytes {
            return Err(io::Error::other(format!("it is longer than {limit_bytes} bytes")));
        }
    }
}

/// The front end may change whether its descriptor waits, as it shares it; so this opens the pipe anew.
fn own_end(fd: &OwnedFd, options: &mut OpenOptions) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    if !std::fs::metadata(&path)?.file_type().is_fifo() {
        return Err(io::Error::other("its descriptor is no pipe"));
    }
    options.custom_flags(libc::O_NONBLOCK).open(path)
}
