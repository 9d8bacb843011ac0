//! Stacks that fetch a file over HTTP, and whether they got it whole.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::stack::{build, built, source};

const GRUB: &str = "/usr/lib/grub/x86_64-efi/http.mod";
const IPXE: &str = "/usr/lib/ipxe/ipxe.lkrn";
const OVMF: &str = "/usr/share/OVMF/OVMF_CODE.fd";
const PYTCP: &str = "pmd-pytcp==0.3.8";
const PORT: u16 = 80;

/// How long a guest that was sent the file may need to say so.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How a guest is connected.
#[derive(Clone, Debug)]
pub enum Link {
    /// To a tap, which it inherits as descriptor 3.
    Tap,
    /// To a card's socket, by vhost-user.
    Card(PathBuf),
}

/// A guest that fetches a file of `bytes` from its peer.
#[derive(Clone, Debug)]
pub struct Download {
    program: PathBuf,
    args: Vec<String>,
    /// It is a virtual machine, which gets its card as further arguments.
    pub is_machine: bool,
    /// It says what it got in its output, with the hash of the file, or has it in its memory.
    says: PathBuf,
    pub bytes: usize,
}

/// A different one at each place, so that a lost or repeated part shows.
pub fn body(bytes: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Answers a guest's request with the file.
pub fn answer(mut stream: &TcpStream, bytes: usize) {
    let mut request = BufReader::new(stream).lines();
    while request.next().is_some_and(|line| !line.expect("a request").is_empty()) {}
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a guest that listens");
    stream.write_all(&body(bytes)).expect("a guest that listens");
}

/// A guest's memory is large, and a test is not optimized.
fn contains(all: &[u8], part: &[u8]) -> bool {
    let [(all, all_bytes), (part, part_bytes)] =
        [all, part].map(|it| (it.as_ptr().cast(), it.len()));
    // SAFETY: both are slices.
    !unsafe { libc::memmem(all, all_bytes, part, part_bytes) }.is_null()
}

impl Download {
    pub fn port() -> u16 {
        PORT
    }

    /// Of its card.
    pub fn socket(&self) -> PathBuf {
        self.says.with_extension("sock")
    }

    /// Its output goes to a file.
    pub fn command(&self, link: &Link) -> Command {
        // What an earlier guest had is not this one's.
        let _ = fs::remove_file(&self.says);
        let output = self.says.with_extension("out");
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdout(File::create(output).expect("a file for its output"));
        if self.is_machine {
            command.args(card(link).split(' '));
        }
        command.stdin(Stdio::null());
        command
    }

    /// Waits until the guest has the file, whole and unchanged.
    pub fn expect_whole(&self) {
        let body = body(self.bytes);
        let file = self.says.with_extension("body");
        fs::write(&file, &body).expect("a file of the body");
        let output = Command::new("sha256sum").arg(&file).output().expect("sha256sum");
        let hash = String::from_utf8_lossy(&output.stdout)[..64].to_string();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let said = fs::read(&self.says).unwrap_or_default();
            if contains(&said, hash.as_bytes()) || contains(&said, &body) {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        panic!("{self:?}: it has another file, or none");
    }
}

/// PyTCP, in a virtual environment of its own; an error if it cannot be installed.
pub fn pytcp() -> Result<Download, String> {
    let home = built("pytcp");
    let python = home.join("bin/python");
    if !python.exists() {
        build(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    }
    let mut pip = Command::new(&python);
    build(pip.args(["-m", "pip", "install", "--quiet", PYTCP]))?;
    Ok(Download {
        program: python,
        args: vec![text(&source("pytcp.py"))],
        is_machine: false,
        says: built("pytcp.out"),
        bytes: 2 << 20,
    })
}

/// iPXE, booted by QEMU; an error if one of them is missing.
pub fn ipxe() -> Result<Download, String> {
    require(IPXE)?;
    let memory = built("ipxe.memory");
    let args = format!("-kernel {IPXE} -initrd {}", source("boot.ipxe").display());
    qemu(&args, &memory, memory.clone(), 3 << 20)
}

/// GRUB on UEFI, booted by QEMU; an error if one of them is missing.
pub fn grub() -> Result<Download, String> {
    require(GRUB)?;
    require(OVMF)?;
    let disk = built("grub");
    let loader = disk.join("EFI/BOOT");
    fs::create_dir_all(&loader).map_err(|e| format!("{}: {e}", loader.display()))?;
    let mut make = Command::new("grub-mkstandalone");
    make.args(["--format=x86_64-efi", "--locales=", "--themes=", "--fonts="])
        .arg("--modules=net efinet http hashsum gcry_sha256 serial")
        .arg(format!("--output={}", loader.join("BOOTX64.EFI").display()))
        .arg(format!("boot/grub/grub.cfg={}", source("grub.cfg").display()));
    build(&mut make)?;
    let args =
        format!("-bios {OVMF} -drive file=fat:{},format=raw,if=virtio,readonly=on", disk.display());
    qemu(&args, &built("grub.memory"), built("grub.out"), 1 << 20)
}

/// U-Boot, whose ROM for QEMU the environment names: Debian's cannot fetch files by TCP. `uboot.config` has what its
/// configuration `qemu-x86` lacks.
pub fn uboot() -> Result<Download, String> {
    let rom = std::env::var("VCC_UBOOT").map_err(|_| "VCC_UBOOT does not name a ROM")?;
    qemu(&format!("-bios {rom}"), &built("uboot.memory"), built("uboot.out"), 1 << 20)
}

/// Its memory is a file, which a card by vhost-user needs.
fn qemu(args: &str, memory: &Path, says: PathBuf, bytes: usize) -> Result<Download, String> {
    build(Command::new("qemu-system-x86_64").arg("--version"))?;
    let args = [
        "-accel tcg -display none -nodefaults -serial stdio -m 256",
        "-machine graphics=off,memory-backend=memory -object",
        &format!("memory-backend-file,id=memory,size=256M,share=on,mem-path={}", memory.display()),
        args,
    ];
    let args = args.join(" ").split(' ').map(String::from).collect();
    Ok(Download { program: "qemu-system-x86_64".into(), args, is_machine: true, says, bytes })
}

/// QEMU's arguments. vhost-user carries frames for drivers of virtio 1 only.
fn card(link: &Link) -> String {
    match link {
        Link::Tap => {
            "-netdev tap,id=card,fd=3 -device virtio-net-pci,netdev=card,romfile=".to_owned()
        }
        Link::Card(socket) => format!(
            "-chardev socket,id=socket,path={} -netdev vhost-user,id=card,chardev=socket \
             -device virtio-net-pci,netdev=card,romfile=,disable-legacy=on,vectors=0,ioeventfd=on",
            socket.display()
        ),
    }
}

fn require(file: &str) -> Result<(), String> {
    if Path::new(file).exists() { Ok(()) } else { Err(format!("there is no {file}")) }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
