//! Packet sockets (packet(7)) that receive from a device, and the processes that have them.

use std::fs;
use std::io;
use std::path::Path;

use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketSocket {
    /// None without the right to look into `/proc`.
    pub owner: Option<Process>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: u32,
    pub name: String,
}

/// Those that are bound to this device, of the calling thread's network namespace.
pub(crate) fn bound_to(ifindex: u32) -> Result<Vec<PacketSocket>> {
    let path = "/proc/thread-self/net/packet";
    let text = match fs::read_to_string(path) {
        // A kernel without packet sockets.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(|e| Error::system(format!("read {path}"), e))?,
    };
    let inodes = text.lines().filter_map(|line| receiver(line, ifindex));
    Ok(inodes.map(|inode| PacketSocket { owner: owner_of(inode) }).collect())
}

/// The inode of a socket that receives from this device: sk, RefCnt, Type, Proto, Iface, R, Rmem,
/// User, Inode. Without a protocol it only sends.
fn receiver(line: &str, ifindex: u32) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, protocol, device, _, _, _, inode] = words[..] else { return None };
    let receives = u16::from_str_radix(protocol, 16).ok()? != 0;
    (receives && device.parse() == Ok(ifindex)).then(|| inode.parse().ok()).flatten()
}

/// The first process that has it; processes may end while they are looked at.
fn owner_of(inode: u64) -> Option<Process> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find_map(|pid: u32| {
        let home = Path::new("/proc").join(pid.to_string());
        let files = fs::read_dir(home.join("fd")).ok()?.flatten();
        let has = |file: fs::DirEntry| {
            fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str())
        };
        files.into_iter().any(has).then(|| Process { pid, name: name_of(&home) })
    })
}

/// A process names itself, by any bytes.
fn name_of(home: &Path) -> String {
    let comm = fs::read(home.join("comm")).unwrap_or_default();
    String::from_utf8_lossy(&comm).trim_end().to_owned()
}

impl std::fmt::Display for PacketSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.owner {
            Some(Process { pid, name }) => write!(f, "{name} (process {pid})"),
            None => write!(f, "an unknown process"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_receive_from_the_device() {
        let lines = [
            "sk               RefCnt Type Proto  Iface R Rmem   User   Inode",
            "00000000abcdef01 3      3    0003   7     1 0      0      4711  ",
            "00000000abcdef02 3      3    0003   8     1 0      0      4712  ",
            "00000000abcdef03 3      3    0000   7     1 0      0      4713  ",
            "00000000abcdef04 3      2    86dd   7     1 0      0      4714  ",
        ];
        let inodes: Vec<u64> = lines.iter().filter_map(|line| receiver(line, 7)).collect();
        assert_eq!(inodes, [4711, 4714]);
    }
}
