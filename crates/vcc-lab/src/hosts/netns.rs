//! Network namespaces without names: they live as long as this process holds them, and end with
//! it however it ends.

use crate::error::{Doing, Result};
use crate::system;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;

const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

pub struct Netns {
    file: File,
}

impl Netns {
    pub fn create() -> Result<Self> {
        let made = on_a_thread(|| {
            system::unshare_network()?;
            File::open(OWN_NAMESPACE)
        });
        Ok(Self { file: made.doing(|| "create a network namespace".into())? })
    }

    /// Does something inside the namespace; the calling thread stays where it is.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_a_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// Moves the calling thread into the namespace, for good.
    pub fn enter(&self) -> Result<()> {
        system::enter_network(self.file.as_fd()).doing(|| "enter a network namespace".into())
    }

    /// A path under which other programs can open the namespace while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Sets kernel parameters; paths are below /proc/sys/net.
    pub fn set(&self, parameters: &[(&str, &str)]) -> Result<()> {
        self.inside(|| {
            parameters.iter().try_for_each(|(name, value)| {
                let path = format!("/proc/sys/net/{name}");
                fs::write(&path, value).doing(|| format!("write '{value}' to {path}"))
            })
        })
    }

    /// Frames that the namespace's devices have dropped, by device.
    pub fn drops(&self) -> Result<Vec<(String, u64)>> {
        let table = self.inside(|| {
            let path = "/proc/thread-self/net/dev";
            fs::read_to_string(path).doing(|| format!("read {path}"))
        })?;
        Ok(parse_drops(&table))
    }
}

fn on_a_thread<T, E>(
    work: impl FnOnce() -> std::result::Result<T, E> + Send,
) -> std::result::Result<T, E>
where
    T: Send,
    E: Send + From<Panicked>,
{
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|_| Err(Panicked.into()))
}

struct Panicked;

impl From<Panicked> for io::Error {
    fn from(_: Panicked) -> Self {
        Self::other("the helper thread ended early")
    }
}

impl From<Panicked> for crate::Error {
    fn from(panicked: Panicked) -> Self {
        Self::System { action: "work in a namespace".into(), source: panicked.into() }
    }
}

/// Sums the receive and transmit drops and errors of each device in /proc/net/dev.
fn parse_drops(table: &str) -> Vec<(String, u64)> {
    const COUNTED: [usize; 4] = [2, 3, 10, 11];
    let devices = table.lines().filter_map(|line| line.split_once(':'));
    devices
        .map(|(device, counters)| {
            let counters: Vec<u64> =
                counters.split_whitespace().map_while(|field| field.parse().ok()).collect();
            let drops = COUNTED.iter().filter_map(|&i| counters.get(i)).sum();
            (device.trim().to_owned(), drops)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_drops_of_each_device() {
        let table = "Inter-|   Receive                  |  Transmit\n \
            face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n\
            \x20   lo:  100 1 0 0 0 0 0 0  100 1 0 0 0 0 0 0\n\
            \x20 eth0:  100 1 1 20 0 0 0 0  100 1 300 4000 7 0 0 0\n";
        assert_eq!(parse_drops(table), [("lo".to_owned(), 0), ("eth0".to_owned(), 4321)]);
    }
}
