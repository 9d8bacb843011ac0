//! The verifier's whole log of a program that it refused, in a file for whoever looks into it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;

/// Of this boot, as the refusal is of this kernel.
const DIRECTORY: &str = "/run/vcc";

/// Writes the log. Returns where it is, or why it is nowhere, for a message.
pub(crate) fn write(log: &str) -> String {
    let name = format!("verifier-{}.log", process::id());
    match write_in(Path::new(DIRECTORY), &name, log) {
        Ok(()) => format!("the whole log is in {DIRECTORY}/{name}"),
        Err(e) => format!("the whole log could not be written to {DIRECTORY}/{name} ({e})"),
    }
}

/// A later refusal of the same process replaces the log. Nobody else may plant a link in its place.
fn write_in(directory: &Path, name: &str, log: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let path = directory.join(name);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(log.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_later_log_replaces_the_one_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("vcc");
        for log in ["a longer log", "another"] {
            write_in(&place, "log", log).expect("written");
            assert_eq!(fs::read_to_string(place.join("log")).expect("read"), log);
        }
        let mode = fs::metadata(place.join("log")).expect("its mode").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        write_in(file.path(), "log", "a log").expect_err("a file is no directory");
    }
}
