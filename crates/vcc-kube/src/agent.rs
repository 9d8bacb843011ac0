//! A node's agent: hears of the policies, has the host put them in force, and says what became of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kube::runtime::watcher::Config;
use kube::{Client, config::KubeConfigOptions, config::Kubeconfig};
use tokio::sync::{mpsc, watch as latest};

use crate::activity::{Activities, EVERY};
use crate::brief;
use crate::budget::Budget;
use crate::edition::{Edition, Policies};
use crate::host::Host;
use crate::memory::{Memory, Remembered};
use crate::pause::share_of;
use crate::resource::{self, BareResource, Labels, Pod, PodResource, PolicyObject};
use crate::scene::Scene;
use crate::search::{self, Search};
use crate::status::NodeStatus;
use crate::store::{News, Store};
use crate::summarist::{self, watch_policies};
use crate::trouble::Troubles;
use crate::watch::{Watch, watch};
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
    #[error(
        "cannot tell where the API server is: {0}; outside of a cluster's pod, --kubeconfig FILE says so"
    )]
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
        // It has ended only if its thread has, and then there is nobody to tell.
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
    // A server that has gone without a word would leave a list or the start of a watch waiting for ever.
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(|error| Error::NoServer(error.to_string()))
}

/// What was in force when the agent started.
#[derive(Default)]
struct Beginning {
    policies: Policies,
    text: Option<String>,
    /// What is wrong with what was remembered.
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
                        begin.trouble = Some(format!("the last policy is not usable: {why}"))
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
    tokio::spawn(summarist::run(client.clone(), namespace, node.clone(), troubles.clone()));
    let watches = Watches::new(client, wake, troubles.clone(), &node);
    let mut state = State::new(node, host, memory, begin, watches, status, troubles);
    let mut look = tokio::time::interval(LOOK);
    loop {
        let mut has_changed = false;
        tokio::select! {
            change = changes.recv() => match change {
                Some(change) => has_changed |= state.hear(change),
                None => return,
            },
            _ = look.tick() => {
                state.use_room();
                has_changed |= state.is_waiting(Instant::now());
            }
        }
        // What has come meanwhile is part of the same edition.
        while let Ok(change) = changes.try_recv() {
            has_changed |= state.hear(change);
        }
        if has_changed {
            state.step();
        }
        state.report(Instant::now());
    }
}

/// How often what no event tells is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// A list of all policies may have megabytes, and many may change at a time.
const LIST_AGAIN: Duration = Duration::from_secs(10);
/// How long an edition that the host refused is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// An agent that hears of its policies sooner writes its first status with them.
const FIRST_WORD: Duration = Duration::from_secs(3);
/// Who waits longer for a list says so.
const LIST_LASTS: Duration = Duration::from_secs(60);

const POLICIES: &str = "vccpolicies";

struct State<H> {
    node: String,
    host: H,
    memory: Memory,
    policies: Policies,
    /// In force at the host; None: nothing that we know of.
    text: Option<String>,
    /// What became of the policies.
    edition: Option<Edition>,
    policy_objects: Store<PolicyObject>,
    are_policies_unread: bool,
    /// There may be room for policies that were too much when they were listed.
    has_room: bool,
    listed: Instant,
    /// When the agent began.
    began: Instant,
    /// What the API server has to tell of before there can be another edition, and since when.
    awaited: Option<(&'static str, Instant)>,
    /// Selectors of peers have not been heard of.
    unheard_since: Option<Instant>,
    /// Only news of them make a difference: what does not depend on them is in force.
    are_unheard_given_up: bool,
    /// What is in force is not remembered.
    unkept_since: Option<Instant>,
    own: Store<Pod>,
    namespaces: Store<Labels>,
    peers: BTreeMap<Arc<str>, Store<Pod>>,
    scene: Scene,
    search: Search,
    activities: Activities,
    watches: Watches,
    status: latest::Sender<NodeStatus>,
    troubles: Troubles,
    /// Of the agent itself.
    trouble: Option<String>,
    /// The text that the host refused last, when, and why.
    failed: Option<(String, Instant, String)>,
}

impl<H: Host> State<H> {
    fn new(
        node: String,
        host: H,
        memory: Memory,
        begin: Beginning,
        watches: Watches,
        status: latest::Sender<NodeStatus>,
        troubles: Troubles,
    ) -> Self {
        let edition = begin.text.as_ref().map(|text| begin.policies.remembered(&node, text));
        let began = Instant::now();
        Self {
            node,
            host,
            memory,
            policies: begin.policies,
            text: begin.text,
            edition,
            policy_objects: Store::default(),
            are_policies_unread: false,
            has_room: false,
            listed: began,
            began,
            awaited: Some((POLICIES, began)),
            unheard_since: None,
            are_unheard_given_up: false,
            unkept_since: None,
            own: Store::default(),
            namespaces: Store::default(),
            peers: BTreeMap::new(),
            scene: Scene::default(),
            search: Search::new(began),
            activities: Activities::new(share_of(EVERY)),
            watches,
            status,
            troubles,
            trouble: begin.trouble,
            failed: None,
        }
    }

    /// Returns whether it may make a difference.
    fn hear(&mut self, change: Change) -> bool {
        match change {
            Change::Policies(news) => {
                self.has_room |= self.makes_room(&news);
                let has_changed = self.policy_objects.hear(news);
                self.are_policies_unread |= has_changed;
                has_changed
            }
            Change::OwnPods(news) => {
                let has_changed = self.own.hear(news);
                if has_changed {
                    self.search.begin_anew(Instant::now());
                }
                has_changed
            }
            Change::Namespaces(news) => self.namespaces.hear(news),
            Change::Peers(selector, news) => {
                self.peers.get_mut(&selector).is_some_and(|peers| peers.hear(news))
            }
            Change::Devices => {
                self.search.begin_anew(Instant::now());
                true
            }
        }
    }

    /// Whether there may be room afterwards for a policy that was too much.
    fn makes_room(&self, news: &News<PolicyObject>) -> bool {
        let (News::Gone(name) | News::Is(name, _)) = news else { return false };
        self.policy_objects.objects().get(name).is_some_and(|before| !before.is_omitted)
    }

    /// Asks again for the policies that were too much, if there is room.
    fn use_room(&mut self) {
        let has_omitted = || self.policy_objects.objects().values().any(|it| it.is_omitted);
        if self.has_room && self.listed.elapsed() >= LIST_AGAIN {
            if has_omitted() {
                self.watches.list_policies_again();
                self.listed = Instant::now();
            }
            self.has_room = false;
        }
    }

    /// Whether something is to come that no event tells.
    fn is_waiting(&mut self, now: Instant) -> bool {
        self.search.is_due(now)
            || (self.unheard_since.is_some() && !self.are_unheard_given_up)
            || self.failed.as_ref().is_some_and(|(_, at, _)| at.elapsed() >= TRY_AGAIN)
            || self.unkept_since.is_some_and(|since| since.elapsed() >= TRY_AGAIN)
    }

    fn step(&mut self) {
        let Some(what) = self.prepare() else {
            self.awaited = None;
            self.look_at_scene();
            let edition = self.policies.compile(&self.node, &self.scene);
            let missing = edition.without_device(&self.node, &self.scene);
            self.search.looked(missing.into_iter(), Instant::now());
            self.put(edition);
            return;
        };
        if self.awaited.is_none_or(|(before, _)| before != what) {
            self.awaited = Some((what, Instant::now()));
        }
    }

    /// Returns what the API server has to tell of first, if it has.
    fn prepare(&mut self) -> Option<&'static str> {
        if !self.policy_objects.is_complete() {
            return Some(POLICIES);
        }
        if !self.own.is_complete() {
            return Some("this node's pods");
        }
        if std::mem::take(&mut self.are_policies_unread) {
            self.policies.are(self.policy_objects.objects());
        }
        let needs = self.policies.needs(&self.node);
        self.watches.follow(&needs, &mut self.peers);
        self.scene.are_namespaces_unheard = needs.namespaces && !self.namespaces.is_complete();
        let unheard = self.peers.iter().filter(|(_, peers)| !peers.is_complete());
        self.scene.unheard = unheard.map(|(selector, _)| selector.to_string()).collect();
        self.selected()
    }

    /// What selectors mean is to be heard of first: for ever, where a policy in force depends on it; else
    /// for a moment, because the API server may refuse it.
    fn selected(&mut self) -> Option<&'static str> {
        if self.scene.has_heard_all() {
            self.unheard_since = None;
            return None;
        }
        let since = *self.unheard_since.get_or_insert_with(Instant::now);
        let in_force = self.policies.needs_in_force(&self.node);
        self.are_unheard_given_up = since.elapsed() >= TRY_AGAIN;
        let is_early = !self.are_unheard_given_up;
        if self.scene.are_namespaces_unheard && (is_early || in_force.namespaces) {
            return Some("namespaces");
        }
        let is_needed = is_early || !in_force.peers.is_disjoint(&self.scene.unheard);
        is_needed.then_some("the pods that rules name as peers")
    }

    fn look_at_scene(&mut self) {
        self.scene.namespaces.clone_from(self.namespaces.objects());
        self.scene.own.clone_from(self.own.objects());
        self.scene.peers = self.peers.values().flat_map(|it| it.objects().clone()).collect();
        let pods = self.scene.own.values().filter(|pod| crate::scene::has_device(pod));
        self.scene.devices = self.host.devices(&pods.collect::<Vec<&Pod>>());
    }

    fn put(&mut self, mut edition: Edition) {
        if let (Err(why), None) = (&edition.text, &self.text) {
            // The host does not have what the agent remembers, and goes on with what it has.
            edition.is_refused(&why.clone(), None);
            self.failed = None;
            self.edition = Some(edition);
            return;
        }
        let in_force = self.text.as_ref();
        let wanted = edition.text.as_ref().ok();
        let is_there = wanted.is_none() || wanted == in_force;
        // What the host refused is its problem until it is told of something else: of what it has, too.
        let text = wanted.or(in_force).filter(|_| !is_there || self.failed.is_some());
        let Some(text) = text.cloned() else {
            self.failed = None;
            self.is_in_force(edition);
            return;
        };
        let failed_before = self
            .failed
            .as_ref()
            .filter(|(failed, at, _)| *failed == text && at.elapsed() < TRY_AGAIN);
        let result = match failed_before {
            Some((_, _, why)) => Err(why.clone()),
            None => self.host.apply(&edition.id, &text),
        };
        match result {
            Ok(()) => {
                self.failed = None;
                self.text = Some(text);
                self.is_in_force(edition);
            }
            Err(why) => {
                if failed_before.is_none() {
                    self.failed = Some((text, Instant::now(), why.clone()));
                }
                if is_there {
                    self.is_in_force(edition);
                    return;
                }
                // What is in force is what was before.
                edition.is_refused(&why, self.edition.as_ref());
                self.edition = Some(edition);
            }
        }
    }

    fn is_in_force(&mut self, edition: Edition) {
        let has_changed = self.policies.is_in_force(&edition)
            || self.edition.as_ref().map(|it| &it.text) != Some(&edition.text);
        let text = self.text.as_deref().filter(|_| has_changed || self.unkept_since.is_some());
        if let Some(text) = text {
            let policies = self.policies.in_force().cloned().collect();
            let remembered = Remembered::new(&self.node, &edition.id, text, policies);
            self.trouble = self.memory.keep(&remembered).err().map(|error| {
                format!("cannot remember the policies in force for a restart without the API server: {error}")
            });
            self.unkept_since = self.trouble.is_some().then(Instant::now);
        }
        self.edition = Some(edition);
    }

    /// Says what is in force and what is not, here and to the API server.
    fn report(&mut self, now: Instant) {
        let mut troubles = self.troubles.lasting();
        // A request that fails says more.
        let awaited = self.awaited.filter(|(_, since)| now.duration_since(*since) >= LIST_LASTS);
        if let Some((what, _)) = awaited.filter(|_| troubles.is_empty()) {
            troubles
                .push(format!("the API server has not told of {what} yet: what is in force stays"));
        }
        troubles.extend(self.trouble.clone());
        self.host.troubles(troubles.clone());
        // The others are to know of a node that has no edition, and why.
        let is_early = now.duration_since(self.began) < FIRST_WORD;
        if self.edition.is_none() && troubles.is_empty() && is_early {
            return;
        }
        let is_due = self.activities.is_due(now);
        if is_due {
            self.activities.look(self.host.activity(), now);
        }
        let usage = self.host.usage();
        // A policy says so only if another generation of it would have come: pods may be what is new.
        let refused = self.failed.as_ref().map(|(_, _, why)| {
            format!("this node refused what its policies ask for now, and what it had before stays: {why}")
        });
        let stays = self.edition.as_ref().and_then(|it| it.text.as_ref().err()).map(|why| {
            format!(
                "the policies are too much for this node now: what it has stays, and new pods get no port: {why}"
            )
        });
        let not_read = self.edition.as_ref().map_or(&[][..], |it| &it.not_read);
        let problems = refused.into_iter().chain(stays).chain(usage.problems).chain(troubles);
        let without_device = self.search.lasting(now);
        let problems = problems.chain(search::problem(&without_device));
        let problems: Vec<String> = problems.chain(Budget::problem(not_read)).collect();
        let mut status = NodeStatus {
            edition: self.edition.as_ref().map(|it| it.id.clone()).unwrap_or_default(),
            policies: self.edition.as_ref().map(|it| it.policies.clone()).unwrap_or_default(),
            policies_not_read: not_read.len() as u64,
            ports: usage.ports,
            pods_without_device: without_device.len() as u64,
            flows: usage.flows,
            activity: self.activities.latest(),
            problem: problems.first().cloned().unwrap_or_default(),
            problems,
            kernel: kernel(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            updated: String::new(),
        };
        brief::shorten(&mut status, brief::MOST_BYTES);
        self.status.send_if_modified(|before| {
            // Counts alone can wait.
            let is_written = is_due || before.without_counts() != status.without_counts();
            if is_written {
                *before = status;
            }
            is_written
        });
    }
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map(|release| release.trim().to_owned()).unwrap_or_default()
}

/// The watches, some of which only some policies need.
struct Watches {
    client: Client,
    wake: mpsc::UnboundedSender<Change>,
    troubles: Troubles,
    policies: Watch,
    _own: Watch,
    namespaces: Option<Watch>,
    peers: BTreeMap<Arc<str>, Watch>,
}

impl Watches {
    fn new(
        client: Client,
        wake: mpsc::UnboundedSender<Change>,
        troubles: Troubles,
        node: &str,
    ) -> Self {
        let tell = wake.clone();
        let tell = move |news| tell.send(Change::OwnPods(news)).is_ok();
        // From the server's cache: etcd would have to look at all pods of the cluster.
        let config = Config::default().any_semantic().fields(&format!("spec.nodeName={node}"));
        let why = (&troubles, " of this node");
        let own = watch(&client, &resource::pods(), config, why, by_uid, tell);
        let policies = policies(&client, &troubles, wake.clone());
        let peers = BTreeMap::new();
        Self { client, wake, troubles, policies, _own: own, namespaces: None, peers }
    }

    fn list_policies_again(&mut self) {
        self.policies = policies(&self.client, &self.troubles, self.wake.clone());
    }

    /// Begins what is needed, and ends what is not.
    fn follow(&mut self, needs: &crate::scene::Needs, peers: &mut BTreeMap<Arc<str>, Store<Pod>>) {
        if needs.namespaces && self.namespaces.is_none() {
            let tell = self.wake.clone();
            let tell = move |news| tell.send(Change::Namespaces(news)).is_ok();
            let read = |namespace: BareResource| {
                let metadata = namespace.metadata;
                (metadata.name.unwrap_or_default(), metadata.labels.unwrap_or_default())
            };
            let resource = resource::namespaces();
            let config = Config::default().any_semantic();
            let why = (&self.troubles, "");
            self.namespaces = Some(watch(&self.client, &resource, config, why, read, tell));
        }
        let is_needed = |selector: &Arc<str>| needs.peers.contains(&**selector);
        self.peers.retain(|selector, _| is_needed(selector));
        peers.retain(|selector, _| is_needed(selector));
        for selector in &needs.peers {
            if self.peers.contains_key(selector.as_str()) {
                continue;
            }
            let selector: Arc<str> = selector.as_str().into();
            let (tell, key) = (self.wake.clone(), selector.clone());
            let tell = move |news| tell.send(Change::Peers(key.clone(), news)).is_ok();
            let config = Config::default().any_semantic().labels(&selector);
            let labels = if selector.is_empty() { "any" } else { &selector };
            let why = format!(" with labels: {labels}");
            let why = (&self.troubles, why.as_str());
            let watch = watch(&self.client, &resource::pods(), config, why, by_uid, tell);
            peers.insert(selector.clone(), Store::default());
            self.peers.insert(selector, watch);
        }
    }
}

fn policies(client: &Client, troubles: &Troubles, wake: mpsc::UnboundedSender<Change>) -> Watch {
    watch_policies(client, (troubles, ""), move |news| wake.send(Change::Policies(news)).is_ok())
}

fn by_uid(object: PodResource) -> (String, Pod) {
    let pod = Pod::from(object);
    (pod.uid.clone(), pod)
}

#[cfg(test)]
mod tests;
