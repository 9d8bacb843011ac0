//! Problems that the operator has to solve.

use serde::Serialize;
use vcc_view::NO_PROMISES;

use crate::cache::{Failure, Taken};
use crate::snapshot::{Problem, Records};

#[derive(Serialize)]
pub struct Health {
    pub ok: bool,
    epoch: Option<u32>,
    ports_attached: usize,
    ports_failed: usize,
    policy_ok: Option<bool>,
    pub problems: Vec<Problem>,
    /// None if connections are not recorded. A full disk is not a problem of connections, so `ok` does not
    /// depend on it.
    records: Option<Records>,
}

impl Health {
    pub fn from_reading(taken: &Result<std::sync::Arc<Taken>, Failure>) -> Self {
        let snapshot = match taken {
            Ok(taken) => &taken.snapshot,
            Err(failure) => return Self::unknown(failure),
        };
        let mut problems = snapshot.daemon.problems.clone();
        let mut say = |about: &str, what: &str| {
            problems.push(Problem { about: about.into(), what: what.into() });
        };
        let last_reload = snapshot.daemon.last_reload.as_ref();
        let reload_failure = last_reload.and_then(|reload| reload.failure.as_deref());
        if let Some(failure) = reload_failure {
            say("policy", &format!("the last reload of the policy failed: {failure}"));
        }
        let mut ports_failed = 0;
        for port in &snapshot.ports {
            if let Some(failure) = &port.failure {
                ports_failed += 1;
                say(&port.port, failure);
            }
            if let Some(why) = &port.unpromised {
                say(&port.port, &format!("{}: {NO_PROMISES}: {why}", port.port));
            }
        }
        Self {
            ok: problems.is_empty(),
            epoch: Some(snapshot.epoch),
            ports_attached: snapshot.ports.len() - ports_failed,
            ports_failed,
            policy_ok: Some(reload_failure.is_none()),
            problems,
            records: snapshot.daemon.records.clone(),
        }
    }

    fn unknown(failure: &str) -> Self {
        let problem = Problem { about: "reading the ports".into(), what: failure.into() };
        Self {
            ok: false,
            epoch: None,
            ports_attached: 0,
            ports_failed: 0,
            policy_ok: None,
            problems: vec![problem],
            records: None,
        }
    }
}
