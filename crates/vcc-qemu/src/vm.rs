//! A virtual machine, and the shell in it.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempDir};

use crate::{Image, migration};

/// Boot and commands of an emulated machine, on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);
const READY: &str = "guest: ready";
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// The longest line that a terminal takes (termios(3)) is 4096 bytes.
const LINE_BYTES: usize = 1000;

/// Is QEMU installed?
pub fn has_qemu() -> bool {
    Command::new(QEMU).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// QEMU runs until this is dropped.
pub struct Vm {
    qemu: Child,
    to_shell: ChildStdin,
    from_shell: Receiver<Vec<u8>>,
    output: String,
    commands: u32,
    /// QEMU has it open.
    _locks: NamedTempFile,
    /// Of its monitor.
    sockets: TempDir,
}

const MONITOR: &str = "monitor";

impl Vm {
    /// Boots a guest whose card has the back end `net` in the options `netdev`; without them it has
    /// no card. Its memory is shared, as vhost-user needs. `prepare` is called before QEMU starts.
    pub fn boot(
        image: &Image,
        netdev: &[String],
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut vm = Self::start(image, netdev, false, prepare)?;
        vm.until(READY)?;
        Ok(vm)
    }

    /// Moves to another QEMU, in the calling thread's network namespace, with the back end `netdev`
    /// there. `meanwhile` is called when the guest has stopped here and before it continues there.
    pub fn migrate(
        &mut self,
        image: &Image,
        netdev: &[String],
        meanwhile: impl FnOnce(),
    ) -> io::Result<()> {
        let mut there = Self::start(image, netdev, true, |_| ())?;
        migration::migrate(&self.monitor(), &there.monitor(), meanwhile)?;
        there.commands = self.commands;
        there.output = std::mem::take(&mut self.output);
        for bytes in self.from_shell.try_iter() {
            there.output += &lossy(&bytes);
        }
        *self = there;
        Ok(())
    }

    fn monitor(&self) -> PathBuf {
        self.sockets.path().join(MONITOR)
    }

    /// QEMU, which boots the guest, or waits for one.
    fn start(
        image: &Image,
        netdev: &[String],
        waits: bool,
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let sockets = tempfile::tempdir()?;
        let monitor = sockets.path().join(MONITOR);
        let mut command = Command::new(&image.qemu);
        command
            .args(["-machine", "q35,memory-backend=memory", "-m", "256M", "-accel", "tcg"])
            .args(["-object", "memory-backend-memfd,id=memory,size=256M,share=on"])
            .args([
                "-cpu",
                "max,-erms,-fsrm",
                "-nodefaults",
                "-display",
                "none",
                "-serial",
                "stdio",
            ])
            .args(["-name", "guest,debug-threads=on"])
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .args(["-kernel".into(), image.file("vmlinuz"), "-initrd".into(), image.file("initrd")])
            .args(netdev)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.args(["-qmp", &format!("unix:{},server=on,wait=off", monitor.display())]);
        if waits {
            command.args(["-incoming", "defer"]);
        }
        let locks = crate::locks::library()?;
        command.env("LD_PRELOAD", locks.path());
        if !netdev.is_empty() {
            // Without KVM, QEMU has no MSI-X vectors that a vhost-user card may use.
            // The guest refuses XDP, which this QEMU does not announce to the back end.
            let card = "virtio-net-pci,netdev=net,disable-legacy=on,vectors=0,ioeventfd=on,\
                        ctrl_guest_offloads=off";
            command.args(["-device", card]);
        }
        prepare(&mut command);
        let mut qemu = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::new(
                ErrorKind::NotFound,
                format!("{QEMU} is missing: install the package qemu-system-x86"),
            ),
            _ => error,
        })?;
        let (mut output, to_shell) = match (qemu.stdout.take(), qemu.stdin.take()) {
            (Some(output), Some(input)) => (output, input),
            _ => return Err(Error::other("QEMU has no serial line")),
        };
        let (sender, from_shell) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            qemu,
            to_shell,
            from_shell,
            output: String::new(),
            commands: 0,
            _locks: locks,
            sockets,
        })
    }

    /// Runs a line in the guest's shell. Returns what it has printed.
    pub fn run(&mut self, line: &str) -> io::Result<String> {
        self.begin(line)?;
        self.finish()
    }

    /// Starts a line in the guest's shell; [`Vm::finish`] waits for its end.
    pub fn begin(&mut self, line: &str) -> io::Result<()> {
        self.commands += 1;
        // The shell may echo the line, which must not be taken for its end.
        let line = format!("{line}; echo \"END\"-{}-\n", self.commands);
        self.to_shell.write_all(line.as_bytes())
    }

    pub fn finish(&mut self) -> io::Result<String> {
        let end = format!("END-{}-", self.commands);
        let output = self.until(&end)?;
        Ok(output.strip_suffix(&end).unwrap_or(&output).to_owned())
    }

    /// Writes a file in the guest.
    pub fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.run(&format!(": >{path}"))?;
        for part in bytes.chunks(LINE_BYTES / 4) {
            let escaped: String = part.iter().map(|byte| format!("\\{byte:03o}")).collect();
            self.run(&format!("printf '{escaped}' >>{path}"))?;
        }
        Ok(())
    }

    /// Takes all its CPUs from it, as other guests do on a busy host.
    pub fn stop(&self) -> io::Result<()> {
        self.signal(libc::SIGSTOP)?;
        let mut status = 0;
        // SAFETY: the call writes an int, and the process is ours and has not been waited for.
        let id = unsafe { libc::waitpid(self.process_id(), &mut status, libc::WUNTRACED) };
        if id < 0 || !libc::WIFSTOPPED(status) {
            return Err(Error::other(format!("QEMU does not stop: status {status:#x}")));
        }
        Ok(())
    }

    pub fn go_on(&self) -> io::Result<()> {
        self.signal(libc::SIGCONT)
    }

    /// Its threads, each with whether it runs one of the guest's CPUs.
    pub fn threads(&self) -> io::Result<Vec<(libc::pid_t, bool)>> {
        let mut threads = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/task", self.process_id()))? {
            let entry = entry?;
            // One may have ended since.
            let Ok(name) = fs::read_to_string(entry.path().join("comm")) else { continue };
            let id = entry.file_name().to_str().and_then(|id| id.parse().ok());
            threads.extend(id.map(|id| (id, name.starts_with("CPU "))));
        }
        Ok(threads)
    }

    fn process_id(&self) -> libc::pid_t {
        self.qemu.id() as libc::pid_t
    }

    fn signal(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: the call takes no pointers, and the process has not been waited for.
        match unsafe { libc::kill(self.process_id(), signal) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
    fn until(&mut self, text: &str) -> io::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.output.find(text) {
                let rest = self.output.split_off(at + text.len());
                return Ok(std::mem::replace(&mut self.output, rest));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.from_shell.recv_timeout(left) {
                Ok(bytes) => self.output += &lossy(&bytes),
                Err(error) => {
                    let why = match error {
                        RecvTimeoutError::Timeout => "does not say",
                        RecvTimeoutError::Disconnected => "ended before it said",
                    };
                    let output = &self.output;
                    return Err(Error::other(format!("the guest {why} `{text}`, after: {output}")));
                }
            }
        }
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

impl Drop for Vm {
    fn drop(&mut self) {
        // It may have ended before.
        let _: [io::Result<()>; 2] = [self.qemu.kill(), self.qemu.wait().map(drop)];
    }
}
