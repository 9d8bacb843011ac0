//! Files of text as a tar.gz.

use std::io;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use tar::{Builder, Header};

use super::collection::File;

/// In a directory, so that unpacking scatters nothing.
pub fn pack(directory: &str, files: &[File], now: Timestamp) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = Header::new_gnu();
        header.set_mode(0o600);
        header.set_mtime(now.as_second().try_into().unwrap_or_default());
        header.set_size(file.text.len() as u64);
        let path = format!("{directory}/{}", file.name);
        archive.append_data(&mut header, path, file.text.as_bytes())?;
    }
    archive.into_inner()?.finish()
}
