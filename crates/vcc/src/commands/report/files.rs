//! The files of records.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use vcc_daemon::{Record, renamed};

/// Passes all records of the files, and of those that they were renamed to, the oldest file first. Returns the
/// number of lines of JSON that are no records.
pub fn read(files: &[PathBuf], note: &mut dyn FnMut(Record)) -> anyhow::Result<u64> {
    let mut unread = 0;
    for path in files {
        if path.as_os_str() == "-" {
            let failed = || "cannot read the standard input";
            unread += lines(&mut io::stdin().lock(), note).with_context(failed)?;
            continue;
        }
        let open = |path: PathBuf| {
            let failed = || {
                format!("cannot read {}; `vcc run --records FILE` writes records", path.display())
            };
            let file = File::open(&path).with_context(failed)?;
            Ok((path, file))
        };
        // The daemon may rename them meanwhile.
        let files: Vec<_> =
            with_renamed(path).into_iter().map(open).collect::<anyhow::Result<_>>()?;
        for (path, file) in files {
            let failed = || format!("cannot read {}", path.display());
            unread += lines(&mut BufReader::new(file), note).with_context(failed)?;
        }
    }
    Ok(unread)
}

/// The file, after those that it was renamed to: FILE.2, FILE.1.
fn with_renamed(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![path.to_owned()];
    paths.extend((1..).map(|number| renamed(path, number)).take_while(|path| path.exists()));
    paths.reverse();
    paths
}

/// More than any record has.
const LINE_MAX_BYTES: u64 = 64 << 10;

/// A full disk leaves parts of lines, and a journal has others among them.
fn lines(from: &mut dyn BufRead, note: &mut dyn FnMut(Record)) -> io::Result<u64> {
    let (mut unread, mut is_within) = (0, false);
    let mut line = Vec::new();
    while from.take(LINE_MAX_BYTES).read_until(b'\n', &mut line)? > 0 {
        let is_whole =
            !is_within && (line.ends_with(b"\n") || (line.len() as u64) < LINE_MAX_BYTES);
        let record = is_whole.then(|| serde_json::from_slice(&line).ok()).flatten();
        match record.filter(Record::is_possible) {
            Some(record) => note(record),
            None => unread += u64::from(!is_within && line.starts_with(b"{")),
        }
        is_within = !line.ends_with(b"\n");
        line.clear();
    }
    Ok(unread)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::groups::tests::record;
    use super::*;

    #[test]
    fn files_are_read_from_the_oldest_without_what_is_no_record() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("records");
        let text = |bytes| serde_json::to_string(&record("acme", bytes)).expect("JSON");
        for (suffix, content) in [
            (".2", format!("{}\n", text(1))),
            (".1", format!("{}\n{{\"port\"\n\n{}", text(2), text(3))),
            ("", format!("{}\n{}", text(4), &text(5)[..40])),
            (".3", format!("Nov 29 host vcc[1]: no record\n{}\n", "{".repeat(200_000))),
            (".5", "not reached\n".to_owned()),
        ] {
            let path = directory.path().join(format!("records{suffix}"));
            fs::write(path, content).expect("a file");
        }
        let mut seen = Vec::new();
        let mut note = |record: Record| seen.push(record.acked_bytes);
        assert_eq!(read(std::slice::from_ref(&path), &mut note).expect("readable"), 3);
        assert_eq!(seen, [1, 2, 3, 4]);
        let impossible = Record { ended_unix_s: 1e300, ..record("acme", 1) };
        fs::write(&path, serde_json::to_string(&impossible).expect("JSON")).expect("a file");
        assert_eq!(read(std::slice::from_ref(&path), &mut |_| {}).expect("readable"), 3);
        let missing = read(&[directory.path().join("other")], &mut |_| {}).expect_err("missing");
        assert!(missing.to_string().contains("other; `vcc run --records FILE`"), "{missing}");
    }
}
