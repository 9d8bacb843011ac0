//! Devices, made by `ip`.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, bail};

const NO_IP: &str = "cannot run ip (apt-get install iproute2)";

/// Veth pairs, made by one `ip` process. It runs the commands in their order; nobody waits for them
/// before [`Self::finish`].
pub struct Devices {
    ip: Child,
    commands: ChildStdin,
}

impl Devices {
    pub fn begin() -> anyhow::Result<Self> {
        let mut ip = Command::new("ip")
            .args(["-force", "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context(NO_IP)?;
        let commands = ip.stdin.take().context("ip has no standard input")?;
        Ok(Self { ip, commands })
    }

    pub fn create(&mut self, name: &str) -> anyhow::Result<()> {
        self.run(&format!("link add {name} type veth peer name of-{name}"))
    }

    pub fn delete(&mut self, name: &str) -> anyhow::Result<()> {
        self.run(&format!("link delete {name}"))
    }

    fn run(&mut self, command: &str) -> anyhow::Result<()> {
        writeln!(self.commands, "{command}").context("ip has ended")
    }

    pub fn finish(mut self) -> anyhow::Result<()> {
        drop(self.commands);
        let status = self.ip.wait()?;
        if !status.success() {
            bail!("ip could not make or delete all devices: see its messages");
        }
        Ok(())
    }
}

/// `ip` with these arguments, in the namespace of the calling thread.
pub fn ip(arguments: &str) -> anyhow::Result<()> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().context(NO_IP)?;
    if !output.status.success() {
        bail!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
