//! The node that holds the lease writes the policies' statuses.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::Config;
use serde_json::json;
use tokio::sync::mpsc;

use crate::budget::Budget;
use crate::lease::{Held, Lease, RENEWED_EVERY};
use crate::pace::Pace;
use crate::pause::{spread, within_limit};
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
    Node(News<NodeStatus>),
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
    let (tell, mut changes) = mpsc::unbounded_channel();
    let _watches = (nodes(client, troubles, tell.clone()), policies(client, troubles, tell));
    let mut nodes = Store::default();
    let mut policies = Store::default();
    let mut written = HashMap::new();
    let mut pace = Pace::default();
    let mut renewed = Instant::now();
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            Some(change) = changes.recv() => {
                match change {
                    Change::Node(news) => {
                        let has_counted_alone = has_counted_alone(&nodes, &news);
                        match nodes.hear(news) {
                            true if has_counted_alone => pace.hear_counts(),
                            true => pace.hear_news(Instant::now()),
                            false => {}
                        }
                    }
                    Change::Policy(news) => {
                        if policies.hear(news) {
                            pace.hear_news(Instant::now());
                        }
                    }
                }
                continue;
            }
            _ = look.tick() => {}
        }
        if renewed.elapsed() >= RENEWED_EVERY {
            renewed = Instant::now();
            if let Held::ByAnother(again) = lease.hold(Some(nodes.objects().len())).await {
                return again;
            }
        }
        let is_due = pace.is_due(nodes.objects().len(), Instant::now());
        if is_due && nodes.is_complete() && policies.is_complete() {
            let is_whole =
                write(client, policies.objects(), nodes.objects(), &mut written, troubles).await;
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

/// Returns whether all that had to be written was.
async fn write(
    client: &Client,
    policies: &BTreeMap<String, PolicyObject>,
    nodes: &BTreeMap<String, NodeStatus>,
    written: &mut HashMap<String, PolicyStatus>,
    troubles: &Troubles,
) -> bool {
    const DOING: &str = "write the statuses of vccpolicies";
    let api: Api<PolicyResource> = Api::all_with(client.clone(), &resource::policies());
    written.retain(|name, _| policies.contains_key(name));
    let mut all = true;
    for policy in policies.values() {
        let status = of_policy(policy, nodes);
        if written.get(&policy.name) == Some(&status) {
            continue;
        }
        let dated = PolicyStatus { updated: now(), ..status.clone() };
        let patch = Patch::Merge(json!({ "status": dated }));
        let params = PatchParams::default();
        match within_limit(api.patch_status(&policy.name, &params, &patch)).await {
            Ok(_) => {
                written.insert(policy.name.clone(), status);
                troubles.works(DOING);
            }
            // Deleted a moment ago.
            Err(kube::Error::Api(answer)) if answer.code == 404 => {}
            Err(error) => {
                troubles.failed(DOING, &error);
                all = false;
            }
        }
    }
    all
}

fn nodes(
    client: &Client,
    troubles: &Troubles,
    tell: mpsc::UnboundedSender<Change>,
) -> crate::watch::Watch {
    let read = |object: NodeResource| {
        // A node whose status is not readable says nothing, and hinders no other.
        let status = object.status.and_then(|it| serde_json::from_value(it).ok());
        // The time of a status is of no interest, and would make each look like news.
        let status: NodeStatus =
            NodeStatus { updated: String::new(), ..status.unwrap_or_default() };
        (object.metadata.name.unwrap_or_default(), status)
    };
    let tell = move |news| tell.send(Change::Node(news)).is_ok();
    watch(client, &resource::vcc_nodes(), Config::default(), (troubles, ""), read, tell)
}

fn policies(
    client: &Client,
    troubles: &Troubles,
    tell: mpsc::UnboundedSender<Change>,
) -> crate::watch::Watch {
    // The rest of a spec is of no interest here, and would be held twice.
    let rollout_alone = |mut policy: PolicyObject| {
        let rollout = policy.spec.get(ROLLOUT).cloned().unwrap_or_default();
        policy.spec = Arc::new(json!({ ROLLOUT: rollout }));
        policy
    };
    let tell = move |news| {
        let news = match news {
            News::Listed(name, policy) => News::Listed(name, rollout_alone(policy)),
            News::Is(name, policy) => News::Is(name, rollout_alone(policy)),
            news => news,
        };
        tell.send(Change::Policy(news)).is_ok()
    };
    watch_policies(client, (troubles, " for the summary"), tell)
}

/// Watches policies within the budget of a node.
pub fn watch_policies(
    client: &Client,
    troubles: (&Troubles, &str),
    tell: impl Fn(News<PolicyObject>) -> bool + Send + 'static,
) -> crate::watch::Watch {
    /// An object may have a megabyte, and a page is in memory as a whole.
    const PAGE: u32 = 10;
    let mut budget = Budget::default();
    let read = |object: PolicyResource| {
        let object = PolicyObject::from(object);
        (object.name.clone(), object)
    };
    let tell = move |news: News<PolicyObject>| tell(news);
    let config = Config::default().page_size(PAGE);
    let mut admit = move |news| match news {
        News::Begin => {
            budget.begin();
            News::Begin
        }
        News::Listed(name, mut object) => {
            budget.admit(&mut object);
            News::Listed(name, object)
        }
        News::Is(name, mut object) => {
            budget.admit(&mut object);
            News::Is(name, object)
        }
        News::Gone(name) => {
            budget.remove(&name);
            News::Gone(name)
        }
        News::End => News::End,
    };
    watch(client, &resource::policies(), config, troubles, read, move |news| tell(admit(news)))
}
