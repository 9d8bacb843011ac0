//! The network namespace of a guest or of the hypervisor, with what the lab asks of it.

use crate::base::error::{Doing, Result};
use std::fs;

pub struct Netns(vcc_port::Netns);

impl Netns {
    pub fn create() -> Result<Self> {
        let made = vcc_port::Netns::create();
        Ok(Self(made.doing(|| "create a network namespace".into())?))
    }

    /// Does something inside the namespace; the calling thread stays where it is.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        self.0.inside(work).doing(|| "enter a network namespace".into())?
    }

    /// A path under which other programs can open the namespace while this process lives.
    pub fn path(&self) -> String {
        self.0.path()
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
