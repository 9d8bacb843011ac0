//! The daemon as the cluster's agent sees it.

use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::{self, Sender};

use vcc_kube::devices::{Finder, cni};
use vcc_kube::{Agent, Host, Pod, RuleActivity, Usage};
use vcc_web::Readings;

use crate::http::Board;
use crate::origin::OfCluster;
use crate::{Error, Result, journal};

/// The subject of problems with the API server.
pub(crate) const ABOUT: &str = "kubernetes";

pub(crate) enum AgentEvent {
    /// To be put in force.
    Edition { name: String, text: String, answer: Sender<std::result::Result<(), String>> },
    /// Lasting problems with the API server.
    Troubles(Vec<String>),
}

pub(crate) fn start(
    origin: &OfCluster,
    send: impl Fn(AgentEvent) -> bool + Send + 'static,
    board: Board,
    readings: Option<Readings>,
) -> Result<Agent> {
    let finder = Finder::new(origin.cni_cache.clone());
    let host = OfDaemon {
        send,
        board,
        readings,
        finder,
        troubles: Vec::new(),
        refused_choices: HashSet::new(),
    };
    let agent = vcc_kube::start(origin.agent.clone(), host)?;
    let watched = cni::watch(origin.cni_cache.clone(), agent.waker());
    watched.map_err(|error| Error::system("watch the CNI plugins' results", error))?;
    Ok(agent)
}

struct OfDaemon<T> {
    send: T,
    board: Board,
    readings: Option<Readings>,
    finder: Finder,
    /// As reported last.
    troubles: Vec<String>,
    refused_choices: HashSet<String>,
}

impl<T: Fn(AgentEvent) -> bool + Send + 'static> Host for OfDaemon<T> {
    fn devices(&mut self, pods: &[&Pod]) -> BTreeMap<String, String> {
        self.finder.find(pods)
    }

    fn apply(&mut self, edition: &str, text: &str) -> std::result::Result<(), String> {
        let (answer, answered) = mpsc::channel();
        let name = format!("the cluster's policies, edition {edition}");
        (self.send)(AgentEvent::Edition { name, text: text.to_owned(), answer });
        answered.recv().unwrap_or_else(|_| Err("the daemon is ending".to_owned()))
    }

    fn usage(&mut self) -> Usage {
        let (ports, flows, problems) = self.board.state();
        let of_node = problems.into_iter().filter(|problem| problem.about != ABOUT);
        let problems = of_node.map(|problem| problem.what).collect();
        Usage { ports: ports as u64, flows: flows.into(), problems }
    }

    fn activity(&mut self) -> Vec<RuleActivity> {
        let rules = self.readings.as_ref().map(Readings::rules).unwrap_or_default();
        let activity = |rule: vcc_web::RuleReading| RuleActivity {
            name: rule.name.to_string(),
            flows: rule.flows,
            retransmissions: rule.retransmissions,
            acked_bytes: rule.acked_bytes,
            rtt_us: rule.srtt_us.map_or(0, |srtt_us| srtt_us as u64),
        };
        rules.into_iter().map(activity).collect()
    }

    fn refused_choices(&mut self, refused: &[String]) {
        for refusal in refused.iter().filter(|refusal| !self.refused_choices.contains(*refusal)) {
            journal::warning!("Kubernetes: {refusal}");
        }
        self.refused_choices = refused.iter().cloned().collect();
    }

    fn troubles(&mut self, mut troubles: Vec<String>) {
        troubles.extend(self.finder.trouble().map(str::to_owned));
        if troubles == self.troubles {
            return;
        }
        for trouble in troubles.iter().filter(|trouble| !self.troubles.contains(trouble)) {
            journal::warning!("Kubernetes: {trouble}");
        }
        self.troubles.clone_from(&troubles);
        // It is ending if nobody listens.
        (self.send)(AgentEvent::Troubles(troubles));
    }
}
