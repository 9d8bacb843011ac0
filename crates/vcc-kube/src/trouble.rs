//! Failures between an agent and the API server, which are reported when they last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shared by all that talk to the API server.
#[derive(Clone, Debug, Default)]
pub struct Troubles(Arc<Mutex<BTreeMap<String, Trouble>>>);

#[derive(Debug)]
struct Trouble {
    since: Instant,
    last: Instant,
    why: String,
    is_refusal: bool,
}

/// A restart of the API server, or of a connection, is no trouble.
const LASTS: Duration = Duration::from_secs(60);
/// Failures are retried within half a minute: without one for this time, the action works.
const OVER: Duration = Duration::from_secs(90);

impl Troubles {
    /// `doing` failed, like "watch vccpolicies".
    pub fn failed(&self, doing: &str, error: &kube::Error) {
        self.failed_at(doing, error, Instant::now());
    }

    pub fn failed_at(&self, doing: &str, error: &kube::Error, now: Instant) {
        self.note(doing, describe(error), is_refusal(error), now);
    }

    fn note(&self, doing: &str, why: String, is_refusal: bool, now: Instant) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let trouble = Trouble { since: now, last: now, why, is_refusal };
        let since = troubles.get(doing).filter(|before| now - before.last < OVER);
        let since = since.map_or(now, |before| before.since);
        troubles.insert(doing.to_owned(), Trouble { since, ..trouble });
    }

    pub fn works(&self, doing: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(doing);
    }

    /// What lasts, a sentence each.
    pub fn lasting(&self) -> Vec<String> {
        self.lasting_at(Instant::now())
    }

    pub fn lasting_at(&self, now: Instant) -> Vec<String> {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.retain(|_, trouble| now - trouble.last < OVER);
        let lasts = |trouble: &Trouble| trouble.is_refusal || now - trouble.since >= LASTS;
        let lasting = troubles.iter().filter(|(_, trouble)| lasts(trouble));
        lasting.map(|(doing, trouble)| sentence(doing, trouble)).collect()
    }
}

fn sentence(doing: &str, trouble: &Trouble) -> String {
    format!("cannot {doing}: {}", trouble.why)
}

fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404))
}

/// What happened and what to do, in one line.
pub fn describe(error: &kube::Error) -> String {
    let what = match error {
        kube::Error::Api(status) => {
            let reason = if status.message.is_empty() { &status.reason } else { &status.message };
            let remedy = match status.code {
                401 => {
                    " (the token is not accepted: does the service account exist, and is the API \
                        server's clock right?)"
                }
                403 => " (the manifests grant the permissions that vcc needs: apply them again)",
                404 => {
                    " (the API server does not serve this version of the resource: `vcc generate \
                        crds | kubectl apply -f -`)"
                }
                _ => "",
            };
            format!("the API server answered {}: {reason}{remedy}", status.code)
        }
        error => {
            // The cause is what helps: the outermost error says only that a request failed.
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                let inner_text = inner.to_string();
                if !text.contains(&inner_text) {
                    text = format!("{text}: {inner_text}");
                }
                cause = inner.source();
            }
            text
        }
    };
    vcc_policy::text::printable_line(&what).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lasting_problems_are_reported_but_a_refusal_at_once() {
        let troubles = Troubles::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        troubles.note("watch a", "no answer".into(), false, at(0));
        troubles.note("watch b", "no".into(), true, at(0));
        assert_eq!(troubles.lasting_at(at(1)), ["cannot watch b: no"]);
        troubles.note("watch a", "no answer".into(), false, at(59));
        assert_eq!(
            troubles.lasting_at(at(61)),
            ["cannot watch a: no answer", "cannot watch b: no"]
        );
        assert_eq!(troubles.lasting_at(at(91)), ["cannot watch a: no answer"]);
        assert_eq!(troubles.lasting_at(at(150)), [""; 0]);
        troubles.note("watch a", "no answer".into(), false, at(151));
        assert_eq!(troubles.lasting_at(at(152)), [""; 0], "it begins anew");
        troubles.note("watch b", "no".into(), true, at(152));
        troubles.works("watch b");
        assert_eq!(troubles.lasting_at(at(153)), [""; 0]);
    }
}
