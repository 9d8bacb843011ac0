//! Policies with the text that they were read from.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use vcc_policy::{Policy, Problem};

use crate::{Error, Result};

/// With all the rules and networks that there can be, a policy has a quarter of it.
pub(crate) const LONGEST_BYTES: usize = 4 << 20;

/// The text of a policy's file, unless it is longer than any policy, of which a part is none. A pipe is
/// read to its end, however long that takes.
pub fn read_policy(path: &Path) -> io::Result<String> {
    read(File::open(path)?)
}

/// Where nothing may wait: of a regular file, which always can be read.
fn read_regular(path: &Path) -> io::Result<String> {
    // Else opening a pipe waits for who writes to it, and a terminal may become ours.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("this is no regular file, which a daemon's policy has to be"));
    }
    read(file)
}

fn read(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LONGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST_BYTES {
        let why = format!("a policy has at most {} MiB, and this has more", LONGEST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "this is not UTF-8"))
}

/// A policy that can be used, with the text that it was read from.
pub(crate) struct Source {
    pub text: String,
    pub file_name: String,
    pub policy: Policy,
    pub warnings: Vec<Problem>,
}

impl Source {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let failed = |source| Error::Unreadable { path: path.to_owned(), source };
        Self::parse(read_regular(path).map_err(failed)?, &path.display().to_string())
    }

    pub(crate) fn parse(text: String, file_name: &str) -> Result<Self> {
        match Policy::parse(&text, file_name) {
            Ok(checked) => {
                let (policy, warnings) = (checked.policy, checked.warnings);
                Ok(Self { text, file_name: file_name.to_owned(), policy, warnings })
            }
            Err(problems) => Err(Error::BadPolicy { file: file_name.to_owned(), problems }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_one_and_a_byte_more() {
        let path = std::env::temp_dir().join(format!("vcc-longest-{}.toml", std::process::id()));
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("a file");
            Source::read(&path).map(|source| source.text.len()).map_err(|e| e.to_string())
        };
        // What is cut may still be a policy, but not the one that was written.
        let mut text = vec![b'#'; LONGEST_BYTES];
        assert_eq!(read(&text), Ok(LONGEST_BYTES));
        text.push(b'\n');
        let name = path.display();
        let why = "a policy has at most 4 MiB, and this has more";
        assert_eq!(read(&text), Err(format!("cannot read {name}: {why}")));
        assert_eq!(read(b"\xff"), Err(format!("cannot read {name}: this is not UTF-8")));
        let _ = std::fs::remove_file(&path);
    }
}
