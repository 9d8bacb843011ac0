//! A virtual machine: a process of QEMU's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::proc::read;
use crate::text::{Times, times};
use crate::{Error, Shares};

#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) process: u32,
    pub(crate) guest: Option<Arc<str>>,
    /// The threads' directories in /proc, one for each CPU.
    pub(crate) cpus: Vec<PathBuf>,
}

/// Times of its CPUs.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Instant,
    cpus: Vec<Times>,
}

impl Machine {
    /// The id of its process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Its name, if it was given one. libvirt does.
    pub fn guest(&self) -> Option<&Arc<str>> {
        self.guest.as_ref()
    }

    /// # Errors
    /// It has ended, or the kernel does not count.
    pub fn read(&self) -> Result<Reading, Error> {
        let of = |cpu: &PathBuf| {
            let path = cpu.join("schedstat");
            let text = read(&path)?;
            times(&text, &read(&cpu.join("stat"))?).ok_or_else(|| Error::Uncounted {
                path: path.display().to_string(),
                text: text.trim().to_owned(),
            })
        };
        let cpus = self.cpus.iter().map(of).collect::<Result<_, _>>()?;
        Ok(Reading { at: Instant::now(), cpus })
    }
}

impl Reading {
    /// Shares since an earlier reading, of the vCPU that was runnable longest: a vCPU that waits stops its
    /// connections, however many others sleep.
    pub fn since(&self, before: &Self) -> Option<Shares> {
        let interval = self.at.saturating_duration_since(before.at);
        let pairs = before.cpus.iter().zip(&self.cpus);
        let shares = pairs.map(|(before, after)| Shares::between(*before, *after, interval));
        shares.max_by(|one, other| one.runnable().total_cmp(&other.runnable()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_cpu_that_wants_most_stands_for_all() {
        let at = Instant::now();
        let of = |ms: [(u64, u64); 3]| {
            let times = |(running, waiting)| Times {
                running_ns: running * 1_000_000,
                waiting_ns: waiting * 1_000_000,
                is_runnable: true,
            };
            ms.map(times).to_vec()
        };
        let before = Reading { at, cpus: of([(7, 7), (900, 0), (0, 0)]) };
        let after =
            Reading { at: at + Duration::from_secs(1), cpus: of([(107, 507), (1400, 0), (1, 1)]) };
        let shares = after.since(&before).expect("three CPUs");
        assert_eq!((shares.waiting, shares.running), (0.5, 0.1));
        assert_eq!(Reading { at, cpus: Vec::new() }.since(&before), None);
    }
}
