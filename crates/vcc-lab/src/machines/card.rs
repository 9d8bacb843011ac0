//! What the guest's card is connected to, and the guest itself.

use super::Case;
use super::file::{CardKind, Parameters};
use super::network::{BRIDGE, GUEST, HOST, Network, PEER, TAP};
use super::transfer::{ECHO_PORT, LISTENING_PORT};
use super::turns::{self, Part};
use crate::backend::live::hosts::{Netns, program};
use crate::base::error::{Doing, Error, Result};
use crate::congestion_controls;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vcc_command::operator;
use vcc_qemu::{Image, Vm};

const STARTS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// A process in a guest that computes without end.
pub const COMPUTE: &str = "(while :; do :; done &)";

/// The process between the guest's card and the host's bridge, until this is dropped.
pub struct Card {
    process: Option<Child>,
    /// Its socket and its log.
    directory: TempDir,
    kind: CardKind,
}

impl Card {
    pub fn connect(network: &Network, case: &Parameters) -> Result<Self> {
        let directory = tempfile::tempdir().doing(|| "create a temporary directory".into())?;
        let mut card = Self { process: None, directory, kind: case.card };
        let (mut command, package) = match case.card {
            CardKind::Tap => return Ok(card),
            CardKind::Passt => (card.passt()?, "passt"),
            CardKind::Domain => (card.domain(&case.options), "vcc"),
        };
        let log = card.directory.path().join("log");
        let log = File::create(&log).doing(|| format!("create {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // SAFETY: between fork and exec, these are two system calls and nothing else.
        unsafe { command.pre_exec(|| turns::place(0, Part::Card)) };
        card.process = Some(program::spawn_inside(&network.host, &mut command, package)?);
        card.wait()?;
        Ok(card)
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("card")
    }

    /// The socket on which `vcc domain` reports its status.
    pub fn status_socket(&self) -> Option<PathBuf> {
        let socket = || self.directory.path().join("domains").join(TAP);
        (self.kind == CardKind::Domain).then(socket)
    }

    /// One of the guest's own, as another user than root, who makes the socket.
    fn passt(&self) -> Result<Command> {
        let path = self.directory.path();
        fs::set_permissions(path, Permissions::from_mode(0o777))
            .doing(|| format!("let passt write to {}", path.display()))?;
        let mut command = Command::new("passt");
        command.args(["--foreground", "--one-off", "--ipv4-only", "--no-map-gw"]);
        command.args(["--interface", BRIDGE, "--netmask", "24", "--udp-ports", "none"]);
        command.args(["--address", &GUEST.to_string(), "--gateway", &PEER.to_string()]);
        command.args(["--tcp-ports", &LISTENING_PORT.to_string(), "--socket"]).arg(self.socket());
        Ok(command)
    }

    fn domain(&self, options: &str) -> Command {
        let mut command = operator();
        command.env("RUNTIME_DIRECTORY", self.directory.path());
        command.args(["domain", "--tap", TAP, "--socket"]).arg(self.socket());
        command.args(options.split_whitespace());
        command
    }

    /// Until it listens.
    fn wait(&mut self) -> Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let socket = self.directory.path().join("card");
        let begun = Instant::now();
        while !socket.exists() {
            let ended = process.try_wait().doing(|| "look after a card's process".into())?;
            if ended.is_some() || begun.elapsed() > STARTS_WITHIN {
                let log = fs::read_to_string(self.directory.path().join("log"));
                let output =
                    log.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
                return Err(Error::Program {
                    program: format!("{:?}", self.kind).to_lowercase(),
                    place: "the host".into(),
                    output: format!("it does not listen: {output}"),
                });
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// QEMU's options for it.
    fn netdev(&self) -> Vec<String> {
        let path = self.socket();
        let path = path.display();
        match self.kind {
            CardKind::Tap => {
                vec!["-netdev".into(), format!("tap,id=net,ifname={TAP},script=no,downscript=no")]
            }
            CardKind::Passt => vec![
                "-netdev".into(),
                format!("stream,id=net,server=off,addr.type=unix,addr.path={path}"),
            ],
            CardKind::Domain => vec![
                "-chardev".into(),
                format!("socket,id=socket,path={path}"),
                "-netdev".into(),
                "vhost-user,id=net,chardev=socket".into(),
            ],
        }
    }

    /// The address at which the guest's peer reaches it.
    pub fn guest_address(&self) -> SocketAddr {
        let address = if self.kind == CardKind::Passt { HOST } else { GUEST };
        SocketAddr::new(address.into(), LISTENING_PORT)
    }

    /// Boots a guest with this card, ready for transfers of these sizes.
    pub fn boot(
        &self,
        network: &Network,
        image: &Image,
        case: &Parameters,
        sizes: &[u32],
    ) -> Result<Vm> {
        let mut vm = boot(&network.host, image, &self.netdev())?;
        let mut lines = vec![
            format!("ifconfig eth0 {GUEST} netmask 255.255.255.0"),
            "echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save".into(),
            format!("(nc -ll -p {LISTENING_PORT} -e sh -c 'cat >/dev/null' </dev/null &)"),
            format!("(nc -ll -p {ECHO_PORT} -e cat </dev/null &)"),
        ];
        let switches = case.tcp.parameters().map(|(name, value)| (name, value.to_owned()));
        let rto_min_us = case.rto_min_ms.map(|ms| (u64::from(ms.get()) * 1000).to_string());
        let switches = switches.chain(rto_min_us.map(|us| ("ipv4/tcp_rto_min_us", us)));
        lines.extend(switches.map(|(name, value)| format!("echo {value} >/proc/sys/net/{name}")));
        if case.without_hystart {
            lines.push("echo 0 >/sys/module/tcp_cubic/parameters/hystart".into());
        }
        lines.extend((0..case.busy).map(|_| COMPUTE.to_owned()));
        lines.extend(sizes.iter().map(|bytes| format!("head -c {bytes} /dev/zero >/tmp/{bytes}")));
        for line in lines {
            let output = vm.run(&format!("{line} || echo failed"));
            let output = output.doing(|| format!("run `{line}` in the guest"))?;
            if output.trim_end().ends_with("failed") {
                let why = format!("`{line}` failed in a virtual machine: {}", output.trim());
                return Err(Error::Guests(why));
            }
        }
        if let Some(name) = &case.congestion_control {
            set_congestion_control(&mut vm, name)?;
        }
        Ok(vm)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended before.
            let _: [io::Result<()>; 2] = [process.kill(), process.wait().map(drop)];
        }
    }
}

/// Boots a guest, whose CPU takes turns on the core of all guests.
pub fn boot(host: &Netns, image: &Image, netdev: &[String]) -> Result<Vm> {
    let namespace = program::Entry::open(host)?;
    let prepare = |command: &mut Command| namespace.enter(command);
    let vm = Vm::boot(image, netdev, prepare).doing(|| "boot a virtual machine".into())?;
    turns::join(&vm)?;
    Ok(vm)
}

/// One of `guest/`, which the guest loads as BPF struct_ops.
fn set_congestion_control(vm: &mut Vm, name: &str) -> Result<()> {
    const FILE: &str = "/tmp/congestion-control.o";
    const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
    let doing = || format!("load the congestion control '{name}' into the guest");
    let object = congestion_controls::object_without_link(name)
        .map_err(|it| Error::Guests(it.to_string()))?;
    vm.write(FILE, &object).doing(doing)?;
    let line = format!("bpftool struct_ops register {FILE}; echo {name} >{DEFAULT}; cat {DEFAULT}");
    let said = vm.run(&line).doing(doing)?;
    match said.split_whitespace().last() == Some(name) {
        true => Ok(()),
        false => Err(Error::Guests(said.trim().to_owned())),
    }
}

/// Checks, before anything is made, that no program that a case needs is missing.
pub fn check_programs(cases: &[&Case]) -> Result<()> {
    if !vcc_qemu::has_qemu() {
        return Err(program::missing("qemu-system-x86_64", "qemu-system-x86"));
    }
    let needs_passt = cases.iter().any(|case| case.parameters.card == CardKind::Passt);
    let is_in_path = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| Path::new(&directory).join(program).exists())
    };
    if needs_passt && !is_in_path("passt") {
        return Err(program::missing("passt", "passt"));
    }
    Ok(())
}
