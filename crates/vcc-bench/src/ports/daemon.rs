//! `vcc run` as a child.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use vcc_command::{CANNOT_RUN_OPERATOR, operator};

use crate::process::Process;

/// Longer than anything takes that is measured here.
const PATIENCE: Duration = Duration::from_secs(60);
const ADDRESS: &str = "127.0.0.1:9644";

/// The directory of the policy and of the daemon's socket; removed when dropped.
pub struct Place {
    directory: PathBuf,
}

impl Place {
    pub fn create() -> anyhow::Result<Self> {
        let directory = env::temp_dir().join(format!("vcc-bench-{}", std::process::id()));
        fs::create_dir(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self { directory })
    }

    /// Makes devices of such names ports.
    pub fn set_policy(&self, devices: &str) -> anyhow::Result<()> {
        let text =
            format!("[[ports]]\ndevice = \"{devices}\"\n\n[default]\nunderlay = \"dctcp\"\n");
        fs::write(self.policy(), text).context("cannot write the policy")
    }

    fn policy(&self) -> PathBuf {
        self.directory.join("policy.toml")
    }

    /// `vcc` with these arguments, to its end.
    pub fn vcc(&self, arguments: &str) -> anyhow::Result<()> {
        let output = vcc(&self.directory)
            .args(arguments.split(' '))
            .output()
            .context(CANNOT_RUN_OPERATOR)?;
        if !output.status.success() {
            bail!("vcc {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn vcc(directory: &Path) -> Command {
    let mut command = operator();
    command.env("RUNTIME_DIRECTORY", directory);
    command
}

/// A running daemon. Killed when dropped.
pub struct Daemon {
    process: Process,
    pub began: Instant,
    lines: Receiver<(Instant, String)>,
}

impl Daemon {
    /// Starts it, and waits until it has met all devices. Returns the time at which it had.
    pub fn start(place: &Place) -> anyhow::Result<(Self, Instant)> {
        let began = Instant::now();
        let mut child = vcc(&place.directory)
            .args(["run", "--listen", ADDRESS, "--config"])
            .arg(place.policy())
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .context(CANNOT_RUN_OPERATOR)?;
        let journal = child.stderr.take();
        let process = Process::new(child, "vcc run");
        let journal = BufReader::new(journal.context("vcc has no standard error")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in journal.lines().map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        let daemon = Self { process, began, lines };
        let mut ready = None;
        let mut seen = Vec::new();
        // The web page is announced last.
        while let Some((at, line)) = daemon.next_line(PATIENCE) {
            if line.contains(", epoch ") {
                ready = Some(at);
            }
            match ready {
                Some(ready) if line.contains("web page at") => return Ok((daemon, ready)),
                _ => seen.push(line),
            }
        }
        bail!("`vcc run` ended early: {}", seen.join("\n"))
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// A line of the journal, and when it came; None after `patience`, or if the daemon has ended.
    pub fn next_line(&self, patience: Duration) -> Option<(Instant, String)> {
        self.lines.recv_timeout(patience).ok()
    }

    /// CPU seconds until now.
    pub fn cpu_s(&self) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/schedstat", self.pid());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let first = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
        Ok(first.with_context(|| format!("{path} has no time"))? / 1e9)
    }

    /// The answer's length in bytes.
    pub fn get(&self, path: &str) -> anyhow::Result<usize> {
        let address: SocketAddr = ADDRESS.parse()?;
        let mut stream = TcpStream::connect(address).context("cannot connect to the web page")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            bail!("{path}: {}", String::from_utf8_lossy(&answer[..answer.len().min(200)]));
        }
        Ok(answer.len())
    }

    /// Ends it; everything stays attached.
    pub fn end(self) -> anyhow::Result<()> {
        self.process.end()
    }
}
