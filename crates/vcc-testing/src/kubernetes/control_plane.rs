//! The two servers and how they are called.

use std::path::PathBuf;
use std::process::Command;

use super::access;
use super::reserved_port::ReservedPort;
use super::server::Server;
use super::tools::Tools;

pub(super) struct ControlPlane {
    // First, so that it ends first.
    pub api_server: Option<Server>,
    pub etcd: Option<Server>,
    tools: Tools,
    directory: PathBuf,
    api_port: ReservedPort,
    etcd_port: ReservedPort,
}

impl ControlPlane {
    /// Both still stand.
    pub fn new(tools: Tools, directory: PathBuf) -> Self {
        access::prepare(&tools, &directory);
        let (api_port, etcd_port) = (ReservedPort::new(), ReservedPort::new());
        Self { api_server: None, etcd: None, tools, directory, api_port, etcd_port }
    }

    pub fn address(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port.number())
    }

    fn etcd_address(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port.number())
    }

    pub fn running_api_server(&self) -> &Server {
        self.api_server.as_ref().expect("the API server has been stopped")
    }

    /// Panics if one of them has ended by itself.
    pub fn assert_runs(&self) {
        for server in [&self.etcd, &self.api_server].into_iter().flatten() {
            server.assert_runs();
        }
    }

    pub fn start_etcd(&mut self) {
        assert!(self.etcd.is_none(), "etcd runs");
        let mut command = self.command("etcd");
        command
            .arg(format!("--data-dir={}", self.directory.join("etcd").display()))
            .arg(format!("--listen-client-urls={}", self.etcd_address()))
            .arg(format!("--advertise-client-urls={}", self.etcd_address()))
            // There is one member. It listens for others all the same, at any port.
            .arg("--listen-peer-urls=http://127.0.0.1:0")
            // Data must outlive the process, not the machine.
            .arg("--unsafe-no-fsync");
        self.etcd = Some(Server::start(command, &self.directory.join("etcd.log")));
    }

    pub fn start_api_server(&mut self) {
        assert!(self.api_server.is_none(), "the API server runs");
        let mut command = self.command("kube-apiserver");
        command
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg(format!("--secure-port={}", self.api_port.number()))
            .arg(format!("--etcd-servers={}", self.etcd_address()))
            .args(access::server_options(&self.directory))
            // Grants are tested, so nothing else may grant.
            .arg("--authorization-mode=RBAC")
            // It waits for the `default` account of a namespace, which a controller makes.
            .arg("--disable-admission-plugins=ServiceAccount")
            .args(["--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none"]);
        self.api_server = Some(Server::start(command, &self.directory.join("api-server.log")));
    }

    fn command(&self, name: &str) -> Command {
        self.tools.command(name, &self.directory)
    }
}
