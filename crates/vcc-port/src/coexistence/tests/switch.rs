//! Open vSwitch with its datapath in user space.

use std::process::{Child, Command, Stdio};

use super::*;

/// Its daemons, with a database and sockets of their own.
struct Switch {
    home: tempfile::TempDir,
    daemons: Vec<Child>,
}

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

impl Switch {
    /// None if it is not installed.
    fn start() -> Option<Self> {
        let home = tempfile::tempdir().expect("a directory");
        let mut switch = Self { home, daemons: Vec::new() };
        if !std::path::Path::new(SCHEMA).exists() {
            return None;
        }
        switch.run(&format!("ovsdb-tool create HOME/conf.db {SCHEMA}"));
        switch.spawn("ovsdb-server HOME/conf.db --remote=punix:HOME/db --unixctl=HOME/server");
        let socket = switch.home.path().join("db");
        vcc_testing::eventually("the database listens", || socket.exists());
        switch.run("ovs-vsctl --db=unix:HOME/db --no-wait init");
        switch.spawn("ovs-vswitchd unix:HOME/db --unixctl=HOME/switch");
        Some(switch)
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

impl Drop for Switch {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // They may have ended already.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

#[test]
fn a_port_of_the_user_space_datapath() {
    on_a_host(|| {
        let _guest = guest();
        let Some(switch) = Switch::start() else {
            return skip("Open vSwitch is not installed");
        };
        let vsctl = "ovs-vsctl --db=unix:HOME/db --timeout=10";
        switch.run(&format!("{vsctl} add-br br0 -- set bridge br0 datapath_type=netdev"));
        switch.run(&format!("{vsctl} add-port br0 port"));
        let findings = look(PORT);
        let (severity, found) = only(&findings, "openvswitch");
        assert_eq!(severity, Severity::Problem, "{findings:#?}");
        assert!(found.contains("ovs-vswitchd (process "), "{found}");
        assert!(of_kind(&findings, "packet-socket").is_empty(), "{findings:#?}");
        switch.run(&format!("{vsctl} del-port br0 port"));
        assert!(of_kind(&look(PORT), "openvswitch").is_empty());
    });
}
