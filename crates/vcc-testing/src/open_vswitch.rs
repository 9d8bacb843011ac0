//! Open vSwitch with its datapath in user space.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::eventually;

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Its daemons, with a database and sockets of their own, in the network namespace of the calling
/// thread.
pub struct OpenVSwitch {
    home: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl OpenVSwitch {
    pub fn is_installed() -> bool {
        Path::new(SCHEMA).exists()
    }

    /// None if it is not installed.
    pub fn start() -> Option<Self> {
        let home = tempfile::tempdir().expect("a directory");
        let mut switch = Self { home, daemons: Vec::new() };
        if !Self::is_installed() {
            return None;
        }
        switch.run(&format!("ovsdb-tool create HOME/conf.db {SCHEMA}"));
        switch.spawn("ovsdb-server HOME/conf.db --remote=punix:HOME/db --unixctl=HOME/server");
        let socket = switch.home.path().join("db");
        eventually("the database listens", || socket.exists());
        // The socket is there before the database listens.
        switch.run("ovs-vsctl --db=unix:HOME/db --retry --timeout=30 --no-wait init");
        switch.spawn("ovs-vswitchd unix:HOME/db --unixctl=HOME/switch");
        Some(switch)
    }

    /// What `ovs-vsctl` is to do.
    pub fn vsctl(&self, arguments: &str) {
        self.run(&format!("ovs-vsctl --db=unix:HOME/db --timeout=10 {arguments}"));
    }

    fn command(&self, line: &str) -> Command {
        let line = line.replace("HOME", self.home.path().to_str().expect("UTF-8"));
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).env("OVS_RUNDIR", self.home.path()).stderr(Stdio::null());
        command
    }

    fn run(&self, line: &str) {
        let status = self.command(line).status().expect("installed");
        assert!(status.success(), "{line}: {status}");
    }

    fn spawn(&mut self, line: &str) {
        let daemon = self.command(line).spawn().expect("installed");
        self.daemons.push(daemon);
    }
}

impl Drop for OpenVSwitch {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // They may have ended already.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
