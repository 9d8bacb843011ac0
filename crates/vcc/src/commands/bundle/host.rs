//! What the host says: its versions, the journal, the kernel's log, the daemon's metrics.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use vcc_command::version;
use vcc_daemon::RuntimeDir;

const JOURNAL_LINES: usize = 2000;
const KERNEL_LINES: usize = 500;
/// The most that is kept of what another program or the daemon writes.
const MOST_BYTES: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

pub fn versions() -> String {
    let of_kernel = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let distribution = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    format!(
        "vcc {} for {}\nLinux {} {}\n{}\n",
        version(),
        std::env::consts::ARCH,
        of_kernel("osrelease"),
        of_kernel("version"),
        distribution.unwrap_or("unknown distribution").trim_matches('"')
    )
}

/// The last lines of vcc's units.
pub fn journal() -> anyhow::Result<String> {
    let mut journalctl = Command::new("journalctl");
    let lines = format!("--lines={JOURNAL_LINES}");
    // Without the host's name, which may be its address.
    journalctl.args(["--no-pager", "--no-hostname", "--output=short-iso", &lines]);
    journalctl.args(["--unit=vcc", "--unit=vcc-domain@*", "--unit=vcc-domain-device@*"]);
    output_of(journalctl)
}

/// What a program writes, if it ends well and in time.
fn output_of(mut command: Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.with_context(|| format!("cannot run `{program}`"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let both = stdout.map(read).zip(stderr.map(read));
        // Nobody waits any more after the time.
        let _ = sender.send(both);
    });
    let Ok(Some((stdout, stderr))) = receiver.recv_timeout(PATIENCE) else {
        child.kill().and_then(|()| child.wait()).context("cannot end it")?;
        bail!("`{program}` has not ended for {} s", PATIENCE.as_secs());
    };
    let status = child.wait()?;
    let [stdout, stderr] = [stdout?, stderr?].map(|it| String::from_utf8_lossy(&it).into_owned());
    if !status.success() {
        bail!("`{program}` failed ({status}): {stderr}");
    }
    // Hints, such as that other users' messages are not shown.
    Ok(stdout + &stderr)
}

fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the verifier said of the last program that it refused; None if there is no such program.
pub fn verifier_log() -> anyhow::Result<Option<String>> {
    let path = RuntimeDir::of_environment().path().join("verifier.log");
    let log = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        log => log.and_then(read),
    };
    let log = log.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(String::from_utf8_lossy(&log).into_owned()))
}

/// The last lines of the kernel's log that are about BPF or vcc.
pub fn kernel_log() -> anyhow::Result<String> {
    let mut options = OpenOptions::new();
    let log = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
    let mut log = log.context("cannot read /dev/kmsg")?;
    // One record is read at a time.
    let mut record = vec![0; 8192];
    let mut lines = Vec::new();
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => lines.extend(line_of(&String::from_utf8_lossy(&record[..length]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The next record was overwritten meanwhile: the one behind it is read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => return Err(error).context("cannot read /dev/kmsg"),
        }
    }
    Ok(lines[lines.len().saturating_sub(KERNEL_LINES)..].concat())
}

/// A record is `PRIORITY,NUMBER,MICROSECONDS,FLAGS;MESSAGE`, and lines of properties.
fn line_of(record: &str) -> Option<String> {
    let (head, rest) = record.split_once(';')?;
    let at_us: u64 = head.split(',').nth(2)?.parse().ok()?;
    let message = rest.lines().next()?;
    let lower = message.to_lowercase();
    let is_ours = ["bpf", "vcc", "tcx"].iter().any(|word| lower.contains(word));
    is_ours.then(|| format!("[{}.{:06}] {message}\n", at_us / 1_000_000, at_us % 1_000_000))
}

/// As Prometheus reads them.
pub fn metrics(served_at: SocketAddr) -> anyhow::Result<String> {
    let address = SocketAddr::new(reachable(served_at.ip()), served_at.port());
    let answer = get(address, "/metrics");
    let answer = answer.with_context(|| format!("cannot read http://{address}/metrics"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("http://{address}/metrics: {status}");
    }
    Ok(body.to_owned())
}

/// Who listens at all addresses can be reached at loopback's.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    Ok(String::from_utf8_lossy(&read(stream)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_bpf_are_taken_from_the_kernels_log() {
        let record = "4,1234,98765432,-;BPF: invalid argument\n SUBSYSTEM=net\n";
        assert_eq!(line_of(record).as_deref(), Some("[98.765432] BPF: invalid argument\n"));
        assert_eq!(line_of("6,1,2,-;device port entered promiscuous mode\n"), None);
        assert_eq!(line_of("no record"), None);
    }

    #[test]
    fn a_program_that_fails_or_is_missing_is_an_error_with_its_name() {
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments);
            output_of(command).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(run("sh", &["-c", "echo one"]), Ok("one\n".to_owned()));
        let failed = run("sh", &["-c", "echo why >&2; exit 3"]).expect_err("a failure");
        assert!(failed.contains("`sh` failed (exit status: 3): why"), "{failed}");
        let missing = run("/nowhere/journalctl", &[]).expect_err("no program");
        assert!(missing.starts_with("cannot run `/nowhere/journalctl`: No such file"), "{missing}");
    }
}
