//! The state of a node's agent: it turns changes into an edition, which the host puts in force or refuses.

mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch as latest;

use super::watches::Watches;
use super::{Beginning, Change};
use crate::activity::{Activities, EVERY};
use crate::budget::Budget;
use crate::choice::RefusedChoice;
use crate::cluster_state::{ClusterState, has_device};
use crate::edition::{Edition, Policies};
use crate::host::Host;
use crate::memory::{Memory, Remembered};
use crate::pause::share_of;
use crate::resource::{Labels, Pod, PolicyObject};
use crate::search::Search;
use crate::status::NodeStatus;
use crate::store::{News, Store};
use crate::trouble::Troubles;

/// A list of all policies may have megabytes, and many may change at a time.
const LIST_AGAIN: Duration = Duration::from_secs(10);
/// How long an edition that the host refused is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(10);

const POLICIES: &str = "vccpolicies";

pub(super) struct State<H> {
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
    /// The objects that the API server must list before the next edition, and since when they are missing.
    awaited: Option<(&'static str, Instant)>,
    /// Selectors of peers have not been heard of.
    unheard_since: Option<Instant>,
    /// Only news of them make a difference: what does not depend on them is in force.
    are_unheard_given_up: bool,
    /// The edition in force is not stored yet.
    unkept_since: Option<Instant>,
    own: Store<Pod>,
    namespaces: Store<Labels>,
    peers: BTreeMap<Arc<str>, Store<Pod>>,
    cluster: ClusterState,
    search: Search,
    activities: Activities,
    watches: Watches,
    status: latest::Sender<NodeStatus>,
    /// Of what pods have chosen.
    refusals: latest::Sender<Vec<RefusedChoice>>,
    troubles: Troubles,
    /// Of the agent itself.
    trouble: Option<String>,
    /// The text that the host refused last, when, and why.
    failed: Option<(String, Instant, String)>,
}

impl<H: Host> State<H> {
    pub(super) fn new(
        node: String,
        host: H,
        memory: Memory,
        begin: Beginning,
        watches: Watches,
        (status, refusals): (latest::Sender<NodeStatus>, latest::Sender<Vec<RefusedChoice>>),
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
            cluster: ClusterState::default(),
            search: Search::new(began),
            activities: Activities::new(share_of(EVERY)),
            watches,
            status,
            refusals,
            troubles,
            trouble: begin.trouble,
            failed: None,
        }
    }

    /// Returns whether it may make a difference.
    pub(super) fn handle(&mut self, change: Change) -> bool {
        match change {
            Change::Policies(news) => {
                self.has_room |= self.makes_room(&news);
                let has_changed = self.policy_objects.apply(news);
                self.are_policies_unread |= has_changed;
                has_changed
            }
            Change::OwnPods(news) => {
                let has_changed = self.own.apply(news);
                if has_changed {
                    self.search.begin_anew(Instant::now());
                }
                has_changed
            }
            Change::Namespaces(news) => self.namespaces.apply(news),
            Change::Peers(selector, news) => {
                self.peers.get_mut(&selector).is_some_and(|peers| peers.apply(news))
            }
            Change::Devices => {
                self.search.begin_anew(Instant::now());
                true
            }
        }
    }

    /// Whether there may be room afterwards for a policy that was too much. An event may also come from a
    /// written status, which leaves no more room than before.
    fn makes_room(&self, news: &News<PolicyObject>) -> bool {
        let frees = |before: &PolicyObject, new: Option<&PolicyObject>| {
            let has_less = |new: &PolicyObject| new.is_omitted || new.spec != before.spec;
            !before.is_omitted && new.is_none_or(has_less)
        };
        let objects = self.policy_objects.objects();
        let frees_its = |name, new| objects.get(name).is_some_and(|before| frees(before, new));
        // In a list each has kept its place up to now, even one that is not there any more.
        let is_freed =
            |before: &PolicyObject| frees(before, self.policy_objects.coming().get(&before.name));
        match news {
            News::Gone(name) => frees_its(name, None),
            News::Is(name, new) => frees_its(name, Some(new)),
            News::End if self.policy_objects.is_complete() => objects.values().any(is_freed),
            News::End => self.policies.in_force().any(is_freed),
            News::Begin | News::Listed(..) => false,
        }
    }

    /// Asks again for the policies that were too much, if there is room.
    pub(super) fn use_room(&mut self) {
        let has_omitted = || self.policy_objects.objects().values().any(|it| it.is_omitted);
        if self.has_room && self.listed.elapsed() >= LIST_AGAIN {
            if has_omitted() {
                let objects = self.policy_objects.objects().values();
                let budget = Budget::reserving(objects.filter(|it| !it.is_omitted));
                self.watches.list_policies_again(budget);
                self.listed = Instant::now();
            }
            self.has_room = false;
        }
    }

    /// Whether something is due that has no event.
    pub(super) fn is_waiting(&mut self, now: Instant) -> bool {
        self.search.is_due(now)
            || (self.unheard_since.is_some() && !self.are_unheard_given_up)
            || self.failed.as_ref().is_some_and(|(_, at, _)| at.elapsed() >= TRY_AGAIN)
            || self.unkept_since.is_some_and(|since| since.elapsed() >= TRY_AGAIN)
    }

    pub(super) fn step(&mut self) {
        let Some(what) = self.prepare() else {
            self.awaited = None;
            self.look_at_scene();
            let edition = self.policies.compile(&self.node, &self.cluster);
            let missing = edition.without_device(&self.node, &self.cluster);
            self.search.looked(missing.into_iter(), Instant::now());
            self.put(edition);
            return;
        };
        if self.awaited.is_none_or(|(before, _)| before != what) {
            self.awaited = Some((what, Instant::now()));
        }
    }

    /// Returns the objects that the API server must list first, if any.
    fn prepare(&mut self) -> Option<&'static str> {
        if !self.policy_objects.is_complete() {
            return Some(POLICIES);
        }
        if !self.own.is_complete() {
            return Some("this node's pods");
        }
        if std::mem::take(&mut self.are_policies_unread) {
            self.policies.set_objects(self.policy_objects.objects());
        }
        let needs = self.policies.needs(&self.node);
        self.watches.follow(&needs, &mut self.peers);
        self.cluster.are_namespaces_missing = needs.namespaces && !self.namespaces.is_complete();
        let missing_peers = self.peers.iter().filter(|(_, peers)| !peers.is_complete());
        self.cluster.missing_peers =
            missing_peers.map(|(selector, _)| selector.to_string()).collect();
        self.selected()
    }

    /// What selectors mean is to be heard of first: for ever, where a policy in force depends on it; else
    /// for a moment, because the API server may refuse it.
    fn selected(&mut self) -> Option<&'static str> {
        if self.cluster.is_complete() {
            self.unheard_since = None;
            return None;
        }
        let since = *self.unheard_since.get_or_insert_with(Instant::now);
        let in_force = self.policies.needs_in_force(&self.node);
        self.are_unheard_given_up = since.elapsed() >= TRY_AGAIN;
        let is_early = !self.are_unheard_given_up;
        if self.cluster.are_namespaces_missing && (is_early || in_force.namespaces) {
            return Some("namespaces");
        }
        let is_needed = is_early || !in_force.peers.is_disjoint(&self.cluster.missing_peers);
        is_needed.then_some("the pods that rules name as peers")
    }

    fn look_at_scene(&mut self) {
        self.cluster.namespaces.clone_from(self.namespaces.objects());
        self.cluster.own.clone_from(self.own.objects());
        self.cluster.peers = self.peers.values().flat_map(|it| it.objects().clone()).collect();
        let pods = self.cluster.own.values().filter(|pod| has_device(pod));
        self.cluster.devices = self.host.devices(&pods.collect::<Vec<&Pod>>());
    }

    fn put(&mut self, mut edition: Edition) {
        if let (Err(why), None) = (&edition.text, &self.text) {
            // The host lacks the edition that the agent remembers, and keeps its present one.
            edition.is_refused(&why.clone(), None);
            self.failed = None;
            self.edition = Some(edition);
            return;
        }
        let in_force = self.text.as_ref();
        let wanted = edition.text.as_ref().ok();
        let is_there = wanted.is_none() || wanted == in_force;
        // A refusal remains a problem until the host is given another edition, even the one in force.
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
                // The previous edition stays in force.
                edition.is_refused(&why, self.edition.as_ref());
                self.edition = Some(edition);
            }
        }
    }

    fn is_in_force(&mut self, mut edition: Edition) {
        if edition.text.is_err() {
            edition.keep_choices(self.edition.as_ref());
        }
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
}

#[cfg(test)]
mod tests;
