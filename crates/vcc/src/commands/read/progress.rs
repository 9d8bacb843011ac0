//! How much of a file is read: a line on the terminal, which is gone at the end.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(500);

pub struct Progress {
    file: File,
    name: String,
    /// None: stderr is no terminal, or the file has no size.
    size_bytes: Option<u64>,
    read_bytes: u64,
    shown_at: Instant,
    is_shown: bool,
}

impl Progress {
    pub fn new(path: &Path, file: File) -> Self {
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|it| it.len());
        let size_bytes = size.filter(|bytes| *bytes > 0 && io::stderr().is_terminal());
        let name = path.display().to_string();
        Self { file, name, size_bytes, read_bytes: 0, shown_at: Instant::now(), is_shown: false }
    }

    fn show(&mut self, size_bytes: u64) {
        let percent = 100.min(self.read_bytes * 100 / size_bytes);
        self.write(&format!("\r{}: {percent} %\x1b[K", self.name.escape_debug()));
        (self.shown_at, self.is_shown) = (Instant::now(), true);
    }

    /// A terminal that has gone does not end the reading.
    fn write(&self, text: &str) {
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl Read for Progress {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(to)?;
        self.read_bytes += got as u64;
        if let Some(size_bytes) = self.size_bytes
            && self.shown_at.elapsed() >= EVERY
        {
            self.show(size_bytes);
        }
        Ok(got)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            self.write("\r\x1b[K");
        }
    }
}
