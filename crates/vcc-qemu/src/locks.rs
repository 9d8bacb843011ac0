//! A library for QEMU's process, by which the guest's CPUs do not sleep for QEMU's locks.

use std::io::{self, Write};
use tempfile::NamedTempFile;

const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/locks.so"));

/// For the dynamic linker's LD_PRELOAD, as long as this lives.
pub fn library() -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("vcc-locks-").suffix(".so").tempfile()?;
    file.write_all(LIBRARY)?;
    Ok(file)
}
