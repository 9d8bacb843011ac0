//! Files that only their owner may read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes all of a file or nothing. A device or a pipe stays what it is, and receives the bytes.
pub fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(file).is_ok_and(|it| !it.is_file()) {
        return OpenOptions::new().write(true).open(file)?.write_all(bytes);
    }
    let directory = file.parent().filter(|it| !it.as_os_str().is_empty());
    let mut new = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(file).map(drop).map_err(|error| error.error)
}
