//! An edition: what one node has in force of all policies.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use serde_json::Value;

use crate::check::{Reading, asked_tenants, tenants};
use crate::choice::RefusedChoice;
use crate::choose::{LastGood, Standing, has_changed};
use crate::cluster_state::{ClusterState, Needs};
use crate::fit::fit;
use crate::render::Rendered;
use crate::resource::{Pod, PolicyObject};
use crate::selector::PodSelector;
use crate::spec::{Presence, Rule};
use crate::status::{ABSENT, AS_WRITTEN, IN_SHADOW, PolicyOnNode, REFUSED};

/// The policies of the API server, read; and those that were in force last.
#[derive(Default)]
pub struct Policies {
    newest: Vec<Arc<Reading>>,
    last_good: LastGood,
}

/// A policy file for the node, and what became of each policy.
#[derive(Clone, Debug)]
pub struct Edition {
    /// Else why there is none: the node has changed so that its policies exceed its limits
    /// now, and keeps the edition in force.
    pub text: Result<String, String>,
    /// Equal where the same generations of the same policies are in force.
    pub id: String,
    pub policies: Vec<PolicyOnNode>,
    /// Those beyond the limit of a node, of which no generation is in force: there may be thousands.
    pub not_read: Vec<String>,
    /// Pods whose choices are followed.
    pub followed_choices: u64,
    pub refused_choices: Vec<RefusedChoice>,
    in_force: LastGood,
}

impl Policies {
    /// Reads the policies that there are. Those of them that have not changed are not read again, unless
    /// they name a tenant that was or is missing: the message about it depends on the others.
    pub fn set_objects(&mut self, objects: &BTreeMap<String, PolicyObject>) {
        let known_objects: Vec<&PolicyObject> = objects.values().map(|it| self.known(it)).collect();
        let all: BTreeSet<String> =
            known_objects.iter().flat_map(|object| tenants(&object.spec)).collect();
        let before: BTreeSet<String> =
            self.newest.iter().flat_map(|reading| tenants(&reading.object.spec)).collect();
        let is_the_same = |spec: &Value| {
            all == before || asked_tenants(spec).all(|it| all.contains(it) && before.contains(it))
        };
        let known: BTreeMap<&str, &Arc<Reading>> =
            self.newest.iter().map(|it| (it.object.name.as_str(), it)).collect();
        let read = |object: &&PolicyObject| match known.get(object.name.as_str()) {
            Some(reading) if reading.object == **object && is_the_same(&object.spec) => {
                Arc::clone(reading)
            }
            _ => Arc::new(Reading::from_object(object, &all)),
        };
        self.newest = known_objects.iter().map(read).collect();
        // A deleted policy is neither in force nor remembered.
        self.last_good.retain(|name, _| objects.contains_key(name));
    }

    /// The object itself; of one that was too much, the same generation that is in force, which is kept.
    fn known<'a>(&'a self, object: &'a PolicyObject) -> &'a PolicyObject {
        let in_force = self.last_good.get(&object.name).map(|reading| &reading.object);
        let is_same =
            |it: &&PolicyObject| it.uid == object.uid && it.generation == object.generation;
        in_force.filter(|it| object.is_omitted && is_same(it)).unwrap_or(object)
    }

    /// The policies that an earlier process had in force.
    pub fn remember(&mut self, objects: Vec<PolicyObject>) {
        let all: BTreeSet<String> = objects.iter().flat_map(|it| tenants(&it.spec)).collect();
        let readings = objects.iter().map(|object| Arc::new(Reading::from_object(object, &all)));
        self.last_good = readings.map(|reading| (reading.object.name.clone(), reading)).collect();
    }

    /// The objects to watch for this node, whether old or new generations are in force.
    pub fn needs(&self, node: &str) -> Needs {
        let fit = self.newest.iter().filter(|it| it.is_fit());
        needs_of(fit.chain(self.last_good.values()), node)
    }

    /// What an edition of this node depends on that is in force now.
    pub fn needs_in_force(&self, node: &str) -> Needs {
        needs_of(self.last_good.values(), node)
    }

    /// The edition that is in force by memory, as long as nothing is heard.
    pub fn remembered(&self, node: &str, text: &str) -> Edition {
        let standing = |reading: &Arc<Reading>| {
            let (newest, chosen) = (Arc::clone(reading), Some(Arc::clone(reading)));
            Standing { newest, chosen, refused: Vec::new() }
        };
        let standings: Vec<Standing> = self.last_good.values().map(standing).collect();
        self.edition(Ok(text.to_owned()), &standings, node)
    }

    /// The edition of a node. If the policies are more than a node can have, those that have changed
    /// stay as they were, or out.
    pub fn compile(&self, node: &str, cluster: &ClusterState) -> Edition {
        let newest: Vec<Arc<Reading>> =
            self.newest.iter().map(|it| self.unless_peers_missing(it, cluster)).collect();
        let (standings, rendered) = fit(&newest, &self.last_good, node, cluster);
        let (text, followed, refused) = match rendered {
            Ok(Rendered { document, followed, refused }) => {
                (Ok(document.into_text()), followed, refused)
            }
            Err(why) => (Err(why), 0, Vec::new()),
        };
        let edition = self.edition(text, &standings, node);
        Edition { followed_choices: followed, refused_choices: refused, ..edition }
    }

    /// A policy that is not in force is not to be without the pods that it means.
    fn unless_peers_missing(&self, reading: &Arc<Reading>, cluster: &ClusterState) -> Arc<Reading> {
        let missing_peers = |rule: &Rule| {
            rule.peers
                .as_ref()
                .is_some_and(|peers| cluster.missing_peers.contains(&peers.of_pods()))
        };
        if cluster.is_complete() || !reading.is_fit() || !has_changed(&self.last_good, reading) {
            return Arc::clone(reading);
        }
        let error = match reading.spec.rules.iter().position(missing_peers) {
            Some(index) => {
                format!(
                    "spec.rules[{index}].peer_pods: the API server has not listed these pods yet"
                )
            }
            None if cluster.are_namespaces_missing
                && Needs::from_readings(iter::once(&**reading)).namespaces =>
            {
                "spec: the API server has not listed the selected namespaces yet".to_owned()
            }
            None => return Arc::clone(reading),
        };
        Arc::new(Reading { errors: vec![error], ..(**reading).clone() })
    }

    fn edition(&self, text: Result<String, String>, standings: &[Standing], node: &str) -> Edition {
        let chosen = || standings.iter().filter_map(|standing| standing.chosen.as_ref());
        let in_force: LastGood = match &text {
            Ok(_) => chosen().map(|it| (it.object.name.clone(), Arc::clone(it))).collect(),
            Err(_) => self.last_good.clone(),
        };
        let mut hasher = crc32fast::Hasher::new();
        for reading in in_force.values() {
            let PolicyObject { name, uid, generation, .. } = &reading.object;
            hasher.update(format!("{name} {uid} {generation}\n").as_bytes());
        }
        let (mut policies, mut not_read) = (Vec::new(), Vec::new());
        for standing in standings {
            let object = &standing.newest.object;
            match in_force.get(&object.name) {
                None if object.is_omitted => not_read.push(object.name.clone()),
                in_force => policies.push(on_node(standing, in_force, node)),
            }
        }
        let id = format!("{:08x}", hasher.finalize());
        let (followed_choices, refused_choices) = (0, Vec::new());
        Edition { text, id, policies, not_read, followed_choices, refused_choices, in_force }
    }

    /// The edition is in force. Returns whether other policies are than before.
    pub fn is_in_force(&mut self, edition: &Edition) -> bool {
        let objects = |it: &LastGood| it.values().map(|it| it.object.clone()).collect::<Vec<_>>();
        let has_changed = objects(&self.last_good) != objects(&edition.in_force);
        self.last_good.clone_from(&edition.in_force);
        has_changed
    }

    /// What an earlier or later process has to remember.
    pub fn in_force(&self) -> impl Iterator<Item = &PolicyObject> {
        self.last_good.values().map(|reading| &reading.object)
    }
}

fn needs_of<'a>(readings: impl Iterator<Item = &'a Arc<Reading>>, node: &str) -> Needs {
    let all = readings.map(Arc::as_ref);
    Needs::from_readings(all.filter(|it| is_present(it, node)))
}

fn is_present(reading: &Reading, node: &str) -> bool {
    reading.spec.rollout.presence(node) != Presence::Absent
}

fn on_node(standing: &Standing, in_force: Option<&Arc<Reading>>, node: &str) -> PolicyOnNode {
    let mode = match in_force.map(|it| it.spec.rollout.presence(node)) {
        None => REFUSED,
        Some(Presence::Absent) => ABSENT,
        Some(Presence::Shadow) => IN_SHADOW,
        Some(Presence::AsWritten) => AS_WRITTEN,
    };
    let newest = &standing.newest;
    let warnings = in_force.map_or(&newest.warnings, |in_force| &in_force.warnings);
    PolicyOnNode {
        name: newest.object.name.clone(),
        generation: newest.object.generation,
        in_force: in_force.map_or(0, |in_force| in_force.object.generation),
        mode: mode.to_owned(),
        messages: standing.refused.iter().chain(warnings).cloned().collect(),
    }
}

impl Edition {
    /// The host refused it: the previous edition stays in force.
    pub fn is_refused(&mut self, why: &str, before: Option<&Edition>) {
        let none = LastGood::new();
        let in_force = before.map_or(&none, |before| &before.in_force);
        let modes: BTreeMap<&str, &str> = before
            .iter()
            .flat_map(|before| &before.policies)
            .map(|it| (it.name.as_str(), it.mode.as_str()))
            .collect();
        for policy in &mut self.policies {
            let was = in_force.get(&policy.name).map_or(0, |it| it.object.generation);
            if was != policy.in_force {
                policy.messages.insert(0, format!("this node refused the edition: {why}"));
            }
            let mode = modes.get(policy.name.as_str()).filter(|_| was != 0);
            policy.mode = mode.copied().unwrap_or(REFUSED).to_owned();
            policy.in_force = was;
        }
        self.id = before.map_or_else(String::new, |before| before.id.clone());
        self.in_force.clone_from(in_force);
        self.keep_choices(before);
    }

    /// Pods have what they chose by the edition in force.
    pub fn keep_choices(&mut self, in_force: Option<&Edition>) {
        self.followed_choices = in_force.map_or(0, |it| it.followed_choices);
        self.refused_choices = in_force.map_or_else(Vec::new, |it| it.refused_choices.clone());
    }

    /// The node's pods that its policies select, and whose devices are not known.
    pub fn without_device<'a>(&self, node: &str, cluster: &'a ClusterState) -> Vec<&'a Pod> {
        let present = self.in_force.values().filter(|it| is_present(it, node));
        let ports = present.flat_map(|it| &it.spec.ports);
        let selectors: Vec<&PodSelector> = ports.filter_map(|port| port.pods.as_ref()).collect();
        let is_selected = |pod: &&Pod| selectors.iter().any(|it| cluster.selects(it, pod));
        cluster.without_device().filter(is_selected).collect()
    }
}

#[cfg(test)]
mod tests;
