//! The text of files in /proc.

/// Of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub running_ns: u64,
    /// Runnable, on no CPU: `run_delay` in the kernel, which counts a wait when it is over.
    pub waiting_ns: u64,
    pub is_runnable: bool,
}

impl Times {
    /// Has the thread been waiting since a time before? What sleeps and wakes has run in between.
    pub fn waits_since(&self, before: &Self) -> bool {
        self.is_runnable && self == before
    }
}

/// Of `stat`: does the thread run, or wait for a CPU? Its name, in parentheses, may have any.
pub(crate) fn is_runnable(stat: &str) -> Option<bool> {
    let (_, after_name) = stat.rsplit_once(')')?;
    Some(after_name.split_whitespace().next()? == "R")
}

/// Of `schedstat`, and of `stat`. None if the kernel counts nothing: a thread has run at least once.
pub(crate) fn times(schedstat: &str, stat: &str) -> Option<Times> {
    let mut numbers = schedstat.split_whitespace().map(str::parse);
    let mut number = || numbers.next()?.ok();
    let (running_ns, waiting_ns) = (number()?, number()?);
    let turns: u64 = number()?;
    let is_runnable = is_runnable(stat)?;
    (turns > 0).then_some(Times { running_ns, waiting_ns, is_runnable })
}

/// Of `comm`: is the thread one of QEMU's for a virtual CPU? TCG may have one thread for all of them.
pub(crate) fn is_cpu(comm: &str) -> bool {
    let Some((cpu, accelerator)) = comm.trim_end().split_once('/') else { return false };
    let is_numbered = cpu.strip_prefix("CPU ").is_some_and(|number| number.parse::<u32>().is_ok());
    (is_numbered && ["KVM", "TCG"].contains(&accelerator)) || comm.trim_end() == "ALL CPUs/TCG"
}

/// Of `fdinfo` of /dev/net/tun: the name of the tap.
pub(crate) fn tap(fdinfo: &str) -> Option<&str> {
    fdinfo.lines().find_map(|line| line.strip_prefix("iff:")).map(str::trim)
}

/// Of `cmdline`: the guest's name, by `-name NAME,...` or `-name ...,guest=NAME`, as libvirt gives it. A
/// comma in a name is doubled.
pub(crate) fn guest(cmdline: &str) -> Option<String> {
    let mut arguments = cmdline.split('\0');
    arguments.find(|argument| ["-name", "--name"].contains(argument))?;
    let options = arguments.next()?.replace(",,", "\0");
    let mut options = options.split(',').enumerate();
    let name = options.find_map(|(at, option)| match option.split_once('=') {
        Some(("guest", name)) => Some(name),
        None if at == 0 => Some(option),
        _ => None,
    })?;
    (!name.is_empty()).then(|| name.replace('\0', ","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_a_kernel_that_counts() {
        let of = |schedstat: &str| times(schedstat, "101 (CPU 0/KVM) S 1 100\n");
        let expected =
            Times { running_ns: 71_002_340_114, waiting_ns: 142_113_000_021, is_runnable: false };
        assert_eq!(of("71002340114 142113000021 8812\n"), Some(expected));
        let most = Times { running_ns: u64::MAX, waiting_ns: u64::MAX, is_runnable: false };
        assert_eq!(of(&format!("{0} {0} {0}\n", u64::MAX)), Some(most));
        for nothing in ["0 0 0\n", "", "1 2\n", "1 x 3\n", "-1 2 3\n", "1 18446744073709551616 3"] {
            assert_eq!(of(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_thread_is_runnable_whatever_its_name() {
        for (stat, expected) in [
            ("101 (CPU 0/KVM) R 1 100 100 0\n", Some(true)),
            ("101 (CPU) S (0/KVM) R 1\n", Some(true)),
            ("101 (CPU 0) R/KVM) S 1\n", Some(false)),
            ("101 (CPU 0/TCG) D", Some(false)),
            ("101 (CPU 0/TCG)", None),
            ("", None),
        ] {
            assert_eq!(is_runnable(stat), expected, "{stat:?}");
        }
    }

    #[test]
    fn virtual_cpus_are_distinguished_from_qemus_other_threads() {
        for name in ["CPU 0/KVM\n", "CPU 15/TCG\n", "CPU 255/KVM", "ALL CPUs/TCG\n"] {
            assert!(is_cpu(name), "{name:?}");
        }
        let others =
            ["qemu-system-x86", "IO mon_iothread", "vnc_worker", "CPU", "CPU /KVM", "CPU 0"];
        for name in others.into_iter().chain(["CPU 0/0", "kworker/0:1", "CPU x/KVM", ""]) {
            assert!(!is_cpu(name), "{name:?}");
        }
    }

    #[test]
    fn a_tap_is_named_by_its_descriptor() {
        let fdinfo = "pos:\t0\nflags:\t02104002\nmnt_id:\t29\nino:\t160\niff:\tvnet7\n";
        assert_eq!(tap(fdinfo), Some("vnet7"));
        assert_eq!(tap("pos:\t0\nflags:\t02\nmnt_id:\t29\n"), None);
    }

    #[test]
    fn a_guest_has_the_name_that_its_start_gave_it() {
        let of = |arguments: &[&str]| guest(&(arguments.join("\0") + "\0"));
        let libvirt =
            ["/usr/bin/qemu-system-x86_64", "-name", "guest=web-1,debug-threads=on", "-S"];
        assert_eq!(of(&libvirt).as_deref(), Some("web-1"));
        assert_eq!(of(&["qemu", "-name", "web-1"]).as_deref(), Some("web-1"));
        assert_eq!(of(&["qemu", "-name", "debug-threads=on,guest=a,,b"]).as_deref(), Some("a,b"));
        for none in
            [&["qemu", "-m", "256M"][..], &["qemu", "-name"], &["qemu", "-name", "process=q"]]
        {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
