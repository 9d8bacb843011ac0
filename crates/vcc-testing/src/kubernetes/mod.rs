//! Kubernetes' own API server for a test: what it accepts, grants and refuses is what a cluster's
//! does. There are no controllers and no kubelets: nodes and pods are what the test writes.

mod access;
mod control_plane;
mod helm;
mod kubectl;
mod proxy;
mod reserved_port;
mod server;
mod tools;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tempfile::TempDir;

pub use helm::Helm;

use control_plane::ControlPlane;
use proxy::Proxy;
use tools::Tools;

/// An API server with an etcd, on loopback. Both end with this value, or with the process. Methods
/// panic where the server does not do what it is asked.
pub struct Cluster {
    // Before the server that it asks.
    proxy: OnceLock<Proxy>,
    // Before the directory in which its servers write.
    control_plane: Mutex<ControlPlane>,
    tools: Tools,
    directory: TempDir,
}

impl Cluster {
    /// Starts one in the network namespace of the calling thread, whose loopback device must be up.
    /// That takes about three seconds. None if the tools are missing: the calling test is counted as
    /// skipped.
    #[track_caller]
    #[must_use]
    pub fn start() -> Option<Self> {
        let tools = Tools::find()?;
        let directory = tempfile::tempdir().expect("a directory");
        let cluster = Self {
            proxy: OnceLock::new(),
            control_plane: Mutex::new(ControlPlane::new(tools.clone(), directory.path().into())),
            tools,
            directory,
        };
        cluster.start_etcd();
        cluster.start_api_server();
        Some(cluster)
    }

    /// The one that other tests of this process use at the same time, if any does. It is for tests in
    /// the network namespace of the process that do not stop it and that name their objects apart.
    #[track_caller]
    #[must_use]
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        // A test that failed to start it leaves the next one to try.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    pub fn start_etcd(&self) {
        self.change(ControlPlane::start_etcd);
    }

    /// Returns when the server is ready.
    pub fn start_api_server(&self) {
        self.change(ControlPlane::start_api_server);
        self.await_readiness();
    }

    /// Without notice, as in a crash. What has been written is kept.
    pub fn stop_etcd(&self) {
        self.change(|it| it.etcd = None);
    }

    /// Without notice, as in a crash: connections and watches break.
    pub fn stop_api_server(&self) {
        self.change(|it| it.api_server = None);
    }

    /// Connections stay, and nothing is answered.
    pub fn pause_api_server(&self) {
        self.change(|it| it.running_api_server().signal(libc::SIGSTOP));
    }

    pub fn resume_api_server(&self) {
        self.change(|it| it.running_api_server().signal(libc::SIGCONT));
    }

    /// `https://127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.change(|it| it.address())
    }

    fn change<T>(&self, change: impl FnOnce(&mut ControlPlane) -> T) -> T {
        change(&mut self.control_plane.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}
