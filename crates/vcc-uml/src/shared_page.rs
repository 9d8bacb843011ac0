//! Memory that this process shares with guests.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use crate::system::memory_file;

pub(crate) struct SharedPage {
    fd: OwnedFd,
    page: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the page is accessed by atomics alone.
unsafe impl Send for SharedPage {}

impl SharedPage {
    /// Zeros.
    pub fn create(name: &CStr, bytes: usize) -> io::Result<Self> {
        let fd = memory_file(name, bytes as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { fd, page, bytes })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside of the mapping, which lives as long as `self`, and aligned.
        unsafe { AtomicU32::from_ptr(self.place(offset, 4).cast()) }
    }

    pub fn half(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: inside of the mapping, which lives as long as `self`, and aligned.
        unsafe { AtomicU16::from_ptr(self.place(offset, 2).cast()) }
    }

    pub fn long(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside of the mapping, which lives as long as `self`, and aligned.
        unsafe { AtomicU64::from_ptr(self.place(offset, 8).cast()) }
    }

    fn place(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset % bytes == 0 && offset + bytes <= self.bytes, "a field of the page");
        // SAFETY: inside of the mapping.
        unsafe { self.page.as_ptr().add(offset) }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `create` with this length; no reference outlives `self`.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.bytes) };
    }
}
