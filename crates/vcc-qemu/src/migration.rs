//! Live migration of a virtual machine to another QEMU, by QEMU's machine protocol (QMP).

use std::io::{self, BufRead, BufReader, Error, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// For a guest of 256 MB on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(5);

struct Monitor(BufReader<UnixStream>);

impl Monitor {
    /// Waits until QEMU listens there.
    fn connect(socket: &Path) -> io::Result<Self> {
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            match UnixStream::connect(socket) {
                Err(error) if !is_early(&error) || Instant::now() > deadline => return Err(error),
                Err(_) => thread::sleep(LOOK),
                Ok(stream) => break stream,
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut monitor = Self(BufReader::new(stream));
        monitor.read()?; // the greeting
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    fn read(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(Error::other("QEMU has closed its monitor"));
        }
        serde_json::from_str(&line).map_err(Error::other)
    }

    /// Returns what the command returns.
    fn execute(&mut self, command: &str, arguments: Value) -> io::Result<Value> {
        let line = json!({ "execute": command, "arguments": arguments });
        writeln!(self.0.get_mut(), "{line}")?;
        loop {
            let mut answer = self.read()?;
            if let Some(error) = answer.get("error") {
                return Err(Error::other(format!("QEMU does not do {command}: {error}")));
            }
            // Events come in between.
            if let Some(returned) = answer.get_mut("return") {
                return Ok(returned.take());
            }
        }
    }
}

/// Before QEMU has made its socket, or listens there.
fn is_early(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// Moves the machine behind the monitor at `from` to the QEMU behind the one at `to`. `meanwhile` is
/// called when the guest has stopped here and before it continues there.
pub(crate) fn migrate(from: &Path, to: &Path, meanwhile: impl FnOnce()) -> io::Result<()> {
    let uri = format!("unix:{}", to.with_extension("incoming").display());
    Monitor::connect(to)?.execute("migrate-incoming", json!({ "uri": uri }))?;
    let mut monitor = Monitor::connect(from)?;
    // The guest continues here if the other side fails, which the return path reports.
    let capabilities = ["pause-before-switchover", "return-path"]
        .map(|name| json!({ "capability": name, "state": true }));
    monitor.execute("migrate-set-capabilities", json!({ "capabilities": capabilities }))?;
    monitor.execute("migrate", json!({ "uri": uri }))?;
    monitor.until("pre-switchover")?;
    meanwhile();
    monitor.execute("migrate-continue", json!({ "state": "pre-switchover" }))?;
    monitor.until("completed")
}

impl Monitor {
    /// Waits until the migration has that status.
    fn until(&mut self, wanted: &str) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let migration = self.execute("query-migrate", json!({}))?;
            match migration["status"].as_str() {
                Some(status) if status == wanted => return Ok(()),
                Some("failed" | "cancelled") => {
                    return Err(Error::other(format!("the migration failed: {migration}")));
                }
                _ if Instant::now() > deadline => {
                    return Err(Error::other(format!("no end of the migration: {migration}")));
                }
                _ => thread::sleep(LOOK),
            }
        }
    }
}
