//! What the documentation tells a reader to type, typed: each line of each ```` ```sh ```` block of README.md
//! and docs/*.md.
//!
//! The lines of a page are run in their order, on a host of the page's own ([`Host`]): with guests
//! behind `veth3`, `tap0` and `veth7`, connections of the first to 198.51.100.9:80 and :5001, and a
//! directory with `policy.toml`. The guests are attached beforehand unless the page does that itself;
//! the connections begin anew after each `vcc attach`, or they would not be seen, and end before what
//! waits for their end. A line has to succeed.
//!
//! A new page needs nothing here while its lines get by with that. If not:
//! - a line that goes on until it is told to end: its first words to [`ENDLESS`];
//! - a word that stands for the reader's own: to [`MEANT`];
//! - a device, file or connection: to [`Host::with`];
//! - a daemon that runs beside the lines, though none of them starts it: to [`BESIDE`];
//! - a line that takes too long, or that changes the machine: to [`ELSEWHERE`], with the test that
//!   runs it, or why none can.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use vcc_port::Netns;
use vcc_testing::{can_attach, guest, ip, isolated};

use crate::pty::Pty;
use crate::{command, vcc};

/// Lines that are not run here, each as it stands in a page, and where they are. One that no page has
/// any more fails the test.
const ELSEWHERE: &[(&str, &str)] = &[
    ("make demo", "minutes: `vcc lab run` of it is run short by lab.rs"),
    ("make test", "this is it"),
    ("make guest-kernel", "scripts/test.sh runs guest/kernel/build.sh"),
    ("make build", "scripts/test.sh builds"),
    ("make deb", "scripts/test/deb.sh makes it of a binary that is there"),
    ("apt-get install ./vcc_*.deb", "scripts/test/deb.sh installs it by dpkg"),
    ("apt-get purge vcc", "scripts/test/deb.sh purges it by dpkg"),
    ("make install PREFIX=/usr/local", "scripts/test/install.sh, below a directory"),
    ("make uninstall PREFIX=/usr/local", "scripts/test/install.sh, below a directory"),
    ("docker build -f packaging/container/Dockerfile -t vcc:0.1.0 .", NO_DOCKER),
    (
        "docker run --detach --name vcc --network host --read-only --cap-drop ALL --cap-add BPF \
         --cap-add NET_ADMIN --cap-add PERFMON --cap-add NET_RAW --security-opt apparmor=unconfined \
         --volume /sys/fs/bpf:/sys/fs/bpf --volume /run/vcc:/run/vcc --volume /etc/vcc:/etc/vcc:ro \
         vcc:0.1.0",
        NO_DOCKER,
    ),
    ("docker exec vcc vcc ports", NO_DOCKER),
    ("kubectl apply -f packaging/kubernetes/daemonset.yaml", NO_CLUSTER),
    ("kubectl --namespace vcc rollout status daemonset/vcc", NO_CLUSTER),
    ("kubectl --namespace vcc exec daemonset/vcc -- /usr/bin/vcc ports", NO_CLUSTER),
    (
        "install -D -m 755 packaging/libvirt/qemu /etc/libvirt/hooks/qemu",
        "libvirt.rs runs the hook",
    ),
    ("systemctl restart libvirtd", "libvirt.rs runs the hook"),
    ("make install", "scripts/test/install.sh, below a directory"),
    (
        "vcc lab run overlay-guess --runs 1 --json a.json",
        "minutes: its parts are tested in vcc-lab",
    ),
    ("vcc lab run overlay-guess-fast --runs 1 --json b.json", "minutes: as above"),
    (
        "jq -r '.cases[] | .name as $case | .runs[].vcc[].overlay | [$case, .congestion_control, .class] | \
         @tsv' a.json b.json",
        "reads what those two wrote",
    ),
    ("vcc lab run vcc-fig11", "minutes: run short by lab.rs"),
    ("vcc lab run vcc-fig11 --backend virtual", "minutes: run short by virtual_time.rs"),
    ("vcc lab run vcc-fig11 --backend virtual --quick", "run by virtual_time.rs"),
    ("vcc lab report results/", "reads what others wrote: page.rs"),
    ("vcc bench datapath", "minutes: run short by measuring.rs"),
    ("vcc bench virtual", "minutes: run short by measuring.rs"),
];

const NO_DOCKER: &str =
    "needs a Docker daemon, and downloads; docs/packaging.md says what was tried";
const NO_CLUSTER: &str = "needs a cluster; scripts/test/kubernetes.sh checks what it is given";

/// First words of lines that go on until Ctrl-C: they are run on a terminal, have to say something,
/// and to end well when they are told to.
const ENDLESS: &[&str] = &["vcc top", "vcc trace", "vcc emit"];

/// The same by an option.
const ENDLESS_WITH: &str = " --watch";

/// And those of them that end by themselves.
const ENDS_WITH: &[&str] = &[" --duration ", " --count "];

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

/// Pages whose daemon is there from the beginning.
const BESIDE: &[&str] = &["docs/policy.md"];

/// For a line that ends by itself: `trace --duration 10` is the longest.
const PATIENCE: Duration = Duration::from_secs(60);

struct Page {
    name: String,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the sources")
}

fn pages() -> Vec<Page> {
    let root = root();
    let mut paths = vec![root.join("README.md"), root.join("experiments/README.md")];
    for entry in fs::read_dir(root.join("docs")).expect("docs") {
        paths.push(entry.expect("an entry").path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let page = |path: PathBuf| {
        let name = path.strip_prefix(&root).expect("below it").display().to_string();
        let lines = lines(&name, &fs::read_to_string(&path).expect("UTF-8"));
        Page { name, lines }
    };
    paths.into_iter().map(page).collect()
}

/// The lines of all blocks, without what is said about them.
fn lines(name: &str, text: &str) -> Vec<String> {
    let (mut lines, mut fence, mut begun) = (Vec::new(), None, String::new());
    for line in text.lines() {
        match (line.trim().strip_prefix("```"), fence) {
            (Some(language), None) => {
                let known = ["", "sh", "toml", "c", "json", "rust", "xml", "yaml"];
                assert!(known.contains(&language), "{name}: a block of {language}: sh is tested");
                fence = Some(language);
            }
            (Some(_), Some(_)) => fence = None,
            (None, Some("sh")) => {
                let line = line.split_once(" #").map_or(line, |(line, _)| line).trim();
                if let Some(part) = line.strip_suffix('\\') {
                    begun += part.trim_end();
                    begun += " ";
                } else if !line.is_empty() && !line.starts_with('#') {
                    lines.push(std::mem::take(&mut begun) + line);
                }
            }
            _ => {}
        }
    }
    assert!(fence.is_none() && begun.is_empty(), "{name}: a block without an end");
    lines
}

/// A host with guests, as the pages assume it; all of it goes with the calling thread's namespaces.
struct Host {
    directory: PathBuf,
    guest: Netns,
    /// Where the guest connects to: a web server's port and iperf's.
    servers: [TcpListener; 2],
    connections: Mutex<Vec<(TcpStream, TcpStream)>>,
    daemon: Mutex<Option<Child>>,
}

/// Where the guest's connections go: the host, at an address that the pages name.
const PEER: &str = "198.51.100.9";

impl Host {
    fn with(page: &Page) -> Self {
        let name = page.name.replace('/', "-");
        let directory = std::env::temp_dir().join(format!("vcc-{name}-{}", std::process::id()));
        fs::create_dir_all(directory.join("run")).expect("a directory");
        for name in ["policy.toml", "trial.toml"] {
            fs::copy(root().join("packaging/policy.toml"), directory.join(name)).expect("a copy");
        }
        // The command under its own name, for lines that a shell runs.
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vcc"), directory.join("vcc"))
            .expect("a link");

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
    fn talk(&self, until: &AtomicBool) {
        while !until.load(Ordering::Relaxed) {
            for (here, there) in self.connections().iter_mut() {
                let mut heard = [0; 5000];
                here.write_all(&heard).and_then(|()| there.read_exact(&mut heard)).expect("sent");
                there
                    .write_all(b"well")
                    .and_then(|()| here.read_exact(&mut heard[..4]))
                    .expect("sent");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Without what TCP keeps of a connection after its end, so that the next has the same name.
    fn connect(&self, from: &str, to: &TcpListener) -> (TcpStream, TcpStream) {
        let to_address = to.local_addr().expect("an address");
        let from: SocketAddr = from.parse().expect("an address");
        let connected = self.guest.inside(|| crate::wire::connect_from(from, to_address));
        let connected = connected.expect("inside").expect("a connection");
        (connected, to.accept().expect("a connection").0)
    }

    /// A shell's, in the directory of the page.
    fn shell(&self, line: &str) -> Command {
        let path = std::env::var("PATH").expect("PATH");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).current_dir(&self.directory);
        shell.env("PATH", format!("{}:{path}", self.directory.display()));
        shell.env("RUNTIME_DIRECTORY", self.directory.join("run"));
        // What the shell starts ends with it, should it have to be ended.
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
        tell(daemon.as_ref().ok_or("no line before starts the daemon")?, signal);
        Ok(())
    }

    fn stop_daemon(&self) -> Result<(), String> {
        self.signal_daemon(libc::SIGTERM)?;
        let ended = self.daemon.lock().expect("no panic elsewhere").take();
        let status = ended.expect("it was told").wait().expect("its end");
        if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
    }

    fn run(&self, line: &str) -> Result<(), String> {
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
        let endless =
            ENDLESS.iter().any(|words| meant.starts_with(words)) || meant.contains(ENDLESS_WITH);
        let done = if endless && !ENDS_WITH.iter().any(|option| meant.contains(option)) {
            self.run_until_told(&meant)
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
                tell(&child, libc::SIGKILL);
                let _ = child.wait();
                return Err(format!("not after {PATIENCE:?} (does it go on until Ctrl-C?)"));
            }
            thread::sleep(Duration::from_millis(10));
        };
        let mut complaints = String::new();
        child.stderr.take().expect("its stderr").read_to_string(&mut complaints).expect("UTF-8");
        if status.success() { Ok(()) } else { Err(format!("{status}: {complaints}")) }
    }

    fn run_until_told(&self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("vcc"), "a shell would have to pass the signal on: {line}");
        let mut command = command();
        command.args(words).current_dir(&self.directory);
        command.env("RUNTIME_DIRECTORY", self.directory.join("run"));
        let mut pty = Pty::start(command, (100, 30));
        // What is written to a file says nothing on a terminal.
        if line.contains("--output") {
            thread::sleep(Duration::from_secs(2));
        } else {
            pty.eventually("it says something", |text| !text.trim().is_empty());
        }
        // What follows a connection ends with it, should that be gone.
        if pty.child.try_wait().expect("a status").is_none() {
            pty.signal(libc::SIGINT);
        }
        let text = pty.text();
        match pty.end() {
            0 => Ok(()),
            code => Err(format!("it ended with {code}: {text}")),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.daemon.lock().is_ok_and(|daemon| daemon.is_some()) {
            let _ = self.stop_daemon();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Signals a shell that has not been waited for, and all that it started.
fn tell(shell: &Child, signal: libc::c_int) {
    // SAFETY: the call takes no pointers.
    unsafe { libc::kill(-(shell.id() as libc::pid_t), signal) };
}

/// What went wrong, line by line.
fn type_in(page: &Page) -> Vec<String> {
    let elsewhere: HashSet<&str> = ELSEWHERE.iter().map(|(line, _)| *line).collect();
    let mut lines = page.lines.iter().filter(|line| !elsewhere.contains(line.as_str())).peekable();
    if lines.peek().is_none() {
        return Vec::new();
    }
    isolated(|| {
        let host = Host::with(page);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| host.talk(&done));
            let failed = |line: &String| {
                host.run(line).err().map(|what| format!("{}: `{line}`: {what}", page.name))
            };
            let failures: Vec<String> = lines.filter_map(failed).collect();
            done.store(true, Ordering::Relaxed);
            failures
        })
    })
}

#[test]
fn every_line_of_the_documentation_works() {
    if !can_attach() {
        return;
    }
    let failures: Vec<String> = pages().iter().flat_map(type_in).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn lines_that_are_run_elsewhere_are_in_the_documentation() {
    let pages = pages();
    let all: HashSet<&str> =
        pages.iter().flat_map(|page| page.lines.iter().map(String::as_str)).collect();
    assert!(all.len() > 30, "the blocks are found: {all:?}");
    for (line, _) in ELSEWHERE {
        assert!(all.contains(line), "no page says `{line}`: it needs no exception");
    }
    for name in BESIDE {
        assert!(pages.iter().any(|page| page.name == *name), "there is no page {name}");
    }
}

#[test]
fn blocks_are_taken_apart() {
    let text = "a\n```sh\none   # said of it\n# of nothing\n\ntwo \\\n    --more\n```\n```toml\nno = 1\n```\n";
    assert_eq!(lines("page", text), ["one", "two --more"]);
}
