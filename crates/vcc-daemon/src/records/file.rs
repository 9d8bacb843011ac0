//! The file of records, and its rotation.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::journal;
use crate::records::Record;
use crate::records::watched::Earlier;

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Stdout,
    File(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => to.write_str("stdout"),
            Self::File(path) => path.display().fmt(to),
        }
    }
}

/// The options of records.
#[derive(Clone, Debug)]
pub struct RecordsOptions {
    pub target: Target,
    /// A file of this size gets the name FILE.1, and a new one begins.
    pub file_max_bytes: u64,
    /// The number of such files that are kept.
    pub kept_files: u32,
    /// The share of connections that are recorded, above 0 and at most 1.
    pub share: f64,
}

/// FILE.1, FILE.2 and so on: the names that a full file gets, one after another.
pub fn renamed(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

pub struct Records {
    options: RecordsOptions,
    /// None after a failure, until it can be opened again.
    file: Option<File>,
    file_bytes: u64,
    /// Lines that are not written yet.
    lines: Vec<u8>,
    count: u64,
    /// Why writing failed, while it fails.
    failure: Option<String>,
    lost_meanwhile: u64,
}

impl Records {
    /// Why records cannot be written now.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    pub fn open(options: &RecordsOptions) -> io::Result<Self> {
        let mut records = Self {
            options: options.clone(),
            file: None,
            file_bytes: 0,
            lines: Vec::new(),
            count: 0,
            failure: None,
            lost_meanwhile: 0,
        };
        records.open_file()?;
        Ok(records)
    }

    /// Adds a record, which [`Self::flush`] writes.
    pub fn write(&mut self, record: &Record) {
        // A record can be written as JSON: its keys are text.
        if serde_json::to_writer(&mut self.lines, record).is_ok() {
            self.lines.push(b'\n');
            self.count += 1;
        }
    }

    /// Writes what was added. Returns how many records were written, and how many are lost: it never
    /// waits for space.
    pub fn flush(&mut self) -> (u64, u64) {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return (0, 0);
        }
        let written = self.write_lines();
        self.lines.clear();
        match written {
            Ok(()) => {
                if self.failure.take().is_some() {
                    let lost = std::mem::take(&mut self.lost_meanwhile);
                    journal::notice!(
                        "records are written to {} again; {lost} were lost",
                        self.options.target
                    );
                }
                (count, 0)
            }
            Err(error) => {
                self.file = None;
                self.lost_meanwhile += count;
                let why = error.to_string();
                if self.failure.as_ref() != Some(&why) {
                    journal::warning!(
                        "records cannot be written to {}: {why}; connections continue, and records \
                         are lost meanwhile",
                        self.options.target
                    );
                    self.failure = Some(why);
                }
                (0, count)
            }
        }
    }

    fn write_lines(&mut self) -> io::Result<()> {
        let Target::File(path) = self.options.target.clone() else {
            return io::stdout().lock().write_all(&self.lines);
        };
        if self.has_moved(&path) {
            self.open_file()?;
        }
        if self.file_bytes >= self.options.file_max_bytes {
            self.rotate(&path)?;
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.lines)?;
            self.file_bytes += self.lines.len() as u64;
        }
        Ok(())
    }

    /// Is the path that of another file by now? Others may have renamed it.
    fn has_moved(&self, path: &Path) -> bool {
        let identity = |it: &Metadata| (it.dev(), it.ino());
        let ours = self.file.as_ref().and_then(|file| file.metadata().ok());
        let there = fs::metadata(path).ok();
        ours.is_none() || ours.as_ref().map(identity) != there.as_ref().map(identity)
    }

    fn open_file(&mut self) -> io::Result<()> {
        let Target::File(path) = &self.options.target else { return Ok(()) };
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o640).open(path)?;
        self.file_bytes = file.metadata()?.len();
        // A line that a full disk has cut ends here.
        if self.file_bytes > 0 {
            let mut last = [0];
            file.read_exact_at(&mut last, self.file_bytes - 1)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        self.file = Some(file);
        Ok(())
    }

    /// The records at the end of the file; None if it is stdout.
    pub fn latest(&self) -> io::Result<Option<Earlier>> {
        /// More than the records of ten seconds, for which connections stay in their tables.
        const LATEST_BYTES: u64 = 64 << 20;
        let Some(file) = &self.file else { return Ok(None) };
        let from = self.file_bytes.saturating_sub(LATEST_BYTES);
        let mut bytes = vec![0; (self.file_bytes - from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        // The first may be a part of a line.
        let records = lines.filter_map(|line| serde_json::from_slice::<Record>(line).ok());
        Ok(Some(records.map(|it| ((it.guest, it.peer), it.ended_unix_s)).collect()))
    }

    /// FILE.1 is the latest.
    fn rotate(&mut self, path: &Path) -> io::Result<()> {
        let kept = |number| renamed(path, number);
        let rename = |from: &Path, to: &Path| match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed,
        };
        for number in (1..self.options.kept_files).rev() {
            rename(&kept(number), &kept(number + 1))?;
        }
        match self.options.kept_files {
            0 => fs::remove_file(path)?,
            _ => rename(path, &kept(1))?,
        }
        self.open_file()
    }
}

#[cfg(test)]
mod tests {
    use vcc_view::testing::flow;

    use super::*;
    use crate::records::record::Counted;

    fn options(path: PathBuf, kept_files: u32) -> RecordsOptions {
        RecordsOptions { target: Target::File(path), file_max_bytes: 600, kept_files, share: 1.0 }
    }

    fn record(number: u64) -> Record {
        let flow = flow("10.0.0.1:40000", "192.0.2.9:80");
        Record { acked_bytes: number, ..Record::of_flow(&flow, &Counted::default()) }
    }

    fn numbers(path: &Path) -> Vec<u64> {
        let text = fs::read_to_string(path).expect("a file");
        let number = |line: &str| serde_json::from_str::<Record>(line).expect(line).acked_bytes;
        text.lines().filter(|line| !line.is_empty()).map(number).collect()
    }

    #[test]
    fn full_files_are_renamed_and_the_oldest_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("records");
        let mut records = Records::open(&options(path.clone(), 2)).expect("a file");
        // Two records are more than 600 bytes, and one is less.
        for number in 0..8 {
            records.write(&record(number));
            assert_eq!(records.flush(), (1, 0));
        }
        let at = |suffix| numbers(&directory.path().join(format!("records{suffix}")));
        assert_eq!((at(".2"), at(".1"), at("")), (vec![2, 3], vec![4, 5], vec![6, 7]));
        assert!(!directory.path().join("records.3").exists());
        // It continues the file, and one that others have renamed is begun again.
        let mut records = Records::open(&options(path.clone(), 0)).expect("a file");
        fs::rename(&path, directory.path().join("moved")).expect("renamed");
        fs::write(&path, "").expect("a file, as logrotate makes one");
        records.write(&record(9));
        assert_eq!(records.flush(), (1, 0));
        assert_eq!(at(""), [9]);
        let latest = records.latest().expect("readable").expect("a file");
        assert_eq!(latest.len(), 1, "{latest:?}");
        // A line was cut before.
        fs::write(&path, "{").expect("a file");
        let mut records = Records::open(&options(path.clone(), 0)).expect("a file");
        records.write(&record(10));
        assert_eq!(records.flush(), (1, 0));
        assert!(fs::read_to_string(&path).expect("a file").starts_with("{\n{"));
    }

    #[test]
    fn records_are_lost_while_they_cannot_be_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).expect("a directory");
        let path = inner.join("records");
        let mut records = Records::open(&options(path.clone(), 2)).expect("a file");
        fs::remove_dir_all(&inner).expect("removed");
        records.write(&record(1));
        records.write(&record(2));
        assert_eq!(records.flush(), (0, 2));
        assert_eq!(records.flush(), (0, 0));
        fs::create_dir(&inner).expect("a directory");
        records.write(&record(3));
        assert_eq!(records.flush(), (1, 0));
        assert_eq!(numbers(&path), [3]);
    }
}
