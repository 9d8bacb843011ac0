//! The status of each policy, from those of all nodes.

use std::collections::{BTreeMap, BTreeSet};

use crate::activity::weighted_median;
use crate::budget::Budget;
use crate::document::Field;
use crate::last_reports::SILENT;
use crate::resource::PolicyObject;
use crate::spec::Spec;
use crate::status::{Activity, Group, NodeStatus, PolicyOnNode, PolicyStatus, REFUSED};

/// Nodes' statuses by name, and the silent nodes, whose statuses may be outdated; `updated` is left
/// empty.
pub fn of_policy(
    policy: &PolicyObject,
    nodes: &BTreeMap<String, NodeStatus>,
    silent: &BTreeSet<String>,
) -> PolicyStatus {
    let about = |status: &'_ NodeStatus| {
        let entry = status.policies.iter().find(|it| it.name == policy.name).cloned();
        // A node names one by one only those that it reads.
        entry.or_else(|| (status.policies_not_read > 0).then(|| not_read(policy)))
    };
    let status_on = |name: &String, status| {
        if silent.contains(name) { None } else { about(status) }
    };
    let reports: Vec<(&str, Option<PolicyOnNode>)> =
        nodes.iter().map(|(name, status)| (name.as_str(), status_on(name, status))).collect();
    let silent: Vec<&str> =
        nodes.keys().filter(|name| silent.contains(*name)).map(String::as_str).collect();
    let has = |it: &PolicyOnNode| it.in_force == policy.generation;
    let has_refused = |it: &PolicyOnNode| it.generation == policy.generation && !has(it);
    let reported = || reports.iter().filter_map(|(_, it)| it.as_ref());
    let (current, refused) =
        (reported().filter(|it| has(it)).count(), reported().filter(|it| has_refused(it)).count());
    let mut wrong = Vec::new();
    let share = match policy.is_omitted {
        true => None,
        false => Spec::read(&policy.spec, &Field::new(0, "spec"), &mut wrong).rollout.canary,
    };
    let group = |is_canary: bool| {
        share.map(|share| {
            let members = reports.iter().filter(|(node, _)| share.has(node) == is_canary);
            group(
                members
                    .map(|(node, it)| (it.as_ref(), nodes.get(*node).and_then(|it| it.activity))),
            )
        })
    };
    let message = || {
        // What keeps a node from having it matters more than a warning.
        let first = |wanted: fn(&PolicyOnNode, i64) -> bool| {
            reports.iter().find_map(|(node, it)| {
                let it = it.as_ref().filter(|it| wanted(it, policy.generation))?;
                Some(format!("{node}: {}", it.messages.first()?))
            })
        };
        let refusal =
            first(|it, generation| it.generation == generation && it.in_force != generation);
        // We may read fewer policies than the nodes do.
        let mut on_nodes = nodes.values().flat_map(|status| &status.policies);
        let is_in_force = on_nodes.any(|it| it.name == policy.name && it.in_force != 0);
        let not_read = || (policy.is_omitted && !is_in_force).then(Budget::refusal);
        refusal.or_else(|| first(|_, _| true)).or_else(not_read).or_else(|| silence(&silent))
    };
    PolicyStatus {
        observed_generation: policy.generation,
        nodes: nodes.len() as u64,
        current: current as u64,
        refused: refused as u64,
        silent: silent.len() as u64,
        everywhere: format!("{current}/{}", nodes.len()),
        message: message().unwrap_or_default(),
        canary: group(true),
        others: group(false),
        updated: String::new(),
    }
}

/// Of a policy that is beyond what a node reads.
fn not_read(policy: &PolicyObject) -> PolicyOnNode {
    PolicyOnNode {
        name: policy.name.clone(),
        generation: policy.generation,
        in_force: 0,
        mode: REFUSED.to_owned(),
        messages: vec![Budget::refusal()],
    }
}

fn silence(nodes: &[&str]) -> Option<String> {
    let minutes = SILENT.as_secs() / 60;
    let (first, others) = nodes.split_first()?;
    Some(match others.len() {
        0 => format!("{first}: no report for {minutes} minutes"),
        others => format!("{first} and {others} more: no report for {minutes} minutes"),
    })
}

/// Of each member, how it has the policy, if it is not silent, and what its connections did.
fn group<'a>(members: impl Iterator<Item = (Option<&'a PolicyOnNode>, Option<Activity>)>) -> Group {
    let members: Vec<_> = members.collect();
    let reported = || members.iter().filter_map(|(it, _)| *it);
    let activities: Vec<Activity> =
        members.iter().filter_map(|(it, activity)| activity.filter(|_| it.is_some())).collect();
    let sum = |of: fn(&Activity) -> u64| activities.iter().map(of).sum::<u64>();
    let (retransmissions, acked_bytes) = (sum(|it| it.retransmissions), sum(|it| it.acked_bytes));
    // Some nodes may still have another generation: the majority decides.
    let mut modes: BTreeMap<&str, usize> = BTreeMap::new();
    for it in reported().filter(|it| it.mode != REFUSED) {
        *modes.entry(&it.mode).or_default() += 1;
    }
    let mode = modes.into_iter().max_by_key(|(_, count)| *count).map_or(REFUSED, |(mode, _)| mode);
    Group {
        nodes: members.len() as u64,
        mode: mode.to_owned(),
        flows: sum(|it| it.flows),
        retransmissions,
        acked_bytes,
        retransmissions_per_gb: per_gb(retransmissions, acked_bytes),
        rtt: microseconds(weighted_median(activities.iter().map(|it| (it.rtt_us, it.flows)))),
    }
}

/// An empty text where nothing was acknowledged: then the quotient says nothing.
fn per_gb(retransmissions: u64, acked_bytes: u64) -> String {
    const GB: f64 = 1e9;
    if acked_bytes == 0 {
        return String::new();
    }
    let quotient = retransmissions as f64 * GB / acked_bytes as f64;
    if quotient < 10.0 { format!("{quotient:.1}") } else { format!("{quotient:.0}") }
}

fn microseconds(us: u64) -> String {
    match us {
        0 => String::new(),
        1..10_000 => format!("{us}us"),
        _ => format!("{:.1}ms", us as f64 / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::canary::Share;
    use crate::status::{ABSENT, AS_WRITTEN, IN_SHADOW};

    fn policy(generation: i64, rollout: serde_json::Value) -> PolicyObject {
        let (name, uid) = ("web".to_owned(), "u".to_owned());
        let spec = json!({ "rollout": rollout });
        PolicyObject { name, uid, generation, created: 0, spec: spec.into(), is_omitted: false }
    }

    fn node(generation: i64, in_force: i64, mode: &str, messages: &[&str]) -> NodeStatus {
        let policy = PolicyOnNode {
            name: "web".into(),
            generation,
            in_force,
            mode: mode.into(),
            messages: messages.iter().map(|it| (*it).to_owned()).collect(),
        };
        NodeStatus { policies: vec![policy], ..NodeStatus::default() }
    }

    fn nodes(all: Vec<NodeStatus>) -> BTreeMap<String, NodeStatus> {
        all.into_iter().enumerate().map(|(at, it)| (format!("node-{at}"), it)).collect()
    }

    fn none() -> BTreeSet<String> {
        BTreeSet::new()
    }

    #[test]
    fn the_last_report_of_a_silent_node_is_ignored() {
        let mut all = vec![node(3, 3, AS_WRITTEN, &[]); 4];
        for node in &mut all {
            node.activity = Some(Activity { flows: 5, acked_bytes: 100, ..Activity::default() });
        }
        let mut all = nodes(all);
        let policy = policy(3, json!({ "canary": "100%" }));
        let of = |all: &BTreeMap<String, NodeStatus>, silent: &[&str]| {
            let silent = silent.iter().map(|name| (*name).to_owned()).collect();
            of_policy(&policy, all, &silent)
        };
        let status = of(&all, &["node-1", "gone"]);
        assert_eq!((status.nodes, status.current, status.silent), (4, 3, 1));
        assert_eq!(status.everywhere, "3/4");
        assert_eq!(status.message, "node-1: no report for 3 minutes");
        let canary = status.canary.expect("a group");
        assert_eq!((canary.nodes, canary.flows, canary.acked_bytes), (4, 15, 300));
        let status = of(&all, &["node-1", "node-2", "node-3"]);
        assert_eq!(status.message, "node-1 and 2 more: no report for 3 minutes");
        // Not more than what another says.
        all.insert("node-0".into(), node(3, 3, AS_WRITTEN, &["warning: w"]));
        assert_eq!(of(&all, &["node-1"]).message, "node-0: warning: w");
    }

    #[test]
    fn it_is_everywhere_or_not() {
        let nodes = nodes(vec![
            node(3, 3, AS_WRITTEN, &["warning: spec.rules[0]: never reached"]),
            node(2, 2, AS_WRITTEN, &[]),
            node(3, 2, AS_WRITTEN, &["spec.rules: too many"]),
            NodeStatus::default(),
        ]);
        let status = of_policy(&policy(3, json!({})), &nodes, &none());
        assert_eq!((status.nodes, status.current, status.refused), (4, 1, 1));
        assert_eq!(status.everywhere, "1/4");
        assert_eq!(status.message, "node-2: spec.rules: too many");
        assert_eq!((status.canary, status.others), (None, None));
    }

    #[test]
    fn one_that_nodes_do_not_read_is_refused_by_them() {
        let reads = node(3, 3, AS_WRITTEN, &[]);
        let does_not = NodeStatus { policies_not_read: 9, ..NodeStatus::default() };
        let has_others = NodeStatus { policies_not_read: 9, ..reads.clone() };
        let all = nodes(vec![reads, does_not, has_others, NodeStatus::default()]);
        let status = of_policy(&policy(3, json!({})), &all, &none());
        assert_eq!((status.everywhere.as_str(), status.refused), ("2/4", 1));
        assert_eq!(status.message, format!("node-1: {}", Budget::refusal()));
        // No node reports it.
        let omitted = PolicyObject { is_omitted: true, ..policy(3, json!({})) };
        let status = of_policy(&omitted, &nodes(vec![NodeStatus::default()]), &none());
        assert_eq!((status.refused, status.message), (0, Budget::refusal()));
        // The nodes read it, and only we do not.
        let all = nodes(vec![node(3, 3, AS_WRITTEN, &[]); 2]);
        let status = of_policy(&omitted, &all, &none());
        assert_eq!((status.everywhere.as_str(), status.message.as_str()), ("2/2", ""));
        let silent = all.keys().cloned().collect();
        let message = of_policy(&omitted, &all, &silent).message;
        assert_eq!(message, "node-0 and 1 more: no report for 3 minutes");
    }

    #[test]
    fn canaries_and_others_are_beside_each_other() {
        let share = Share::parse("50%").expect("a share");
        let all: BTreeMap<String, NodeStatus> = (0..100)
            .map(|at| {
                let name = format!("node-{at}");
                let is_canary = share.has(&name);
                let mode = if is_canary { AS_WRITTEN } else { IN_SHADOW };
                let mut status = node(1, 1, mode, &[]);
                status.activity = Some(Activity {
                    seconds: 60,
                    flows: 2,
                    retransmissions: if is_canary { 1 } else { 30 },
                    acked_bytes: 1_000_000_000,
                    rtt_us: if is_canary { 120 } else { 45_600 },
                });
                (name, status)
            })
            .collect();
        let status =
            of_policy(&policy(1, json!({ "canary": "50%", "shadow": true })), &all, &none());
        let (canary, others) = (status.canary.expect("a group"), status.others.expect("a group"));
        assert_eq!(canary.nodes + others.nodes, 100);
        assert_eq!((canary.mode.as_str(), others.mode.as_str()), (AS_WRITTEN, IN_SHADOW));
        assert_eq!((canary.retransmissions_per_gb.as_str(), canary.rtt.as_str()), ("1.0", "120us"));
        assert_eq!((others.retransmissions_per_gb.as_str(), others.rtt.as_str()), ("30", "45.6ms"));
        assert_eq!(status.current, 100);
    }

    #[test]
    fn nothing_is_reported_without_a_measurement() {
        let idle = nodes(vec![node(1, 1, ABSENT, &[])]);
        let status = of_policy(&policy(1, json!({ "canary": "0%" })), &idle, &none());
        let (canary, others) = (status.canary.expect("a group"), status.others.expect("a group"));
        assert_eq!((canary.nodes, canary.rtt.as_str()), (0, ""));
        assert_eq!((others.nodes, others.mode.as_str()), (1, ABSENT));
        assert_eq!(others.retransmissions_per_gb, "");
    }
}
