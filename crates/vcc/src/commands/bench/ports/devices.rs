//! Veth pairs, made by one `ip` process.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, bail};

/// Runs commands of `ip` in their order; does not wait for them before [`Self::finish`].
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
            .context("cannot run ip (apt-get install iproute2)")?;
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

/// `ip link` with these arguments.
pub fn link(arguments: &str) -> anyhow::Result<()> {
    let status = Command::new("ip").arg("link").args(arguments.split(' ')).status();
    if !status.context("cannot run ip (apt-get install iproute2)")?.success() {
        bail!("ip link {arguments} failed");
    }
    Ok(())
}
