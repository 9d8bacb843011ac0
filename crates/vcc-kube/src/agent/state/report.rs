//! The agent's reports: to the host's own status, and to the API server.

use std::time::{Duration, Instant};

use super::State;
use crate::budget::Budget;
use crate::host::Host;
use crate::search;
use crate::status::NodeStatus;
use crate::status_size;

/// An agent that receives its policies sooner writes its first status with them.
const FIRST_WORD: Duration = Duration::from_secs(3);
/// A longer wait for a list is reported.
const LIST_LASTS: Duration = Duration::from_secs(60);

impl<H: Host> State<H> {
    /// Reports the policies that are in force and those that are not.
    pub(in crate::agent) fn report(&mut self, now: Instant) {
        let troubles = self.lasting_troubles(now);
        self.host.troubles(troubles.clone());
        let refused = self.edition.as_ref().map_or(&[][..], |it| &it.refused_choices);
        self.refusals.send_if_modified(|before| {
            let has_changed = before[..] != *refused;
            if has_changed {
                *before = refused.to_vec();
            }
            has_changed
        });
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        self.host.refused_choices(&refused);
        // The others are to know of a node that has no edition, and why.
        let is_early = now.duration_since(self.began) < FIRST_WORD;
        if self.edition.is_none() && troubles.is_empty() && is_early {
            return;
        }
        let is_due = self.activities.is_due(now);
        if is_due {
            self.activities.update(self.host.activity(), now);
        }
        let status = self.node_status(troubles, now);
        self.status.send_if_modified(|before| {
            // Counts alone can wait.
            let is_written = is_due || before.without_counts() != status.without_counts();
            if is_written {
                *before = status;
            }
            is_written
        });
    }

    /// Problems of the agent itself.
    fn lasting_troubles(&self, now: Instant) -> Vec<String> {
        let mut troubles = self.troubles.lasting();
        // A request that fails says more.
        let awaited = self.awaited.filter(|(_, since)| now.duration_since(*since) >= LIST_LASTS);
        if let Some((what, _)) = awaited.filter(|_| troubles.is_empty()) {
            troubles.push(format!(
                "the API server has not listed {what} yet: the previous policies stay in force"
            ));
        }
        troubles.extend(self.trouble.clone());
        troubles
    }

    fn node_status(&mut self, troubles: Vec<String>, now: Instant) -> NodeStatus {
        let usage = self.host.usage();
        let without_device = self.search.lasting(now);
        let edition = self.edition.as_ref();
        let not_read = edition.map_or(&[][..], |it| &it.not_read);
        let refused = edition.map_or(&[][..], |it| &it.refused_choices);
        let problems: Vec<String> = self
            .refusals()
            .chain(usage.problems)
            .chain(troubles)
            .chain(search::problem(&without_device))
            .chain(Budget::problem(not_read))
            .collect();
        let mut status = NodeStatus {
            edition: edition.map(|it| it.id.clone()).unwrap_or_default(),
            policies: edition.map(|it| it.policies.clone()).unwrap_or_default(),
            policies_not_read: not_read.len() as u64,
            ports: usage.ports,
            pods_without_device: without_device.len() as u64,
            pods_with_choice: edition.map_or(0, |it| it.followed_choices),
            pods_with_refused_choice: refused.len() as u64,
            refused_choices: refused.iter().map(ToString::to_string).collect(),
            flows: usage.flows,
            activity: self.activities.latest(),
            problem: problems.first().cloned().unwrap_or_default(),
            problems,
            kernel: kernel(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            updated: String::new(),
        };
        status_size::shorten(&mut status, status_size::MOST_BYTES);
        status
    }

    /// Why the node's new policies are not in force. A policy reports it only if another
    /// generation of it would have come: pods may be what is new.
    fn refusals(&self) -> impl Iterator<Item = String> {
        let refused = self.failed.as_ref().map(|(_, _, why)| {
            format!(
                "this node refused its new policies and keeps the previous ones in force: {why}"
            )
        });
        let stays = self.edition.as_ref().and_then(|it| it.text.as_ref().err()).map(|why| {
            format!(
                "the policies exceed this node's limits: the previous ones stay in force, and new pods get no port: {why}"
            )
        });
        refused.into_iter().chain(stays)
    }
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map(|release| release.trim().to_owned()).unwrap_or_default()
}
