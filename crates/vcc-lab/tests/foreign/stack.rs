//! The stacks of guests, each at 192.0.2.1 behind a TAP device.

use std::env;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, Ipv4Address};

use crate::bed::{GATEWAY, GUEST, PEER, PORT};
use crate::download::{Download, Link};
use vcc_testing::EndOnDrop;

/// A stack. Programs get their role as arguments.
#[derive(Clone, Debug)]
pub enum Stack {
    Smoltcp,
    Program(PathBuf),
    Download(Download),
    /// This machine's, in a namespace of its own; both guest and native sender have timestamps or not.
    Linux {
        timestamps: bool,
        nodelay: bool,
    },
}

/// The role of the guest.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    pub mtu: usize,
    pub opens: bool,
    pub sends: bool,
}

/// Runs the stack during `work`.
pub fn beside<T>(stack: &Stack, role: Role, device: &File, work: impl FnOnce() -> T) -> T {
    match stack {
        Stack::Smoltcp => {
            let ended = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| smoltcp(role, device.as_raw_fd(), &ended));
                let _end = EndOnDrop(&ended);
                work()
            })
        }
        Stack::Program(program) => {
            let mut command = Command::new(program);
            command
                .arg(role.mtu.to_string())
                .arg(if role.opens { "connect" } else { "listen" })
                .arg(if role.sends { "send" } else { "receive" });
            let _child = start(command, Some(device));
            work()
        }
        Stack::Download(download) => {
            let _child = start(download.command(&Link::Tap), Some(device));
            let done = work();
            download.expect_whole();
            done
        }
        Stack::Linux { .. } => unreachable!("it has no TAP device"),
    }
}

pub struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn smoltcp(role: Role, device: RawFd, ended: &AtomicBool) {
    const ETHERNET_BYTES: usize = 14;
    const BUFFER_BYTES: usize = 1 << 20;
    const LOOK_AGAIN: Duration = Duration::from_millis(20);
    static CHUNK: [u8; 1 << 16] = [b'x'; 1 << 16];
    // The interface closes its descriptor.
    // SAFETY: `device` is an open descriptor.
    let device = unsafe { libc::fcntl(device, libc::F_DUPFD_CLOEXEC, 0) };
    assert!(device >= 0, "a second descriptor: {}", io::Error::last_os_error());
    // SAFETY: the same.
    let status = unsafe { libc::fcntl(device, libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK) };
    assert_eq!(status, 0, "non-blocking: {}", io::Error::last_os_error());
    let frame_bytes = ETHERNET_BYTES + role.mtu;
    let mut card =
        TunTapInterface::from_fd(device, Medium::Ethernet, frame_bytes).expect("the device");
    let mac = EthernetAddress([2, 0, 0, 0, 0, 1]);
    let mut interface = Interface::new(Config::new(mac.into()), &mut card, Instant::now());
    interface.update_ip_addrs(|addresses| {
        addresses.push(IpCidr::new(IpAddress::Ipv4(GUEST), 24)).expect("room for one address");
    });
    interface.routes_mut().add_default_ipv4_route(GATEWAY).expect("room for one route");
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
    let mut sockets = SocketSet::new(Vec::new());
    let socket = sockets.add(tcp::Socket::new(buffer(), buffer()));
    let connection = sockets.get_mut::<tcp::Socket>(socket);
    if role.opens {
        let peer: (Ipv4Address, u16) = (PEER, PORT);
        connection.connect(interface.context(), peer, PORT + 1).expect("it is closed");
    } else {
        connection.listen(PORT).expect("it is closed");
    }
    while !ended.load(Ordering::Relaxed) {
        interface.poll(Instant::now(), &mut card, &mut sockets);
        let connection = sockets.get_mut::<tcp::Socket>(socket);
        let mut moved = false;
        while connection.can_recv() {
            connection.recv(|data| (data.len(), ())).expect("data");
            moved = true;
        }
        while role.sends && connection.can_send() {
            connection.send_slice(&CHUNK).expect("an open connection");
            moved = true;
        }
        if moved {
            continue;
        }
        let now = Instant::now();
        let delay = interface.poll_delay(now, &sockets).map_or(LOOK_AGAIN, |d| d.min(LOOK_AGAIN));
        wait(device, Some(delay)).expect("a device to wait for");
    }
}

/// Runs a guest's program. It inherits its device as descriptor 3.
pub fn start(mut command: Command, device: Option<&File>) -> KillOnDrop {
    const INHERITED: RawFd = 3;
    let spawn = |command: &mut Command| {
        KillOnDrop(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
    };
    let Some(device) = device else { return spawn(&mut command) };
    let device = device.as_raw_fd();
    let inherit = move || {
        // SAFETY: plain system calls on an open descriptor.
        let status = unsafe {
            match device {
                INHERITED => libc::fcntl(INHERITED, libc::F_SETFD, 0),
                other => libc::dup2(other, INHERITED),
            }
        };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec it makes system calls only.
    unsafe { command.pre_exec(inherit) };
    spawn(&mut command)
}

pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(name)
}

pub fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// gVisor's netstack, built from its module; an error if it cannot be built.
pub fn netstack() -> Result<Stack, String> {
    let program = built("netstack");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(".").current_dir(source("netstack"));
    build(&mut go)?;
    Ok(Stack::Program(program))
}

/// Debian's lwIP; an error if it cannot be built.
pub fn lwip() -> Result<Stack, String> {
    let program = built("lwip");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-I/usr/include/lwip", "-o"])
        .arg(&program)
        .arg(source("lwip.c"))
        .arg("-llwip");
    build(&mut cc)?;
    Ok(Stack::Program(program))
}

pub fn build(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("{name}: {last}")) }
}
