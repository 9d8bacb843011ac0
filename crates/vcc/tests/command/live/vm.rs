//! A virtual machine: QEMU, Debian's kernel, busybox (guest/live).

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Boot and commands of an emulated machine, on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);
const READY: &str = "guest: ready";

pub struct Vm {
    qemu: Child,
    to_shell: ChildStdin,
    from_shell: Receiver<Vec<u8>>,
    said: String,
    commands: u32,
}

/// Kernel and first file system of the guest, if `guest/live/build.sh` has made them.
pub fn image() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/live/build.sh");
    let output = Command::new(script).arg("--cached").output().expect("the script");
    let path = String::from_utf8(output.stdout).expect("a path");
    output.status.success().then(|| path.trim_end().into())
}

/// Is QEMU installed?
pub fn has_qemu() -> bool {
    Command::new(QEMU).arg("--version").output().is_ok_and(|output| output.status.success())
}

const QEMU: &str = "qemu-system-x86_64";

impl Vm {
    /// Boots a guest with this as its network's back end. Its memory is shared, as vhost-user needs.
    pub fn boot(image: &Path, netdev: &[String]) -> Self {
        let file = |name| image.join(name).into_os_string();
        let mut qemu = Command::new(QEMU)
            .args(["-machine", "q35,memory-backend=memory", "-m", "256M", "-accel", "tcg"])
            .args(["-object", "memory-backend-memfd,id=memory,size=256M,share=on"])
            .args(["-cpu", "max", "-nodefaults", "-display", "none", "-serial", "stdio"])
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .args(["-kernel".into(), file("vmlinuz"), "-initrd".into(), file("initrd")])
            .args(netdev)
            // Without KVM, QEMU has no MSI-X vectors that a vhost-user card may use.
            .args(["-device", "virtio-net-pci,netdev=net,disable-legacy=on,vectors=0,ioeventfd=on"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("QEMU");
        let mut output = qemu.stdout.take().expect("its output");
        let (tell, from_shell) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if tell.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let to_shell = qemu.stdin.take().expect("its input");
        let mut vm = Vm { qemu, to_shell, from_shell, said: String::new(), commands: 0 };
        vm.until(READY);
        vm
    }

    /// Runs a line in the guest's shell. Returns what it has printed.
    #[track_caller]
    pub fn run(&mut self, line: &str) -> String {
        self.begin(line);
        self.finish()
    }

    /// Starts a line in the guest's shell; [`Vm::finish`] waits for its end.
    pub fn begin(&mut self, line: &str) {
        self.commands += 1;
        // The shell may echo the line, which must not be taken for its end.
        let line = format!("{line}; echo \"END\"-{}-\n", self.commands);
        self.to_shell.write_all(line.as_bytes()).expect("a guest that listens");
    }

    #[track_caller]
    pub fn finish(&mut self) -> String {
        let end = format!("END-{}-", self.commands);
        self.until(&end)
    }

    /// Takes all its CPUs from it, as other guests do on a busy host.
    pub fn stop(&mut self) {
        self.signal(libc::SIGSTOP);
        let mut status = 0;
        // SAFETY: the call writes an int, and the process is ours and has not been waited for.
        unsafe { libc::waitpid(self.qemu.id() as libc::pid_t, &mut status, libc::WUNTRACED) };
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
    }

    pub fn go_on(&mut self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&mut self, signal: libc::c_int) {
        // SAFETY: the call takes no pointers, and the process has not been waited for.
        assert_eq!(unsafe { libc::kill(self.qemu.id() as libc::pid_t, signal) }, 0);
    }

    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.said.find(text) {
                let rest = self.said.split_off(at + text.len());
                return std::mem::replace(&mut self.said, rest);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.from_shell.recv_timeout(left) {
                Ok(bytes) => self.said += &String::from_utf8_lossy(&bytes),
                Err(error) => panic!("`{text}`: {error}, after: {}", self.said),
            }
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
