//! Reading policies.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use vcc_policy::{Policy, Problem};

use crate::{Error, Result, journal};

/// Four times the size of a policy with the most rules and networks that are allowed.
pub(crate) const LONGEST_BYTES: usize = 4 << 20;

/// Reads the text of a policy. A text that is too long is an error, never cut off. A pipe is read
/// to its end, however long that takes.
pub fn read_policy(path: &Path) -> io::Result<String> {
    read(File::open(path)?)
}

/// Reads a regular file only, so that the daemon never blocks.
fn read_regular(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for a writer, and a terminal could become the controlling one.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file, which the daemon requires"));
    }
    read(file)
}

fn read(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LONGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST_BYTES {
        let why = format!("larger than {} MiB, the limit of a policy", LONGEST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
}

/// A valid policy with its text.
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
        // One may have been loaded or unloaded since the last time.
        vcc_port::Underlays::know()?.iter().for_each(|what| journal::warning!("{what}"));
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
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policy.toml");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("a file");
            Source::read(&path).map(|source| source.text.len()).map_err(|e| e.to_string())
        };
        // A text that was cut off may still be a valid policy.
        let mut text = vec![b'#'; LONGEST_BYTES];
        assert_eq!(read(&text), Ok(LONGEST_BYTES));
        text.push(b'\n');
        let name = path.display();
        let why = "larger than 4 MiB, the limit of a policy";
        assert_eq!(read(&text), Err(format!("cannot read {name}: {why}")));
        assert_eq!(read(b"\xff"), Err(format!("cannot read {name}: not UTF-8")));
    }
}
