//! Which process of proc(5) is the machine behind a port.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::text;
use crate::{Error, Machine};

const TUN: &str = "/dev/net/tun";

/// The virtual machines of this host, as of the time when they were found.
pub struct Machines {
    all: Vec<Found>,
}

struct Found {
    machine: Machine,
    /// Or why they cannot be seen.
    taps: Result<Taps, String>,
}

struct Taps {
    names: Vec<String>,
    netns_inode: u64,
}

impl Machines {
    pub fn find() -> Self {
        Self::find_in(Path::new("/proc"))
    }

    fn find_in(proc: &Path) -> Self {
        let mut processes = numbers(proc).unwrap_or_default();
        processes.sort_unstable();
        let mut all = Vec::new();
        for process in processes {
            let directory = proc.join(process.to_string());
            let cpus = cpus(&directory);
            if cpus.is_empty() {
                continue;
            }
            let cmdline = read(&directory.join("cmdline")).ok();
            let guest = cmdline.and_then(|it| text::guest(&it)).map(Into::into);
            let taps = match taps(&directory) {
                // It has just ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                taps => taps.map_err(|error| error.to_string()),
            };
            all.push(Found { machine: Machine { process, guest, cpus }, taps });
        }
        Self { all }
    }

    /// The machine of a process.
    ///
    /// # Errors
    /// It has no virtual CPUs, by the names of its threads.
    pub fn of_process(&self, process: u32) -> Result<&Machine, Error> {
        let mut machines = self.all.iter().map(|found| &found.machine);
        machines.find(|machine| machine.process == process).ok_or(Error::NoCpus { process })
    }

    /// The machine that has a tap of this name open, in the network namespace of this inode. None if none
    /// has: a container's veth has no machine behind it.
    ///
    /// # Errors
    /// More than one has, or one may have whose descriptors cannot be seen.
    pub fn of_tap(&self, tap: &str, netns_inode: u64) -> Result<Option<&Machine>, Error> {
        let has = |taps: &Taps| {
            // Another namespace may have a tap of the same name.
            taps.netns_inode == netns_inode && taps.names.iter().any(|name| name == tap)
        };
        let owners = self.all.iter().filter(|found| found.taps.as_ref().is_ok_and(has));
        let owners: Vec<&Machine> = owners.map(|found| &found.machine).collect();
        match owners[..] {
            [machine] => Ok(Some(machine)),
            [] => match self.all.iter().find_map(|found| Some((found, found.taps.as_ref().err()?)))
            {
                None => Ok(None),
                Some((found, why)) => {
                    Err(Error::Hidden { process: found.machine.process, why: why.clone() })
                }
            },
            _ => Err(Error::Several {
                tap: tap.to_owned(),
                processes: owners.iter().map(|machine| machine.process).collect(),
            }),
        }
    }
}

/// The directories of a process's threads that run virtual CPUs. One that has just ended has none.
fn cpus(process: &Path) -> Vec<PathBuf> {
    let tasks = process.join("task");
    let mut threads = numbers(&tasks).unwrap_or_default();
    threads.sort_unstable();
    let directories = threads.into_iter().map(|thread| tasks.join(thread.to_string()));
    let is_cpu = |path: &PathBuf| read(&path.join("comm")).is_ok_and(|comm| text::is_cpu(&comm));
    directories.filter(is_cpu).collect()
}

fn taps(process: &Path) -> io::Result<Taps> {
    let mut names = Vec::new();
    for number in numbers(&process.join("fd"))? {
        let number = number.to_string();
        // Closed since, if it cannot be read.
        if fs::read_link(process.join("fd").join(&number)).is_ok_and(|it| it == Path::new(TUN)) {
            let info = read_text(&process.join("fdinfo").join(number))?;
            names.extend(text::tap(&info).map(str::to_owned));
        }
    }
    Ok(Taps { names, netns_inode: fs::metadata(process.join("ns/net"))?.ino() })
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    read_text(path).map_err(|error| Error::Unreadable {
        path: path.display().to_string(),
        why: error.to_string(),
    })
}

/// Devices, threads and arguments have any bytes: those that are not UTF-8 are replaced.
fn read_text(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// The entries of a directory that are numbers.
fn numbers(directory: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A process of QEMU's with one CPU, a tap, and a network namespace.
    fn add(proc: &TempDir, process: u32, cpu: &str, tap: &str) -> u64 {
        let of = |name: &str| proc.path().join(process.to_string()).join(name);
        for directory in ["fd", "fdinfo", "ns"] {
            fs::create_dir_all(of(directory)).unwrap();
        }
        for (thread, name) in [(process, "qemu-system-x86"), (process + 1, cpu)] {
            let thread = of("task").join(thread.to_string());
            fs::create_dir_all(&thread).unwrap();
            fs::write(thread.join("comm"), format!("{name}\n")).unwrap();
            fs::write(thread.join("schedstat"), "10 20 3\n").unwrap();
            fs::write(thread.join("stat"), format!("101 ({name}) S 1 100\n")).unwrap();
        }
        fs::write(of("cmdline"), "qemu\0-name\0guest=web-1,debug-threads=on\0").unwrap();
        symlink("/dev/null", of("fd/0")).unwrap();
        symlink(TUN, of("fd/7")).unwrap();
        fs::write(of("fdinfo/7"), format!("pos:\t0\niff:\t{tap}\n")).unwrap();
        fs::write(of("ns/net"), "").unwrap();
        fs::metadata(of("ns/net")).unwrap().ino()
    }

    #[test]
    fn a_tap_is_that_of_the_machine_that_has_it_open() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("uptime"), "1 2\n").unwrap();
        let netns = add(&directory, 100, "CPU 0/KVM", "vnet0");
        let other = add(&directory, 200, "CPU 0/TCG", "vnet1");
        // libvirt's own process, which has a tap open for a moment, is no machine.
        add(&directory, 300, "prio-rpc-virtqe", "vnet0");
        let machines = Machines::find_in(directory.path());
        let found = machines.of_tap("vnet0", netns).unwrap().expect("a machine");
        assert_eq!((found.process(), found.guest().map(|it| &**it)), (100, Some("web-1")));
        assert_eq!(
            found.read().unwrap().since(&found.read().unwrap()).map(|it| it.idle),
            Some(1.0)
        );
        let of = |tap, netns| machines.of_tap(tap, netns).unwrap().map(Machine::process);
        assert_eq!((of("vnet1", other), of("vnet2", netns)), (Some(200), None));
        assert_eq!(of("vnet1", netns), None, "it is a tap of another namespace");
        assert_eq!(machines.of_process(200).unwrap().process(), 200);
        assert_eq!(machines.of_process(300).err(), Some(Error::NoCpus { process: 300 }));
        assert_eq!(machines.of_process(7).err(), Some(Error::NoCpus { process: 7 }));
    }

    #[test]
    fn of_two_machines_with_a_tap_of_one_name_neither_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let netns = add(&directory, 100, "CPU 0/KVM", "vnet0");
        add(&directory, 200, "CPU 0/KVM", "vnet0");
        let second = directory.path().join("200/ns/net");
        fs::remove_file(&second).unwrap();
        fs::hard_link(directory.path().join("100/ns/net"), second).unwrap();
        let machines = Machines::find_in(directory.path());
        let several = Error::Several { tap: "vnet0".into(), processes: vec![100, 200] };
        assert_eq!(machines.of_tap("vnet0", netns).err(), Some(several));
        assert!(machines.of_tap("vnet1", netns).unwrap().is_none());
    }

    #[test]
    fn a_tap_whose_name_is_not_utf_8_hides_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let netns = add(&directory, 100, "CPU 0/KVM", "vnet0");
        add(&directory, 200, "CPU 0/KVM", "vnet1");
        let info = directory.path().join("200/fdinfo/7");
        fs::write(info, b"pos:\t0\niff:\tvnet\xff\n").unwrap();
        let machines = Machines::find_in(directory.path());
        assert!(machines.of_tap("vnet0", netns).unwrap().is_some());
        assert!(machines.of_tap("vnet1", netns).unwrap().is_none());
    }

    #[test]
    fn machines_that_cannot_be_seen_may_have_any_tap_that_no_other_has() {
        let directory = tempfile::tempdir().unwrap();
        let netns = add(&directory, 100, "CPU 0/KVM", "vnet0");
        add(&directory, 200, "CPU 0/KVM", "vnet1");
        add(&directory, 300, "CPU 0/KVM", "vnet1");
        for (process, is_there) in [(200, true), (300, false)] {
            let descriptors = directory.path().join(process.to_string()).join("fd");
            fs::remove_dir_all(&descriptors).unwrap();
            if is_there {
                fs::write(descriptors, "no directory for you").unwrap();
            }
        }
        let machines = Machines::find_in(directory.path());
        assert!(machines.of_tap("vnet0", netns).unwrap().is_some());
        let error = machines.of_tap("vnet1", netns).unwrap_err();
        assert!(matches!(error, Error::Hidden { process: 200, .. }), "{error}");
        assert!(machines.of_process(200).is_ok(), "its CPUs are everybody's to see");
        assert!(machines.of_process(300).is_err(), "it has ended");
    }

    #[test]
    fn a_kernel_that_counts_nothing_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        add(&directory, 100, "CPU 0/KVM", "vnet0");
        let machines = Machines::find_in(directory.path());
        let machine = machines.of_process(100).unwrap();
        fs::write(directory.path().join("100/task/101/schedstat"), "0 0 0\n").unwrap();
        let error = machine.read().unwrap_err().to_string();
        assert!(error.contains("101/schedstat is `0 0 0`: this kernel does not"), "{error}");
        fs::remove_dir_all(directory.path().join("100")).unwrap();
        let error = machine.read().unwrap_err().to_string();
        assert!(error.contains("cannot be read: No such file"), "{error}");
    }
}
