//! Reads from the API server, as often as a test asks. Each `kubectl` takes two tenths of a second of
//! CPU until it has read an object; a request to one `kubectl proxy` takes next to nothing.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Cluster;
use super::reserved_port::ReservedPort;
use super::server::Server;

/// An API server that does not run leaves a request without an answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Proxy {
    server: Server,
    port: ReservedPort,
}

impl Proxy {
    /// As the administrator. It outlives the API server, which comes back at the same address with
    /// the same certificate.
    fn start(cluster: &Cluster) -> Self {
        let port = ReservedPort::new();
        let mut command = cluster.tools.command("kubectl", cluster.path());
        command.arg("--kubeconfig").arg(cluster.kubeconfig());
        command.args(["proxy", &format!("--port={}", port.number())]);
        let server = Server::start(command, &cluster.path().join("proxy.log"));
        Self { server, port }
    }

    /// The body of a successful answer.
    fn get(&self, path: &str) -> io::Result<String> {
        self.server.assert_runs();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port.number()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // An answer of HTTP/1.0 ends with its connection.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.0 200 ") => Ok(body.to_owned()),
            _ => Err(io::Error::other(answer)),
        }
    }
}

impl Cluster {
    /// An object or a list, by its path at the API server, as the administrator. None if there is
    /// none, or no server that answers.
    pub fn object(&self, path: &str) -> Option<Value> {
        let body = self.proxy.get()?.get(path).ok()?;
        Some(serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}")))
    }

    /// Until the server says that all its parts have started, for two minutes at most.
    #[track_caller]
    pub(super) fn await_readiness(&self) {
        let mut complaint = String::new();
        for _ in 0..1200 {
            if self.has_certificate() {
                match self.proxy.get_or_init(|| Proxy::start(self)).get("/readyz") {
                    Ok(_) => return,
                    Err(error) => complaint = error.to_string(),
                }
            }
            self.change(|it| it.assert_runs());
            thread::sleep(Duration::from_millis(100));
        }
        panic!("the API server is not ready after two minutes: {complaint}");
    }

    /// The server writes it before it listens.
    fn has_certificate(&self) -> bool {
        fs::read(self.certificates())
            .is_ok_and(|certificate| certificate.ends_with(b"-----END CERTIFICATE-----\n"))
    }
}
