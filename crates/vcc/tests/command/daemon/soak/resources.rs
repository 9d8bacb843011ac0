//! What a process holds, for itself and in the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pins of maps, programs and links.
const PINS: &str = "/sys/fs/bpf";
/// Far longer than anything takes to end; a test that waits so long fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// A process at which nothing has changed for so long rests. The daemon holds on to expedited grace
/// periods a second longer than it needs them.
const SETTLED: Duration = Duration::from_secs(2);

/// What returns to what it was when a process rests. Memory does not, to the byte: see [`super::trend`].
#[derive(Clone, PartialEq, Default)]
pub struct Resources {
    /// Descriptors by what they are open for, without numbers.
    descriptors: BTreeMap<String, u64>,
    threads: u64,
    pinned: u64,
    /// Of the maps and programs that it has open. Of a map that allocates its entries when they come,
    /// the kernel counts those that there are.
    kernel_bytes: u64,
}

impl Resources {
    pub fn of_process(pid: u32) -> Self {
        let mut held =
            Self { threads: vcc_testing::process_status(pid, "Threads"), ..Self::default() };
        held.pinned = files_below(Path::new(PINS));
        let mut counted = BTreeSet::new();
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors") {
            // One that is read here may be closed at any time.
            let Ok(entry) = entry else { continue };
            let Ok(file) = fs::read_link(entry.path()) else { continue };
            let kind = file.to_string_lossy().replace(|c: char| c.is_ascii_digit(), "");
            *held.descriptors.entry(kind).or_default() += 1;
            let number = entry.file_name();
            let info = format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy());
            let info = fs::read_to_string(info).unwrap_or_default();
            let value = |name: &str| {
                let line = info.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().parse::<u64>().ok()
            };
            // Several descriptors may be of one map.
            let map = value("map_id:").map(|id| ("map", id));
            if let Some(object) = map.or(value("prog_id:").map(|id| ("program", id)))
                && counted.insert(object)
            {
                held.kernel_bytes += value("memlock:").expect("fdinfo of BPF has memlock");
            }
        }
        held
    }

    /// What it holds at rest, after its warm-up.
    pub fn settled(pid: u32) -> Self {
        let begin = Instant::now();
        let (mut held, mut since) = (Self::of_process(pid), begin);
        while since.elapsed() < SETTLED {
            sleep(Duration::from_millis(100));
            let now = Self::of_process(pid);
            if now != held {
                (held, since) = (now, Instant::now());
            }
            assert!(begin.elapsed() < PATIENCE, "it does not rest: {held}");
        }
        held
    }

    /// Waits until the process holds no more than this.
    #[track_caller]
    pub fn is_all(&self, pid: u32) -> Self {
        let begin = Instant::now();
        loop {
            let now = Self::of_process(pid);
            if now.counts().iter().zip(self.counts()).all(|(now, before)| *now <= before) {
                return now;
            }
            assert!(begin.elapsed() < PATIENCE, "it has held\n  {self}\nand holds\n  {now}");
            sleep(Duration::from_millis(100));
        }
    }

    fn counts(&self) -> [u64; 4] {
        [self.descriptors.values().sum(), self.threads, self.pinned, self.kernel_bytes]
    }

    /// In words, for a line of figures.
    pub fn in_words(&self) -> String {
        let [descriptors, threads, pinned, kernel_bytes] = self.counts();
        let kernel_kib = kernel_bytes / 1024;
        format!(
            "{descriptors} descriptors, {threads} threads, {pinned} pins, {kernel_kib} KiB of maps"
        )
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.kernel_bytes;
        write!(f, "{} ({bytes} bytes): {:?}", self.in_words(), self.descriptors)
    }
}

/// Memory of its own: pages that no file backs.
pub fn memory_kib(pid: u32) -> u64 {
    let of = |field| vcc_testing::process_status(pid, field);
    of("RssAnon") + of("RssShmem")
}

/// Files come and go meanwhile.
fn files_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let count = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_below(&entry.path()),
        Ok(_) => 1,
        Err(_) => 0,
    };
    entries.map(count).sum()
}
