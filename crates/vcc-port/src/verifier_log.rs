//! The verifier's whole log of a program that it refused, in a file for whoever looks into it.

use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use crate::{kernel, open_own_directory};

/// Of this boot, as the refusal is of this kernel.
const DIRECTORY: &str = "/run/vcc";
/// One name for all processes: a daemon that tries again must not fill the memory with logs.
const NAME: &str = "verifier.log";
/// In the directory of all users' temporary files.
const TEMPORARY_NAME: &str = "vcc-verifier.log";

/// Writes the log instead of the one before. Returns where it is, or why it is nowhere, for a message.
pub(crate) fn keep(program: &str, log: &str) -> String {
    let head = format!(
        "vcc {}, Linux {}, the program {program}\n",
        env!("CARGO_PKG_VERSION"),
        kernel::release()
    );
    let log = format!("{head}{log}\n");
    let elsewhere = env::temp_dir().join(TEMPORARY_NAME);
    match write_in_either(Path::new(DIRECTORY), &elsewhere, &log) {
        Ok(path) => format!("the whole log is in {}", path.display()),
        Err(why) => format!("the whole log is lost, because {why}"),
    }
}

/// The path of the file that was written.
fn write_in_either(directory: &Path, elsewhere: &Path, log: &str) -> Result<PathBuf, String> {
    let path = directory.join(NAME);
    let in_directory = own(directory).and_then(|()| write(&path, log));
    let Err(first) = in_directory else { return Ok(path) };
    match write(elsewhere, log) {
        Ok(()) => Ok(elsewhere.to_owned()),
        Err(second) => Err(format!(
            "neither {} ({first}) nor {} ({second}) can be written",
            path.display(),
            elsewhere.display()
        )),
    }
}

/// Creates the directory if it is not there. It is an error if it is another user's.
fn own(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o750).create(directory) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    open_own_directory(directory).map(drop)
}

/// Replaces a file in one step. Others may write to its directory, so no link there is followed.
fn write(path: &Path, log: &str) -> io::Result<()> {
    let next = path.with_extension(format!("{}.log", process::id()));
    // Of a process with this number that died half way.
    remove_if_there(&next)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
    let written = file.write_all(log.as_bytes()).and_then(|()| fs::rename(&next, path));
    if written.is_err() {
        // The first error is reported.
        let _ = fs::remove_file(&next);
    }
    written
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    struct Places {
        root: tempfile::TempDir,
        directory: PathBuf,
        elsewhere: PathBuf,
    }

    impl Places {
        fn new() -> Self {
            let root = tempfile::tempdir().expect("a directory");
            let (directory, elsewhere) = (root.path().join("vcc"), root.path().join("else.log"));
            Self { root, directory, elsewhere }
        }

        fn write(&self, log: &str) -> Result<PathBuf, String> {
            write_in_either(&self.directory, &self.elsewhere, log)
        }
    }

    #[test]
    fn a_later_log_replaces_the_one_before() {
        let places = Places::new();
        for log in ["a longer log", "another"] {
            let path = places.write(log).expect("written");
            assert_eq!(path, places.directory.join("verifier.log"));
            assert_eq!(fs::read_to_string(path).expect("read"), log);
        }
        let mode = |path: &Path| fs::metadata(path).expect("its mode").mode() & 0o777;
        assert_eq!(mode(&places.directory.join("verifier.log")), 0o600);
        assert_eq!(mode(&places.directory), 0o750);
        assert_eq!(fs::read_dir(&places.directory).expect("read").count(), 1, "nothing is left");
    }

    #[test]
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        let places = Places::new();
        let victim = places.root.path().join("victim");
        fs::write(&victim, "as it was").expect("written");
        fs::write(&places.directory, "no directory").expect("written");
        symlink(&victim, &places.elsewhere).expect("a link");
        let path = places.write("a log").expect("written");
        assert_eq!(path, places.elsewhere, "the temporary directory");
        assert_eq!(fs::read_to_string(path).expect("read"), "a log");
        assert_eq!(fs::read_to_string(victim).expect("read"), "as it was");
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let places = Places::new();
        fs::write(&places.directory, "no directory").expect("written");
        fs::create_dir(&places.elsewhere).expect("a directory in the way");
        let why = places.write("a log").expect_err("there is no room for it");
        assert!(why.starts_with("neither "), "{why}");
        assert!(why.contains("vcc/verifier.log (Not a directory"), "{why}");
        assert!(why.contains("else.log (Is a directory"), "{why}");
        assert_eq!(fs::read_dir(places.root.path()).expect("read").count(), 2, "nothing is left");
    }
}
