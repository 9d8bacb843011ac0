use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::budget::Budget;
use crate::host::{RuleActivity, Usage};
use crate::status_size;

const NODE: &str = "worker-1";

/// A node without a datapath.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Sheet>>);

#[derive(Default)]
struct Sheet {
    /// By UID of their pods.
    devices: BTreeMap<String, String>,
    applied: Vec<String>,
    refused_choices: Vec<String>,
    /// Why it refuses every edition.
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

    fn refused_choices(&mut self, refused: &[String]) {
        self.sheet().refused_choices = refused.to_vec();
    }

    fn troubles(&mut self, _troubles: Vec<String>) {}
}

/// An agent that receives the changes of a test.
struct TestAgent {
    state: State<Paper>,
    paper: Paper,
    status: latest::Receiver<NodeStatus>,
    _directory: tempfile::TempDir,
    /// Its watches are spawned there, and never run.
    _runtime: tokio::runtime::Runtime,
}

impl TestAgent {
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
            Watches::new(client, wake, troubles.clone(), NODE, Budget::default()),
            (sender, latest::channel(Vec::new()).0),
            troubles,
        );
        drop(entered);
        Self { state, paper, status, _directory: directory, _runtime: runtime }
    }

    /// As the agent does when changes have come.
    fn handle(&mut self, changes: Vec<Change>) {
        let _entered = self._runtime.enter();
        let mut has_changed = false;
        for change in changes {
            has_changed |= self.state.handle(change);
        }
        if has_changed {
            self.state.step();
        }
        self.state.report(Instant::now());
    }

    /// All policies and all of the node's pods.
    fn handle_all(&mut self, policies: &[PolicyObject], pods: &[Pod]) {
        let policies = policies.iter().map(|it| News::Listed(it.name.clone(), it.clone()));
        let policies = [News::Begin].into_iter().chain(policies).chain([News::End]);
        let pods = pods.iter().map(|it| News::Listed(it.uid.clone(), it.clone()));
        let pods = [News::Begin].into_iter().chain(pods).chain([News::End]);
        let changes = policies.map(Change::Policies).chain(pods.map(Change::OwnPods));
        self.handle(changes.collect());
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
        choice: Default::default(),
        addresses: vec!["10.0.0.1".parse().expect("an address")],
        host_network: false,
        has_ended: false,
    }
}

#[test]
fn a_refusal_of_the_host_is_reported_until_it_no_longer_applies() {
    const WHY: &str = "no room for port veth1";
    let mut agent = TestAgent::begin();
    agent.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    agent.handle_all(&[of_all_pods()], &[]);
    assert_eq!((agent.applied(), agent.status().problem), (1, String::new()));

    // The generations are the same: a pod is what the host has no room for.
    agent.paper.sheet().refuses = Some(WHY.to_owned());
    agent.handle(vec![Change::OwnPods(News::Is("web".to_owned(), pod("web")))]);
    let status = agent.status();
    assert!(status.problem.ends_with(WHY), "{status:?}");
    assert_eq!(status.policies[0].in_force, 1);
    assert_eq!(agent.applied(), 2);

    // What is in force is what is wanted again, and the host hears of it, too.
    agent.paper.sheet().refuses = None;
    agent.handle(vec![Change::OwnPods(News::Gone("web".to_owned()))]);
    assert_eq!(agent.status().problem, "");
    let applied = agent.paper.sheet().applied.clone();
    assert_eq!(applied[2], applied[0]);
    agent.handle(vec![Change::Devices]);
    assert_eq!(agent.applied(), 3, "once");
}

#[test]
fn a_host_that_also_refuses_its_present_edition_keeps_reporting_it() {
    const WHY: &str = "no memory";
    let mut agent = TestAgent::begin();
    agent.handle_all(&[of_all_pods()], &[]);
    agent.paper.sheet().refuses = Some(WHY.to_owned());
    let other = policy("base", 2, json!({ "ports": [{ "device": "veth*" }] }));
    agent.handle(vec![Change::Policies(News::Is("base".to_owned(), other))]);
    let status = agent.status();
    let policy = &status.policies[0];
    assert_eq!((policy.generation, policy.in_force), (2, 1));
    assert_eq!(policy.messages, [format!("this node refused the edition: {WHY}")]);
    agent.handle(vec![Change::Policies(News::Is("base".to_owned(), of_all_pods()))]);
    let status = agent.status();
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
    let mut agent = TestAgent::begin();
    agent.handle(Vec::new());
    assert!(!agent.status.has_changed().expect("it is there"), "its policies may come at once");
    agent.state.report(after(3));
    let status = agent.status();
    assert_eq!((status.version.as_str(), status.policies.len()), (env!("CARGO_PKG_VERSION"), 0));
    assert_eq!((status.edition.as_str(), status.problem.as_str()), ("", ""));
    agent.state.report(after(61));
    let problem =
        "the API server has not listed vccpolicies yet: the previous policies stay in force";
    assert_eq!(agent.status().problem, problem);
    // The watch says why.
    let labels = json!({ "matchLabels": { "a": "b" } });
    let spec = json!({ "ports": [{ "namespaces": labels, "pods": {} }] });
    agent.handle_all(&[policy("base", 1, spec)], &[]);
    agent.state.report(after(61));
    assert!(agent.status().problem.contains("not listed namespaces"), "{:?}", agent.status());
    let refusal = kube::core::Status::failure("forbidden", "Forbidden").with_code(403);
    agent.state.troubles.failed("watch namespaces", &kube::Error::Api(refusal.boxed()));
    agent.state.report(after(61));
    let problems = agent.status().problems;
    assert!(problems[0].starts_with("cannot watch namespaces: "), "{problems:?}");
    assert_eq!(problems.len(), 1);
    let listed = News::Listed("shop".to_owned(), Labels::new());
    let namespaces = [News::Begin, listed, News::End].map(Change::Namespaces);
    agent.state.troubles.works("watch namespaces");
    agent.handle(namespaces.into());
    agent.state.report(after(61));
    let status = agent.status();
    assert_eq!((status.policies[0].in_force, status.problem.as_str()), (1, ""));
}

#[test]
fn a_node_that_is_refused_says_so_at_once() {
    let mut agent = TestAgent::begin();
    let refusal = kube::core::Status::failure("forbidden", "Forbidden").with_code(403);
    agent.state.troubles.failed("watch vccpolicies", &kube::Error::Api(refusal.boxed()));
    agent.handle(Vec::new());
    assert!(
        agent.status().problem.starts_with("cannot watch vccpolicies: "),
        "{:?}",
        agent.status()
    );
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
    let mut agent = TestAgent::begin();
    agent.handle_all(&policies, &[]);
    let status = agent.status();
    let bytes = serde_json::to_vec(&status).expect("JSON").len();
    assert!(bytes <= status_size::MOST_BYTES, "{bytes}");
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
    let mut agent = TestAgent::begin();
    let starting = Pod { addresses: Vec::new(), ..pod("starting") };
    agent.handle_all(&[of_all_pods()], &[pod("web"), starting]);
    let status = agent.status();
    assert_eq!(
        (status.pods_without_device, status.problem.as_str()),
        (0, ""),
        "it may have one soon"
    );
    agent.state.report(after(10));
    let status = agent.status();
    let problem = "found no device for the pod shop/web: it passes untranslated";
    assert_eq!((status.pods_without_device, status.problem.as_str()), (1, problem));
    // No event announces a route: it is searched for.
    agent.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    assert!(agent.state.is_waiting(after(1)));
    assert!(!agent.state.is_waiting(after(1)), "not for ever at each moment");
    agent.handle(vec![Change::Devices]);
    assert!(agent.state.is_waiting(after(1)), "the one that is starting");
    agent.state.report(after(60));
    let status = agent.status();
    assert_eq!((status.pods_without_device, status.problem.as_str()), (0, ""));
}

/// A policy whose rule has peers, and a pod that is its port.
fn hear_of_peers(agent: &mut TestAgent) {
    let peers = json!({ "matchLabels": { "app": "db" } });
    let rules = json!([{ "name": "r", "peer_pods": peers, "underlay": "dctcp" }]);
    let spec = json!({ "ports": [{ "pods": {} }], "rules": rules });
    agent.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    agent.handle_all(&[policy("base", 1, spec)], &[pod("web")]);
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
    let mut agent = TestAgent::begin();
    hear_of_peers(&mut agent);
    agent.handle(peers(2));
    let before = agent.status();
    assert_eq!((before.policies[0].in_force, before.problem.as_str()), (1, ""));
    agent.handle(peers(TOO_MANY));
    let status = agent.status();
    assert_eq!((agent.applied(), status.policies[0].in_force), (1, 1));
    assert_eq!(status.edition, before.edition);
    let problem = "the policies exceed this node's limits: the previous ones stay in force, and new pods get no port: ";
    let why = "the VccPolicy `base`, spec: on this node: too many networks";
    assert!(status.problem.starts_with(&format!("{problem}{why}")), "{}", status.problem);
    agent.handle(peers(3));
    assert_eq!((agent.applied(), agent.status().problem), (2, String::new()));
}

/// A checker of another version may refuse the text, whose policies are too much meanwhile.
#[test]
fn what_is_remembered_is_not_forgotten_while_nothing_takes_its_place() {
    let mut agent = TestAgent::begin();
    hear_of_peers(&mut agent);
    agent.handle(peers(2));
    let remembered = |agent: &TestAgent| {
        let memory = Memory::in_directory(agent._directory.path());
        memory.recall(NODE).expect("it can be read").expect("there")
    };
    let before = remembered(&agent);
    let TestAgent { _directory: directory, .. } = agent;
    let paper = Paper::default();
    paper.sheet().refuses = Some("an unknown key".to_owned());
    let mut agent = TestAgent::with(directory, paper);
    agent.paper.sheet().refuses = None;
    hear_of_peers(&mut agent);
    agent.handle(peers(TOO_MANY));
    assert_eq!((agent.applied(), remembered(&agent)), (1, before));
    let status = agent.status();
    let policy = &status.policies[0];
    assert_eq!(
        (policy.in_force, policy.mode.as_str(), status.edition.as_str()),
        (0, "refused", "")
    );
    let has = |part: &str| status.problems.iter().any(|it| it.contains(part));
    assert!(has("exceed this node's limits"), "{:?}", status.problems);
    assert!(has("the remembered policies are unusable: an unknown key"), "{:?}", status.problems);
    agent.handle(peers(2));
    let status = agent.status();
    assert_eq!((agent.applied(), status.policies[0].in_force, status.problem.as_str()), (2, 1, ""));
}

#[test]
fn unlisted_namespaces_of_one_policy_do_not_delay_new_pods_of_others() {
    let mut agent = TestAgent::begin();
    agent.handle_all(&[of_all_pods()], &[]);
    let labels = json!({ "matchLabels": { "a": "b" } });
    let spec = json!({ "priority": 1, "ports": [{ "namespaces": labels, "pods": {} }] });
    agent.handle(vec![Change::Policies(News::Is("next".to_owned(), policy("next", 1, spec)))]);
    agent.paper.sheet().devices.insert("web".to_owned(), "veth1".to_owned());
    agent.handle(vec![Change::OwnPods(News::Is("web".to_owned(), pod("web")))]);
    assert_eq!(agent.applied(), 1, "they may come in a moment");
    assert!(agent.state.is_waiting(after(1)));
    agent.state.unheard_since = Instant::now().checked_sub(TRY_AGAIN);
    agent.handle(vec![Change::Devices]);
    assert!(agent.paper.sheet().applied[1].contains("veth1"));
    let status = agent.status();
    let next = status.policies.iter().find(|it| it.name == "next").expect("there");
    let why = "spec: the API server has not listed the selected namespaces yet";
    assert_eq!((next.in_force, next.messages.as_slice()), (0, &[why.to_owned()][..]));
    let namespaces = [News::Begin, News::End].map(Change::Namespaces);
    agent.handle(namespaces.into());
    let status = agent.status();
    assert!(status.policies.iter().all(|it| it.in_force == 1), "{status:?}");
}

#[test]
fn peers_that_are_never_listed_do_not_keep_a_node_busy() {
    let mut agent = TestAgent::begin();
    let peers = json!({ "matchLabels": { "app": "db" } });
    let rules = json!([{ "name": "r", "peer_pods": peers }]);
    agent.handle_all(&[policy("base", 1, json!({ "rules": rules }))], &[]);
    assert!(agent.state.is_waiting(after(11)), "they may come in a moment");
    assert_eq!(agent.applied(), 0);
    agent.state.unheard_since = Instant::now().checked_sub(TRY_AGAIN);
    agent.handle(vec![Change::Devices]);
    let status = agent.status();
    let why = "spec.rules[0].peer_pods: the API server has not listed these pods yet";
    assert_eq!(
        (agent.applied(), status.policies[0].messages.as_slice()),
        (1, &[why.to_owned()][..])
    );
    assert!(!agent.state.is_waiting(after(60)));
}

/// As many as a node reads, and one more, as they come in a list.
fn one_too_many() -> Vec<PolicyObject> {
    let mut budget = Budget::default();
    let rules = |number: usize| {
        let rules = json!([{ "name": "r", "underlay": "dctcp" }]);
        json!({ "priority": number, "rules": rules })
    };
    let made = |number: usize| {
        let mut policy = policy(&format!("p{number:03}"), 1, rules(number));
        budget.admit(&mut policy);
        policy
    };
    (0..=crate::budget::MOST_POLICIES).map(made).collect()
}

#[test]
fn only_a_changed_spec_or_a_deletion_makes_room() {
    let policies = one_too_many();
    let (kept, omitted) = (policies[0].clone(), policies[policies.len() - 1].clone());
    assert!(!kept.is_omitted && omitted.is_omitted);
    let mut agent = TestAgent::begin();
    agent.handle_all(&policies, &[]);
    let mut makes_room = |news: News<PolicyObject>| {
        agent.handle(vec![Change::Policies(news)]);
        std::mem::take(&mut agent.state.has_room)
    };
    // A status was written: that of each policy is, again and again.
    assert!(!makes_room(News::Is(kept.name.clone(), kept.clone())));
    assert!(!makes_room(News::Is(omitted.name.clone(), omitted.clone())));
    assert!(!makes_room(News::Gone(omitted.name)));
    let smaller = policy(&kept.name, 2, json!({ "priority": 0 }));
    assert!(makes_room(News::Is(kept.name.clone(), smaller)));
    assert!(makes_room(News::Gone(kept.name)));
}

#[test]
fn what_a_list_lacks_makes_room() {
    let mut policies = one_too_many();
    let mut agent = TestAgent::begin();
    agent.handle_all(&policies, &[]);
    assert!(!agent.state.has_room);
    agent.handle_all(&policies, &[]);
    assert!(!agent.state.has_room, "the same again");
    let gone = policies.remove(0);
    agent.handle_all(&policies, &[]);
    assert!(std::mem::take(&mut agent.state.has_room));
    agent.handle_all(&policies, &[]);
    assert!(!agent.state.has_room, "once");

    // It had a place in the first list of an agent that remembers it.
    let mut agent = TestAgent::begin();
    agent.handle_all(std::slice::from_ref(&gone), &[]);
    let mut agent = TestAgent::with(agent._directory, Paper::default());
    agent.handle_all(&policies, &[]);
    assert!(std::mem::take(&mut agent.state.has_room));
    agent.handle_all(&policies, &[]);
    assert!(!agent.state.has_room, "once");
}

#[test]
fn pods_follow_the_choices_of_the_edition_in_force() {
    const WHY: &str = "no room";
    let chooses = |name: &str, underlay: &str| {
        let choice = crate::choice::Choice { underlay: Some(underlay.to_owned()), mode: None };
        Pod { choice, ..pod(name) }
    };
    let spec = |admitted: &str| {
        let peers = json!({ "matchLabels": { "app": "db" } });
        json!({
            "ports": [{ "pods": {}, "pods_may_choose": { "underlays": [admitted] } }],
            "rules": [{ "name": "r", "peer_pods": peers, "underlay": "reno" }],
        })
    };
    let mut agent = TestAgent::begin();
    for pod in ["web", "job"] {
        agent.paper.sheet().devices.insert(pod.to_owned(), format!("{pod}0"));
    }
    let pods = [chooses("web", "dctcp"), chooses("job", "cubic")];
    agent.handle_all(&[policy("base", 1, spec("dctcp"))], &pods);
    agent.handle(peers(2));
    let chosen = |agent: &TestAgent| {
        let status = agent.status();
        let refused = &agent.state.edition.as_ref().expect("an edition").refused_choices;
        let refused: Vec<String> = refused.iter().map(|it| it.pod.clone()).collect();
        let counted = (status.pods_with_choice, status.pods_with_refused_choice);
        assert_eq!(counted.1, refused.len() as u64);
        (counted.0, refused)
    };
    let in_force = (1, vec!["job".to_owned()]);
    assert_eq!(chosen(&agent), in_force, "{:?}", agent.status());

    // The host refuses the one that admits what the other pod chooses.
    agent.paper.sheet().refuses = Some(WHY.to_owned());
    let next = policy("base", 2, spec("cubic"));
    agent.handle(vec![Change::Policies(News::Is("base".to_owned(), next))]);
    assert_eq!((agent.status().policies[0].in_force, chosen(&agent)), (1, in_force.clone()));

    agent.paper.sheet().refuses = None;
    let before = policy("base", 1, spec("dctcp"));
    agent.handle(vec![Change::Policies(News::Is("base".to_owned(), before))]);
    agent.handle(peers(TOO_MANY));
    assert!(agent.status().problem.contains("exceed this node's limits"), "{:?}", agent.status());
    assert_eq!(chosen(&agent), in_force);
}
