//! A node's agent: hears of the policies, has the host put them in force, and says what became of them.

mod state;
mod watches;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kube::{Client, config::KubeConfigOptions, config::Kubeconfig};
use tokio::sync::{mpsc, watch as latest};

use self::state::State;
use self::watches::Watches;
use crate::budget::Budget;
use crate::edition::Policies;
use crate::events;
use crate::host::Host;
use crate::memory::Memory;
use crate::resource::{Labels, Pod, PolicyObject};
use crate::status::NodeStatus;
use crate::store::News;
use crate::summarist;
use crate::trouble::Troubles;
use crate::writer;

#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the node that this host is.
    pub node: String,
    /// None: as for a pod in the cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Of the lease: the agents' own namespace.
    pub namespace: String,
    /// Where the policies in force are remembered.
    pub state_dir: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot find the API server: {0}; outside of a cluster's pod, use --kubeconfig FILE")]
    NoServer(String),

    #[error("cannot use {path}: {why}", path = path.display())]
    Kubeconfig { path: PathBuf, why: String },

    #[error("cannot start the agent: {0}")]
    System(#[from] std::io::Error),
}

/// Ends, and lets go of nothing, when dropped.
pub struct Agent {
    wake: mpsc::UnboundedSender<Change>,
}

impl Agent {
    /// The host's devices have changed.
    pub fn devices_changed(&self) {
        // Sending fails only if the agent's thread has ended, and needs no report then.
        let _ = self.wake.send(Change::Devices);
    }

    /// For others that see devices change.
    pub fn waker(&self) -> impl Fn() -> bool + Send + 'static {
        let wake = self.wake.clone();
        move || wake.send(Change::Devices).is_ok()
    }
}

enum Change {
    Policies(News<PolicyObject>),
    OwnPods(News<Pod>),
    Namespaces(News<Labels>),
    /// Of pods that a selector means.
    Peers(Arc<str>, News<Pod>),
    Devices,
}

/// Starts an agent on a thread of its own, which first puts in force what it remembers.
pub fn start(options: Options, host: impl Host) -> Result<Agent, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = runtime.block_on(client(&options))?;
    let (wake, changes) = mpsc::unbounded_channel();
    let agent = Agent { wake: wake.clone() };
    let run = move || runtime.block_on(run(options, client, host, wake, changes));
    thread::Builder::new().name("kubernetes".into()).spawn(run)?;
    Ok(agent)
}

/// The API server says something in each watch more often: it ends them after some minutes.
const SILENCE: Duration = Duration::from_secs(600);

async fn client(options: &Options) -> Result<Client, Error> {
    let mut config = match &options.kubeconfig {
        None => kube::Config::incluster().map_err(|error| Error::NoServer(error.to_string()))?,
        Some(path) => {
            let failed = |why: String| Error::Kubeconfig { path: path.clone(), why };
            let file = Kubeconfig::read_from(path).map_err(|error| failed(error.to_string()))?;
            let context = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &context).await;
            config.map_err(|error| failed(error.to_string()))?
        }
    };
    // A server that vanished silently would leave a list or the start of a watch waiting for ever.
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(|error| Error::NoServer(error.to_string()))
}

/// What was in force when the agent started.
#[derive(Default)]
struct Beginning {
    policies: Policies,
    text: Option<String>,
    /// The problem of the remembered edition.
    trouble: Option<String>,
}

impl Beginning {
    fn recall(memory: &Memory, node: &str, host: &mut impl Host) -> Self {
        let mut begin = Self::default();
        match memory.recall(node) {
            Ok(None) => {}
            Ok(Some(remembered)) => {
                match host.apply(&remembered.edition, &remembered.text) {
                    Ok(()) => begin.text = Some(remembered.text),
                    Err(why) => {
                        begin.trouble = Some(format!("the remembered policies are unusable: {why}"))
                    }
                }
                // A policy that is broken now has these to fall back to all the same.
                begin.policies.remember(remembered.policies);
            }
            Err(why) => begin.trouble = Some(why),
        }
        begin
    }
}

async fn run(
    options: Options,
    client: Client,
    mut host: impl Host,
    wake: mpsc::UnboundedSender<Change>,
    mut changes: mpsc::UnboundedReceiver<Change>,
) {
    let memory = Memory::in_directory(&options.state_dir);
    let begin = Beginning::recall(&memory, &options.node, &mut host);
    let (status, written) = latest::channel(NodeStatus::default());
    let troubles = Troubles::default();
    let (node, namespace) = (options.node.clone(), options.namespace.clone());
    tokio::spawn(writer::write(client.clone(), node.clone(), written, troubles.clone()));
    let (refusals, refused) = latest::channel(Vec::new());
    tokio::spawn(events::write(client.clone(), node.clone(), refused, troubles.clone()));
    tokio::spawn(summarist::run(client.clone(), namespace, node.clone(), troubles.clone()));
    let budget = Budget::reserving(begin.policies.in_force());
    let watches = Watches::new(client, wake, troubles.clone(), &node, budget);
    let mut state = State::new(node, host, memory, begin, watches, (status, refusals), troubles);
    let mut look = tokio::time::interval(LOOK);
    loop {
        let mut has_changed = false;
        tokio::select! {
            change = changes.recv() => match change {
                Some(change) => has_changed |= state.handle(change),
                None => return,
            },
            _ = look.tick() => {
                state.use_room();
                has_changed |= state.is_waiting(Instant::now());
            }
        }
        // Changes that came meanwhile are part of the same edition.
        while let Ok(change) = changes.try_recv() {
            has_changed |= state.handle(change);
        }
        if has_changed {
            state.step();
        }
        state.report(Instant::now());
    }
}

/// The interval of checks for changes without an event.
const LOOK: Duration = Duration::from_secs(1);
