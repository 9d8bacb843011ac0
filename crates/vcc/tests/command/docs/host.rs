//! A host with guests, as the pages assume it, on which their lines are typed.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use vcc_port::Netns;
use vcc_testing::{guest, ip, skip};

use super::page::{Page, root};
use crate::pty::Pty;
use crate::{command, vcc};

/// First words of lines that run until Ctrl-C, or record for long: they run on a terminal, have to print
/// something, and to end with 0 after Ctrl-C.
const ENDLESS: &[&str] = &["vcc top", "vcc trace", "vcc emit", "vcc guests"];

/// An option that makes a command run until Ctrl-C.
const ENDLESS_WITH: &str = " --watch";

/// Options with which these commands end by themselves.
const ENDS_WITH: &[&str] = &[" --count "];

/// Maximum time that such a line records before it prints anything.
const RECORDS: Duration = Duration::from_secs(1);

/// Words that stand for the reader's own.
const MEANT: &[(&str, &str)] = &[
    ("FILE", "policy.toml"),
    ("/etc/vcc/policy.toml", "policy.toml"),
    ("SRC:PORT", "192.0.2.1:40000"),
    ("DST:PORT", "198.51.100.9:443"),
];

/// First words of lines that start the daemon, which runs on beside the lines that follow; systemd
/// does so for its unit, and these tests have none.
const STARTS: &[&str] = &["vcc run", "systemctl enable --now vcc"];
const RELOADS: &str = "systemctl reload vcc";
const STOPS: &str = "systemctl disable --now vcc";

/// Programs of others that `make test` does not install.
const READERS: &[&str] = &["tshark"];

/// Pages whose daemon is there from the beginning.
pub const BESIDE: &[&str] = &["docs/policy.md", "docs/troubleshooting.md"];

/// For a line that ends by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host with guests, as the pages assume it; all of it goes with the calling thread's namespaces.
pub struct Host {
    directory: TempDir,
    guest: Netns,
    /// The ports that the guest connects to: a web server's and iperf's.
    servers: [TcpListener; 2],
    connections: Mutex<Vec<(TcpStream, TcpStream)>>,
    daemon: Mutex<Option<Child>>,
}

/// The lab's command, which a build of the workspace puts beside vcc.
pub fn lab() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_vcc")).with_file_name("vcc-lab")
}

/// The peer of the guest's connections: the host, at an address that the pages name.
const PEER: &str = "198.51.100.9";

impl Host {
    pub fn with(page: &Page) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        fs::create_dir(path.join("run")).expect("a directory");
        for name in ["policy.toml", "trial.toml"] {
            fs::copy(root().join("packaging/policy.toml"), path.join(name)).expect("a copy");
        }
        for (name, text) in &page.files {
            fs::write(path.join(name), text).expect("a file");
        }
        for name in ["trace.pcap", "guest.pcap", "fabric.pcap"] {
            fs::write(path.join(name), crate::read::capture()).expect("a file");
        }
        // The commands under their own names, for lines that a shell runs.
        for (name, command) in [("vcc", env!("CARGO_BIN_EXE_vcc").into()), ("vcc-lab", lab())] {
            std::os::unix::fs::symlink(command, path.join(name)).expect("a link");
        }

        let guest = guest();
        ip("link set port down");
        ip("link set port name veth3");
        ip("link set veth3 up");
        ip("link set lo up");
        ip(&format!("address add {PEER}/32 dev lo"));
        guest.inside(|| ip("route add default via 192.0.2.2")).expect("inside");
        for other in ["tap0", "veth7"] {
            ip(&format!("link add {other} type veth peer name {other}-guest"));
            ip(&format!("link set {other} up"));
        }
        let servers = [80, 5001].map(|port| TcpListener::bind((PEER, port)).expect("a listener"));
        let (connections, daemon) = Default::default();
        let host = Self { directory, guest, servers, connections, daemon };
        if !page.lines.iter().any(|line| line.starts_with("vcc attach")) {
            vcc("attach veth3 tap0 veth7").well();
            host.connect_anew();
        }
        if BESIDE.contains(&page.name.as_str()) {
            host.start_daemon().expect("a daemon");
        }
        host
    }

    fn connections(&self) -> MutexGuard<'_, Vec<(TcpStream, TcpStream)>> {
        self.connections.lock().expect("no panic elsewhere")
    }

    fn connect_anew(&self) {
        let mut connections = self.connections();
        connections.clear();
        let [web, iperf] = &self.servers;
        connections.push(self.connect("192.0.2.1:40000", web));
        connections.push(self.connect("192.0.2.1:0", iperf));
    }

    /// A little to and fro on all connections.
    pub fn talk(&self, until: &AtomicBool) {
        while !until.load(Ordering::Relaxed) {
            for (here, there) in self.connections().iter_mut() {
                let mut buffer = [0; 5000];
                here.write_all(&buffer).and_then(|()| there.read_exact(&mut buffer)).expect("sent");
                there
                    .write_all(b"well")
                    .and_then(|()| here.read_exact(&mut buffer[..4]))
                    .expect("sent");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Without what TCP keeps of a connection after its end, so that the next has the same name.
    fn connect(&self, from: &str, to: &TcpListener) -> (TcpStream, TcpStream) {
        let to_address = to.local_addr().expect("an address");
        let from: SocketAddr = from.parse().expect("an address");
        let connect =
            || self.guest.inside(|| crate::wire::connect_from(from, to_address)).expect("inside");
        // A process that another thread is just starting has the descriptor of the one before.
        let is_taken =
            |it: &io::Result<_>| matches!(it, Err(e) if e.kind() == io::ErrorKind::AddrInUse);
        let mut connected = connect();
        for _ in 0..1000 {
            if !is_taken(&connected) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
            connected = connect();
        }
        let connected = connected.expect("a connection");
        (connected, to.accept().expect("a connection").0)
    }

    /// A shell's, in the directory of the page.
    fn shell(&self, line: &str) -> Command {
        let path = std::env::var("PATH").expect("PATH");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).current_dir(&self.directory);
        shell.env("PATH", format!("{}:{path}", self.directory.path().display()));
        shell.env("RUNTIME_DIRECTORY", self.directory.path().join("run"));
        // A signal to the process group also ends the programs that the shell starts.
        shell.process_group(0);
        shell
    }

    fn start_daemon(&self) -> Result<(), String> {
        let mut daemon = self.shell("exec vcc run --config policy.toml --listen off");
        let child = daemon.stderr(Stdio::null()).spawn();
        *self.daemon.lock().expect("no panic elsewhere") = Some(child.expect("a shell"));
        let begun = Instant::now();
        while !self.shell("vcc status").output().expect("a shell").status.success() {
            if begun.elapsed() > PATIENCE {
                return Err(format!("no daemon listens after {PATIENCE:?}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn signal_daemon(&self, signal: libc::c_int) -> Result<(), String> {
        let daemon = self.daemon.lock().expect("no panic elsewhere");
        signal_all(daemon.as_ref().ok_or("no line before starts the daemon")?, signal);
        Ok(())
    }

    fn stop_daemon(&self) -> Result<(), String> {
        self.signal_daemon(libc::SIGTERM)?;
        let ended = self.daemon.lock().expect("no panic elsewhere").take();
        let status = ended.expect("it was asked to end").wait().expect("its end");
        if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
    }

    /// Types one line of the page; an error says what went wrong.
    pub fn run(&self, line: &str) -> Result<(), String> {
        if line.starts_with("vcc-lab ") && !lab().is_file() {
            return Err("there is no vcc-lab: `cargo build -p vcc-lab` makes it".to_owned());
        }
        let needs = |name: &&&str| line.split_whitespace().any(|word| word == **name);
        let is_missing = |name: &&&str| self.run_to_its_end(&format!("command -v {name}")).is_err();
        if let Some(missing) = READERS.iter().filter(needs).find(is_missing) {
            skip(&format!("{missing} is not installed"));
            return Ok(());
        }
        let mut meant = line.to_owned();
        for (word, value) in MEANT {
            meant = meant.replace(word, value);
        }
        match meant.as_str() {
            line if STARTS.iter().any(|words| line.starts_with(words)) => {
                return self.start_daemon();
            }
            RELOADS => return self.signal_daemon(libc::SIGHUP),
            STOPS => return self.stop_daemon(),
            _ => {}
        }
        if meant.contains(" --wait") {
            self.connections().clear();
        }
        let done = if is_endless(&meant) {
            self.run_until_interrupted(&meant)
        } else {
            self.run_to_its_end(&meant)
        };
        if meant.starts_with("vcc attach") {
            self.connect_anew();
        }
        done
    }

    fn run_to_its_end(&self, line: &str) -> Result<(), String> {
        let mut child = self
            .shell(line)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a status") {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                signal_all(&child, libc::SIGKILL);
                let _ = child.wait();
                return Err(format!("not after {PATIENCE:?} (does it run until Ctrl-C?)"));
            }
            thread::sleep(Duration::from_millis(10));
        };
        let mut complaints = String::new();
        child.stderr.take().expect("its stderr").read_to_string(&mut complaints).expect("UTF-8");
        if line.starts_with("vcc-lab run") && status.code() == Some(1) && is_invalid(&complaints) {
            skip("the machine is too busy for a valid run");
            return Ok(());
        }
        if status.success() { Ok(()) } else { Err(format!("{status}: {complaints}")) }
    }

    /// On a terminal, until Ctrl-C, which every line takes that records for a while.
    fn run_until_interrupted(&self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("vcc"), "a shell would have to pass the signal on: {line}");
        let mut command = command();
        command.args(words).current_dir(&self.directory);
        command.env("RUNTIME_DIRECTORY", self.directory.path().join("run"));
        let mut pty = Pty::start(command, (100, 30));
        let begun = Instant::now();
        let mut has_said = false;
        while pty.child.try_wait().expect("a status").is_none() && begun.elapsed() < PATIENCE {
            has_said |= !pty.text().trim().is_empty();
            if takes_ctrl_c(pty.child.id()) && (has_said || begun.elapsed() > RECORDS) {
                pty.signal(libc::SIGINT);
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let (code, text) = pty.end_with_text();
        // Written to a file, a recording leaves the terminal empty.
        has_said |= !text.trim().is_empty() || line.contains("--output");
        match code {
            0 if has_said => Ok(()),
            0 => Err("it says nothing".to_owned()),
            code => Err(format!("it ended with {code}: {text}")),
        }
    }
}

/// Whether a run of the lab complains of nothing but runs that the machine had no time for.
fn is_invalid(complaints: &str) -> bool {
    let mut lines = complaints.lines().peekable();
    lines.peek().is_some() && lines.all(|line| line.contains(": not valid, "))
}

/// Whether a line runs until Ctrl-C, or for longer than a test should take.
fn is_endless(line: &str) -> bool {
    let ends = ENDS_WITH.iter().any(|option| line.contains(option));
    !ends && (ENDLESS.iter().any(|words| line.starts_with(words)) || line.contains(ENDLESS_WITH))
}

/// Whether a process has a handler for SIGINT by now; before, the signal would just kill it.
fn takes_ctrl_c(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & (1 << (libc::SIGINT - 1)) != 0)
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.daemon.lock().is_ok_and(|daemon| daemon.is_some()) {
            let _ = self.stop_daemon();
        }
    }
}

/// Signals a shell that has not been waited for, and all that it started.
fn signal_all(shell: &Child, signal: libc::c_int) {
    // SAFETY: the call takes no pointers.
    unsafe { libc::kill(-(shell.id() as libc::pid_t), signal) };
}

#[test]
fn only_a_busy_machine_excuses_a_run_of_the_lab() {
    let busy =
        "mild with 1/1: not valid, so it is repeated: goodput is 97.4 % of the bottleneck's\n";
    assert!(is_invalid(busy) && is_invalid(&busy.repeat(2)));
    assert!(!is_invalid("") && !is_invalid("vcc-lab: cannot load mild.o\n"));
    assert!(!is_invalid(&format!("{busy}vcc-lab: interrupted\n")));
}
