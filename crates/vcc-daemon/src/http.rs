//! The daemon as the web server sees it. Ports and flows are read from the pinned maps on the web
//! server's thread, so the deciding thread never waits for it.

use std::collections::VecDeque;
use std::error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use vcc_policy::Policy;
use vcc_port::SharedPolicy;
use vcc_view::Source as Ports;
use vcc_web::snapshot::{Daemon, Event, Problem, Reload};
use vcc_web::{Snapshot, collect};

use crate::control::Abuse;
use crate::journal;
use crate::record_counts::State;

/// The number of recent events that are kept.
const MOST_EVENTS: usize = 50;

/// Written by the deciding thread, read by the web server's.
#[derive(Clone)]
pub(crate) struct Board(Arc<Mutex<Notes>>);

struct Notes {
    since: SystemTime,
    began: Instant,
    policy: Option<Arc<Policy>>,
    reloads_ok: u64,
    reloads_failed: u64,
    last_reload: Option<Reload>,
    attach_failures: u64,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    ports: usize,
    flows: u32,
    events: VecDeque<Event>,
    records: Option<State>,
}

impl Board {
    /// `since` is the current time.
    pub(crate) fn new(since: SystemTime, records: Option<State>) -> Self {
        Self(Arc::new(Mutex::new(Notes {
            since,
            began: Instant::now(),
            policy: None,
            reloads_ok: 0,
            reloads_failed: 0,
            last_reload: None,
            attach_failures: 0,
            problems: Vec::new(),
            warnings: Vec::new(),
            ports: 0,
            flows: 0,
            events: VecDeque::new(),
            records,
        })))
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Every change is one assignment, so a thread that panicked left nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A policy was put in force. The first one is not counted as a reload.
    pub(crate) fn policy(&self, policy: &Policy, event: &str) {
        let mut notes = self.notes();
        if notes.policy.replace(Arc::new(policy.clone())).is_some() {
            notes.reloads_ok += 1;
            notes.last_reload = Some(Reload { at: SystemTime::now(), failure: None });
        }
        notes.add_event(event);
    }

    /// A policy was refused; the previous one stays in force.
    pub(crate) fn refused(&self, why: &str) {
        let mut notes = self.notes();
        notes.reloads_failed += 1;
        notes.last_reload = Some(Reload { at: SystemTime::now(), failure: Some(why.to_owned()) });
        notes.add_event(&format!("a policy was refused: {why}"));
    }

    /// The current problems. New ones become events.
    pub(crate) fn problems(&self, problems: Vec<Problem>, attach_failures: u64) {
        let mut notes = self.notes();
        let news: Vec<String> = problems
            .iter()
            .filter(|problem| !notes.problems.contains(problem))
            .map(|problem| format!("{}: {}", problem.about, problem.what))
            .collect();
        news.iter().for_each(|new| notes.add_event(new));
        notes.problems = problems;
        notes.attach_failures = attach_failures;
    }

    /// Possible interference.
    pub(crate) fn warnings(&self, warnings: Vec<Problem>) {
        self.notes().warnings = warnings;
    }
}

impl Board {
    /// Connections of all ports, as the kernel counts them.
    pub(crate) fn usage(&self, ports: usize, flows: u32) {
        let mut notes = self.notes();
        (notes.ports, notes.flows) = (ports, flows);
    }

    /// Ports, their connections, and problems.
    pub(crate) fn state(&self) -> (usize, u32, Vec<Problem>) {
        let notes = self.notes();
        (notes.ports, notes.flows, notes.problems.clone())
    }
}

impl Notes {
    fn add_event(&mut self, what: &str) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event { at: SystemTime::now(), what: what.to_owned() });
    }

    fn daemon(&self, control_refused: u64) -> Daemon {
        Daemon {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
            uptime: self.began.elapsed(),
            reloads_ok: self.reloads_ok,
            reloads_failed: self.reloads_failed,
            last_reload: self.last_reload.clone(),
            attach_failures: self.attach_failures,
            control_refused,
            problems: self.problems.clone(),
            warnings: self.warnings.clone(),
            events: self.events.iter().cloned().collect(),
            records: self.records.as_ref().map(State::view),
        }
    }
}

/// Answers the web server.
pub(crate) struct Source {
    pub board: Board,
    pub abuse: Abuse,
}

impl vcc_web::Source for Source {
    fn snapshot(&self) -> Result<Snapshot, Box<dyn error::Error + Send + Sync>> {
        let (daemon, policy) = {
            let notes = self.board.notes();
            (notes.daemon(self.abuse.count()), notes.policy.clone())
        };
        let began = Instant::now();
        let shared = SharedPolicy::find()?;
        let ports = Ports::list()?;
        let snapshot = collect(shared.as_ref(), &ports, policy.as_deref(), daemon)?;
        let (ports, flows) = (snapshot.ports.len(), snapshot.flows.len());
        journal::if_slow(format_args!("reading {ports} ports with {flows} connections"), began);
        Ok(snapshot)
    }
}
