//! The node that holds the lease writes the policies' statuses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::Config;
use serde_json::json;
use tokio::sync::mpsc;

use crate::budget::Budget;
use crate::last_reports::LastReports;
use crate::lease::{Held, Lease, RENEWED_EVERY};
use crate::pace::Pace;
use crate::pause::{spread, within};
use crate::resource::{self, NodeResource, PolicyObject, PolicyResource};
use crate::spec::ROLLOUT;
use crate::status::{NodeStatus, PolicyStatus};
use crate::store::{News, Store};
use crate::summary::of_policy;
use crate::trouble::Troubles;
use crate::watch::watch;
use crate::writer::now;

/// Nodes start together; they need not ask together.
const FIRST_LOOK: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_secs(1);

enum Change {
    Node(Box<News<NodeStatus>>),
    Policy(News<PolicyObject>),
}

/// Never returns.
pub async fn run(client: Client, namespace: String, node: String, troubles: Troubles) {
    let mut lease = Lease::new(&client, &namespace, &node, &troubles);
    tokio::time::sleep(spread(FIRST_LOOK)).await;
    loop {
        match lease.hold(None).await {
            Held::ByAnother(again) => tokio::time::sleep(again).await,
            Held::ByUs => tokio::time::sleep(sum_up(&client, &mut lease, &troubles).await).await,
        }
    }
}

/// Sums up for as long as we hold the lease; returns when to look at it again.
async fn sum_up(client: &Client, lease: &mut Lease, troubles: &Troubles) -> Duration {
    let (send, mut changes) = mpsc::unbounded_channel();
    let _watches = (nodes(client, troubles, send.clone()), policies(client, troubles, send));
    let mut nodes = Store::default();
    let mut reports = LastReports::default();
    let mut silent = BTreeSet::new();
    let mut policies = Store::default();
    let mut written = Written::default();
    let api: Api<PolicyResource> = Api::all_with(client.clone(), &resource::policies());
    let mut pace = Pace::default();
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            Some(change) = changes.recv() => {
                match change {
                    Change::Node(news) => {
                        let news = *news;
                        let is_list = matches!(news, News::End);
                        let news = reports.note(news, Instant::now());
                        let has_counted_alone = has_counted_alone(&nodes, &news);
                        match nodes.apply(news) {
                            true if has_counted_alone => pace.hear_counts(),
                            true => pace.hear_news(Instant::now()),
                            false => {}
                        }
                        if is_list {
                            reports.keep(nodes.objects());
                        }
                    }
                    Change::Policy(news) => {
                        if policies.apply(news) {
                            pace.hear_news(Instant::now());
                        }
                    }
                }
                continue;
            }
            _ = look.tick() => {}
        }
        let now = Instant::now();
        let are_silent = reports.silent(now);
        if are_silent != silent {
            silent = are_silent;
            pace.hear_news(now);
        }
        if lease.is_due() {
            let known = nodes.is_complete().then(|| nodes.objects().len());
            if let Held::ByAnother(again) = lease.hold(known).await {
                return again;
            }
        }
        let is_due = pace.is_due(nodes.objects().len(), Instant::now());
        if is_due && nodes.is_complete() && policies.is_complete() {
            let sums = |policy: &PolicyObject| of_policy(policy, nodes.objects(), &silent);
            let put = |policy, status| put(api.clone(), troubles.clone(), policy, status);
            let has_to_stop = || lease.is_due();
            let is_whole = written.write(policies.objects(), sums, has_to_stop, put).await;
            pace.wrote(is_whole, Instant::now());
        }
    }
}

/// Whether a node makes the same of the policies as before.
fn has_counted_alone(nodes: &Store<NodeStatus>, news: &News<NodeStatus>) -> bool {
    let News::Is(name, status) = news else { return false };
    let before = nodes.objects().get(name);
    before.is_some_and(|it| it.without_counts().policies == status.without_counts().policies)
}

/// What the policies' statuses say.
#[derive(Default)]
struct Written {
    /// As they were written last, by policy, and which policy of that name it was.
    statuses: HashMap<String, (String, PolicyStatus)>,
    /// The policy to begin with.
    first: String,
}

impl Written {
    /// Returns whether all that had to be written was: however slow the server is, the lease is renewed
    /// between, and then what is left comes first. `put` returns whether a status is there.
    async fn write<F: Future<Output = bool>>(
        &mut self,
        policies: &BTreeMap<String, PolicyObject>,
        sums: impl Fn(&PolicyObject) -> PolicyStatus,
        has_to_stop: impl Fn() -> bool,
        put: impl Fn(String, PolicyStatus) -> F,
    ) -> bool {
        self.statuses.retain(|name, _| policies.contains_key(name));
        let first = std::mem::take(&mut self.first);
        let (mut all, mut is_first) = (true, true);
        for policy in from(&first, policies) {
            let known = (policy.uid.clone(), sums(policy));
            if self.statuses.get(&policy.name) == Some(&known) {
                continue;
            }
            if !std::mem::take(&mut is_first) && has_to_stop() {
                self.first.clone_from(&policy.name);
                return false;
            }
            if put(policy.name.clone(), known.1.clone()).await {
                self.statuses.insert(policy.name.clone(), known);
            } else {
                all = false;
            }
        }
        all
    }
}

async fn put(
    api: Api<PolicyResource>,
    troubles: Troubles,
    policy: String,
    status: PolicyStatus,
) -> bool {
    const DOING: &str = "write the statuses of vccpolicies";
    let dated = PolicyStatus { updated: now(), ..status };
    let patch = Patch::Merge(json!({ "status": dated }));
    let params = PatchParams::default();
    // The lease lasts longer than until a renewal is due and this.
    match within(RENEWED_EVERY, api.patch_status(&policy, &params, &patch)).await {
        Ok(_) => {
            troubles.works(DOING);
            true
        }
        // Deleted a moment ago: the watch is about to say so.
        Err(kube::Error::Api(answer)) if answer.code == 404 => true,
        Err(error) => {
            troubles.failed(DOING, &error);
            false
        }
    }
}

/// All policies, and first those that do not come before `name`.
fn from<'a, T>(name: &str, policies: &'a BTreeMap<String, T>) -> impl Iterator<Item = &'a T> {
    let (before, behind): (Vec<_>, Vec<_>) =
        policies.iter().partition(|(it, _)| *it.as_str() < *name);
    behind.into_iter().chain(before).map(|(_, policy)| policy)
}

fn nodes(
    client: &Client,
    troubles: &Troubles,
    send: mpsc::UnboundedSender<Change>,
) -> crate::watch::Watch {
    let read = |object: NodeResource| {
        // A node whose status is not readable says nothing, and hinders no other.
        let status = object.status.and_then(|it| serde_json::from_value(it).ok());
        (object.metadata.name.unwrap_or_default(), status.unwrap_or_default())
    };
    let send = move |news| send.send(Change::Node(Box::new(news))).is_ok();
    watch(client, &resource::vcc_nodes(), Config::default(), (troubles, ""), read, send)
}

fn policies(
    client: &Client,
    troubles: &Troubles,
    send: mpsc::UnboundedSender<Change>,
) -> crate::watch::Watch {
    let send = move |news| send.send(Change::Policy(news)).is_ok();
    let within = (Budget::of_summaries(), rollout_alone as fn(PolicyObject) -> PolicyObject);
    watch_policies(client, (troubles, " for the summary"), within, send)
}

/// The rest of a spec is of no interest to a summary, and would be held twice.
fn rollout_alone(mut policy: PolicyObject) -> PolicyObject {
    let rollout = policy.spec.get(ROLLOUT).cloned().unwrap_or_default();
    policy.spec = Arc::new(json!({ ROLLOUT: rollout }));
    policy
}

/// Watches policies, and keeps that part of each that `part` leaves, within a budget.
pub fn watch_policies(
    client: &Client,
    troubles: (&Troubles, &str),
    (mut budget, part): (Budget, fn(PolicyObject) -> PolicyObject),
    send: impl Fn(News<PolicyObject>) -> bool + Send + 'static,
) -> crate::watch::Watch {
    /// An object may have a megabyte, and a page is in memory as a whole.
    const PAGE: u32 = 10;
    let read = |object: PolicyResource| {
        let object = PolicyObject::from(object);
        (object.name.clone(), object)
    };
    let config = Config::default().page_size(PAGE);
    let send = move |news| send(admitted(&mut budget, part, news));
    watch(client, &resource::policies(), config, troubles, read, send)
}

/// What is not kept takes no room.
fn admitted(
    budget: &mut Budget,
    part: fn(PolicyObject) -> PolicyObject,
    news: News<PolicyObject>,
) -> News<PolicyObject> {
    budget.apply(news.map(|_, object| part(object)))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn policies(names: &[&str]) -> BTreeMap<String, PolicyObject> {
        let policy = |name: &&str| {
            let object = PolicyObject {
                name: (*name).to_owned(),
                uid: String::new(),
                generation: 1,
                created: 0,
                spec: json!({}).into(),
                is_omitted: false,
            };
            ((*name).to_owned(), object)
        };
        names.iter().map(policy).collect()
    }

    #[test]
    fn a_lease_that_is_due_ends_a_round_and_what_was_left_comes_first() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut written = Written::default();
        let all = ["a", "b", "c", "d", "e"];
        let mut round = |names: &[&str], nodes: u64, at_once: usize| {
            let put = RefCell::new(String::new());
            let sums = |_: &PolicyObject| PolicyStatus { nodes, ..PolicyStatus::default() };
            let is_due = || put.borrow().len() >= at_once;
            let put_one = |policy: String, _| {
                put.borrow_mut().push_str(&policy);
                std::future::ready(policy != "e" || at_once > 5)
            };
            let policies = policies(names);
            let is_whole = runtime.block_on(written.write(&policies, sums, is_due, put_one));
            (put.take(), is_whole)
        };
        assert_eq!(round(&all, 1, 2), ("ab".into(), false));
        assert_eq!(round(&all, 1, 2), ("cd".into(), false));
        assert_eq!(round(&all, 1, 2), ("e".into(), false), "refused");
        assert_eq!(round(&all, 1, 9), ("e".into(), true));
        assert_eq!(round(&all, 1, 9), ("".into(), true), "nothing new");
        // Each round has something new for all of them, and still the last ones get their turn.
        assert_eq!(round(&all, 2, 2), ("ab".into(), false));
        assert_eq!(round(&["a", "b", "d", "e"], 3, 0), ("d".into(), false), "deleted meanwhile");
        assert_eq!(round(&all, 4, 9), ("eabcd".into(), true));
    }

    #[test]
    fn a_policy_counts_with_what_a_summary_keeps_of_it() {
        let mut budget = Budget::of_summaries();
        let large = |number: usize| {
            let name = "x".repeat(1 << 20);
            let spec = json!({ "rollout": { "canary": "10%" }, "rules": [{ "name": name }] });
            let mut policies = policies(&[&format!("p{number}")]);
            let (_, policy) = policies.pop_first().expect("a policy");
            PolicyObject { spec: spec.into(), ..policy }
        };
        let listed = |number| News::Listed(format!("p{number}"), large(number));
        admitted(&mut budget, rollout_alone, News::Begin);
        // Nodes read no more than some of these, but not all nodes need have the same.
        for number in 0..crate::budget::MOST_POLICIES + 5 {
            let news = admitted(&mut budget, rollout_alone, listed(number));
            let News::Listed(_, policy) = news else { unreachable!() };
            assert!(!policy.is_omitted, "{number}");
            assert_eq!(*policy.spec, json!({ "rollout": { "canary": "10%" } }));
        }
    }

    #[test]
    fn a_policy_that_was_made_anew_gets_a_status_of_its_own() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (mut written, puts) = (Written::default(), Cell::new(0));
        let mut round = |uid: &str| {
            let mut policies = policies(&["a"]);
            policies.get_mut("a").expect("a policy").uid = uid.to_owned();
            let put = |_, _| {
                puts.set(puts.get() + 1);
                std::future::ready(true)
            };
            let sums = |_: &PolicyObject| PolicyStatus::default();
            assert!(runtime.block_on(written.write(&policies, sums, || false, put)));
            puts.get()
        };
        assert_eq!([round("u1"), round("u1"), round("u2")], [1, 1, 2]);
    }
}
