use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::brief;
use crate::budget::Budget;
use crate::host::{RuleActivity, Usage};

const NODE: &str = "worker-1";

/// A node without a datapath.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Sheet>>);

#[derive(Default)]
struct Sheet {
    /// By UID of their pods.
    devices: BTreeMap<String, String>,
    applied: Vec<String>,
    /// Why it refuses whatever it is told to put in force.
    refuses: Option<String>,
}

impl Paper {
    fn sheet(&self) -> MutexGuard<'_, Sheet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for Paper {
    fn devices(&mut self, pods: &[&Pod]) -> BTreeMap<String, String> {
        let sheet = self.sheet();
        let device = |pod: &&Pod| Some((pod.uid.clone(), sheet.devices.get(&pod.uid)?.clone()));
        pods.iter().filter_map(device).collect()
    }

    fn apply(&mut self, _edition: &str, text: &str) -> Result<(), String> {
        let mut sheet = self.sheet();
        sheet.applied.push(text.to_owned());
        sheet.refuses.clone().map_or(Ok(()), Err)
    }

    fn usage(&mut self) -> Usage {
        Usage::default()
    }

    fn activity(&mut self) -> Vec<RuleActivity> {
        Vec::new()
    }

    fn troubles(&mut self, _troubles: Vec<String>) {}
}

/// An agent that hears what a test tells it.
struct Told {
    state: State<Paper>,
    paper: Paper,
    status: latest::Receiver<NodeStatus>,
    _directory: tempfile::TempDir,
    /// Its watches are spawned there, and never run.
    _runtime: tokio::runtime::Runtime,
}

impl Told {
    fn begin() -> Self {
        Self::with(tempfile::tempdir().expect("a directory"), Paper::default())
    }

    /// What is remembered in the directory is put in force first.
    fn with(directory: tempfile::TempDir, mut paper: Paper) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let entered = runtime.enter();
        let server = "http://127.0.0.1:1".parse().expect("an address");
        let client = Client::try_from(kube::Config::new(server)).expect("a client");
        let (wake, _) = mpsc::unbounded_channel();
        let troubles = Troubles::default();
        let memory = Memory::in_directory(directory.path());
        let beginning = Beginning::recall(&memory, NODE, &mut paper);
        let (sender, status) = latest::channel(NodeStatus::default());
        let state = State::new(
            NODE.to_owned(),
            paper.clone(),
            memory,
            beginning,
            Watches::new(client, wake, troubles.clone(), NODE),
            sender,
            troubles,
        );
        drop(entered);
        Self { state, paper, status, _directory: directory, _runtime: runtime }
    }

    /// As the agent does when changes have come.
    fn hear(&mut self, changes: Vec<Change>) {
        let _entered = self._runtime.enter();
        let mut has_changed = false;
        for change in changes {
            has_changed |= self.state.hear(change);
        }
        if has_changed {
            self.state.step();
        }
        self.state.report(Instant::now());
    }

    /// All policies and all of the node's pods.
    fn hear_all(&mut self, policies: &[PolicyObject], pods: &[Pod]) {
        let policies = policies.iter().map(|it| News::Listed(it.name.clone(), it.clone()));
        let policies = [News::Begin].into_iter().chain(policies).chain([News::End]);
        let pods = pods.iter().map(|it| News::Listed(it.uid.clone(), it.clone()));
        let pods = [News::Begin].into_iter().chain(pods).chain([News::End]);
        let changes = policies.map(Change::Policies).chain(pods.map(Change::OwnPods));
        self.hear(changes.collect());
    }

    fn status(&self) -> NodeStatus {
        self.status.borrow().clone()
    }

    fn applied(&self) -> usize {
        self.paper.sheet().applied.len()
    }
}

fn policy(name: &str, generation: i64, spec: Value) -> PolicyObject {
    let (name, uid) = (name.to_owned(), format!("uid of {name}"));
    PolicyObject { name, uid, generation, created: 0, spec: spec.into(), is_omitted: false }
}

fn of_all_pods() -> PolicyObject {
    policy("base", 1, json!({ "ports": [{ "pods": {} }] }))
}

fn pod(name: &str) -> Pod {
    Pod {
        uid: name.to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        labels: Labels::new(),
        addresses: vec!["10.0.0.1".parse().expect("an address")],
        host_network: false,
        has_ended: false,
    }
}

#[test]
fn what_the_host_refuses_is_told_and_over_when_it_is_wanted_no_more() {
    const WHY: &str = "no room for port veth1";
    let mut told = Told::begin();
    told.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    told.hear_all(&[of_all_pods()], &[]);
    assert_eq!((told.applied(), told.status().problem), (1, String::new()));

    // The generations are the same: a pod is what the host has no room for.
    told.paper.sheet().refuses = Some(WHY.to_owned());
    told.hear(vec![Change::OwnPods(News::Is("web".to_owned(), pod("web")))]);
    let status = told.status();
    assert!(status.problem.ends_with(WHY), "{status:?}");
    assert_eq!(status.policies[0].in_force, 1);
    assert_eq!(told.applied(), 2);

    // What is in force is what is wanted again, and the host hears of it, too.
    told.paper.sheet().refuses = None;
    told.hear(vec![Change::OwnPods(News::Gone("web".to_owned()))]);
    assert_eq!(told.status().problem, "");
    let applied = told.paper.sheet().applied.clone();
    assert_eq!(applied[2], applied[0]);
    told.hear(vec![Change::Devices]);
    assert_eq!(told.applied(), 3, "once");
}

#[test]
fn a_host_that_refuses_what_it_has_too_goes_on_to_say_so() {
    const WHY: &str = "no memory";
    let mut told = Told::begin();
    told.hear_all(&[of_all_pods()], &[]);
    told.paper.sheet().refuses = Some(WHY.to_owned());
    let other = policy("base", 2, json!({ "ports": [{ "device": "veth*" }] }));
    told.hear(vec![Change::Policies(News::Is("base".to_owned(), other))]);
    let status = told.status();
    let policy = &status.policies[0];
    assert_eq!((policy.generation, policy.in_force), (2, 1));
    assert_eq!(policy.messages, [format!("this node refused the edition: {WHY}")]);
    told.hear(vec![Change::Policies(News::Is("base".to_owned(), of_all_pods()))]);
    let status = told.status();
    assert_eq!((status.policies[0].generation, status.policies[0].in_force), (1, 1));
    assert!(status.policies[0].messages.is_empty(), "{status:?}");
    assert!(status.problem.ends_with(WHY), "{status:?}");
}

/// So much later.
fn after(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

#[test]
fn a_node_without_an_edition_says_that_it_is_there() {
    let mut told = Told::begin();
    told.hear(Vec::new());
    assert!(!told.status.has_changed().expect("it is there"), "its policies may come at once");
    told.state.report(after(3));
    let status = told.status();
    assert_eq!((status.version.as_str(), status.policies.len()), (env!("CARGO_PKG_VERSION"), 0));
    assert_eq!((status.edition.as_str(), status.problem.as_str()), ("", ""));
    told.state.report(after(61));
    let problem = "the API server has not told of vccpolicies yet: what is in force stays";
    assert_eq!(told.status().problem, problem);
    // The watch says why.
    let labels = json!({ "matchLabels": { "a": "b" } });
    let spec = json!({ "ports": [{ "namespaces": labels, "pods": {} }] });
    told.hear_all(&[policy("base", 1, spec)], &[]);
    told.state.report(after(61));
    assert!(told.status().problem.contains("not told of namespaces"), "{:?}", told.status());
    let refusal = kube::core::Status::failure("forbidden", "Forbidden").with_code(403);
    told.state.troubles.failed("watch namespaces", &kube::Error::Api(refusal.boxed()));
    told.state.report(after(61));
    let problems = told.status().problems;
    assert!(problems[0].starts_with("cannot watch namespaces: "), "{problems:?}");
    assert_eq!(problems.len(), 1);
    let listed = News::Listed("shop".to_owned(), Labels::new());
    let namespaces = [News::Begin, listed, News::End].map(Change::Namespaces);
    told.state.troubles.works("watch namespaces");
    told.hear(namespaces.into());
    told.state.report(after(61));
    let status = told.status();
    assert_eq!((status.policies[0].in_force, status.problem.as_str()), (1, ""));
}

#[test]
fn a_node_that_is_refused_says_so_at_once() {
    let mut told = Told::begin();
    let refusal = kube::core::Status::failure("forbidden", "Forbidden").with_code(403);
    told.state.troubles.failed("watch vccpolicies", &kube::Error::Api(refusal.boxed()));
    told.hear(Vec::new());
    assert!(told.status().problem.starts_with("cannot watch vccpolicies: "), "{:?}", told.status());
}

#[test]
fn thousands_of_policies_leave_the_status_small_and_each_has_its_refusal() {
    const ALL: usize = 10_000;
    let mut budget = Budget::default();
    let underlay = "x".repeat(60);
    let rule = |it: usize| json!({ "name": format!("r{it}"), "underlay": underlay });
    let broken = json!({ "rules": (0..12).map(rule).collect::<Vec<Value>>() });
    let mut made = |number: usize| {
        let mut policy = policy(&format!("p{number:05}"), 1, broken.clone());
        budget.admit(&mut policy);
        policy
    };
    let policies: Vec<PolicyObject> = (0..ALL).map(&mut made).collect();
    let mut told = Told::begin();
    told.hear_all(&policies, &[]);
    let status = told.status();
    let bytes = serde_json::to_vec(&status).expect("JSON").len();
    assert!(bytes <= brief::MOST_BYTES, "{bytes}");
    assert_eq!(status.policies.len(), crate::budget::MOST_POLICIES);
    assert!(
        status.policies.iter().all(|it| it.messages[0].starts_with("spec.rules[0].underlay: "))
    );
    let not_read = ALL - crate::budget::MOST_POLICIES;
    assert_eq!(status.policies_not_read, not_read as u64);
    let problem =
        format!("{not_read} policies (p00256, p00257, p00258, ...) are not read, because ");
    assert!(status.problem.starts_with(&problem), "{}", status.problem);
    let nodes = BTreeMap::from([(NODE.to_owned(), status)]);
    let sum = crate::summary::of_policy(&policies[ALL - 1], &nodes, &Default::default());
    assert_eq!((sum.refused, sum.everywhere.as_str()), (1, "0/1"));
    assert!(sum.message.starts_with("worker-1: spec: not read, because "), "{}", sum.message);
}

#[test]
fn a_pod_without_a_device_is_named_until_it_has_one() {
    let mut told = Told::begin();
    let starting = Pod { addresses: Vec::new(), ..pod("starting") };
    told.hear_all(&[of_all_pods()], &[pod("web"), starting]);
    let status = told.status();
    assert_eq!(
        (status.pods_without_device, status.problem.as_str()),
        (0, ""),
        "it may have one soon"
    );
    told.state.report(after(10));
    let status = told.status();
    let problem = "no device is found for the pod shop/web: it passes untranslated";
    assert_eq!((status.pods_without_device, status.problem.as_str()), (1, problem));
    // Nothing tells of a route: it is looked for.
    told.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    assert!(told.state.is_waiting(after(1)));
    assert!(!told.state.is_waiting(after(1)), "not for ever at each moment");
    told.hear(vec![Change::Devices]);
    assert!(told.state.is_waiting(after(1)), "the one that is starting");
    told.state.report(after(60));
    let status = told.status();
    assert_eq!((status.pods_without_device, status.problem.as_str()), (0, ""));
}

/// A policy whose rule has peers, and a pod that is its port.
fn hear_of_peers(told: &mut Told) {
    let peers = json!({ "matchLabels": { "app": "db" } });
    let rules = json!([{ "name": "r", "peer_pods": peers, "underlay": "dctcp" }]);
    let spec = json!({ "ports": [{ "pods": {} }], "rules": rules });
    told.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    told.hear_all(&[policy("base", 1, spec)], &[pod("web")]);
}

/// All of so many peers, each of which is a network.
fn peers(count: u32) -> Vec<Change> {
    let peer = |number: u32| {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + number * 2);
        let labels = Labels::from([("app".to_owned(), "db".to_owned())]);
        let pod = Pod { addresses: vec![address.into()], labels, ..pod(&format!("p{number}")) };
        News::Listed(pod.uid.clone(), pod)
    };
    let news = [News::Begin].into_iter().chain((0..count).map(peer)).chain([News::End]);
    news.map(|news| Change::Peers("app=db".into(), news)).collect()
}

const TOO_MANY: u32 = 20_000;

#[test]
fn a_node_for_which_its_policies_become_too_much_says_so() {
    let mut told = Told::begin();
    hear_of_peers(&mut told);
    told.hear(peers(2));
    let before = told.status();
    assert_eq!((before.policies[0].in_force, before.problem.as_str()), (1, ""));
    told.hear(peers(TOO_MANY));
    let status = told.status();
    assert_eq!((told.applied(), status.policies[0].in_force), (1, 1));
    assert_eq!(status.edition, before.edition);
    let problem = "the policies are too much for this node now: what it has stays, and new pods get no port: ";
    let why = "the VccPolicy `base`, spec: on this node: too many networks";
    assert!(status.problem.starts_with(&format!("{problem}{why}")), "{}", status.problem);
    told.hear(peers(3));
    assert_eq!((told.applied(), told.status().problem), (2, String::new()));
}

/// A checker of another version may refuse the text, whose policies are too much meanwhile.
#[test]
fn what_is_remembered_is_not_forgotten_while_nothing_takes_its_place() {
    let mut told = Told::begin();
    hear_of_peers(&mut told);
    told.hear(peers(2));
    let remembered = |told: &Told| {
        let memory = Memory::in_directory(told._directory.path());
        memory.recall(NODE).expect("it can be read").expect("there")
    };
    let before = remembered(&told);
    let Told { _directory: directory, .. } = told;
    let paper = Paper::default();
    paper.sheet().refuses = Some("an unknown key".to_owned());
    let mut told = Told::with(directory, paper);
    told.paper.sheet().refuses = None;
    hear_of_peers(&mut told);
    told.hear(peers(TOO_MANY));
    assert_eq!((told.applied(), remembered(&told)), (1, before));
    let status = told.status();
    let policy = &status.policies[0];
    assert_eq!(
        (policy.in_force, policy.mode.as_str(), status.edition.as_str()),
        (0, "refused", "")
    );
    let has = |part: &str| status.problems.iter().any(|it| it.contains(part));
    assert!(has("too much for this node"), "{:?}", status.problems);
    assert!(has("the last policy is not usable: an unknown key"), "{:?}", status.problems);
    told.hear(peers(2));
    let status = told.status();
    assert_eq!((told.applied(), status.policies[0].in_force, status.problem.as_str()), (2, 1, ""));
}

#[test]
fn a_policy_that_selects_namespaces_nobody_tells_of_keeps_no_other_from_new_pods() {
    let mut told = Told::begin();
    told.hear_all(&[of_all_pods()], &[]);
    let labels = json!({ "matchLabels": { "a": "b" } });
    let spec = json!({ "priority": 1, "ports": [{ "namespaces": labels, "pods": {} }] });
    told.hear(vec![Change::Policies(News::Is("next".to_owned(), policy("next", 1, spec)))]);
    told.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    told.hear(vec![Change::OwnPods(News::Is("web".to_owned(), pod("web")))]);
    assert_eq!(told.applied(), 1, "they may come in a moment");
    assert!(told.state.is_waiting(after(1)));
    told.state.unheard_since = Instant::now().checked_sub(TRY_AGAIN);
    told.hear(vec![Change::Devices]);
    assert!(told.paper.sheet().applied[1].contains("veth1"));
    let status = told.status();
    let next = status.policies.iter().find(|it| it.name == "next").expect("there");
    let why = "spec: the API server has not told of the namespaces that this selects";
    assert_eq!((next.in_force, next.messages.as_slice()), (0, &[why.to_owned()][..]));
    let namespaces = [News::Begin, News::End].map(Change::Namespaces);
    told.hear(namespaces.into());
    let status = told.status();
    assert!(status.policies.iter().all(|it| it.in_force == 1), "{status:?}");
}

#[test]
fn peers_that_are_never_told_of_do_not_keep_a_node_busy() {
    let mut told = Told::begin();
    let peers = json!({ "matchLabels": { "app": "db" } });
    let rules = json!([{ "name": "r", "peer_pods": peers }]);
    told.hear_all(&[policy("base", 1, json!({ "rules": rules }))], &[]);
    assert!(told.state.is_waiting(after(11)), "they may come in a moment");
    assert_eq!(told.applied(), 0);
    told.state.unheard_since = Instant::now().checked_sub(TRY_AGAIN);
    told.hear(vec![Change::Devices]);
    let status = told.status();
    let why = "spec.rules[0].peer_pods: the API server has not told of these pods";
    assert_eq!(
        (told.applied(), status.policies[0].messages.as_slice()),
        (1, &[why.to_owned()][..])
    );
    assert!(!told.state.is_waiting(after(60)));
}
