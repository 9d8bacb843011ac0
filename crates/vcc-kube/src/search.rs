//! Pods that policies select and whose devices are not found: when they are looked for again, and when
//! somebody has to know.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::resource::Pod;
use crate::status_size::a_few;

/// What leads to a pod's device may come without an event, such as a route, but soon after the pod.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A look lists all devices and all results of the CNI plugin, and an edition is compiled with them.
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// A pod that has had an address for this time is not just starting.
const LASTS: Duration = Duration::from_secs(10);

pub struct Search {
    /// By UID.
    missing: BTreeMap<String, Missing>,
    looked: Instant,
    pause: Duration,
}

struct Missing {
    /// With the namespace.
    name: String,
    /// Since when it has had an address: before, it may be waiting for its volumes.
    since: Option<Instant>,
}

impl Search {
    pub fn new(now: Instant) -> Self {
        Self { missing: BTreeMap::new(), looked: now, pause: FIRST_PAUSE }
    }

    /// A look has not found the devices of these.
    pub fn looked<'a>(&mut self, missing: impl Iterator<Item = &'a Pod>, now: Instant) {
        let before = std::mem::take(&mut self.missing);
        let missing = missing.map(|pod| {
            let since = before.get(&pod.uid).and_then(|it| it.since).unwrap_or(now);
            let since = (!pod.addresses.is_empty()).then_some(since);
            (pod.uid.clone(), Missing { name: format!("{}/{}", pod.namespace, pod.name), since })
        });
        self.missing = missing.collect();
    }

    /// A pod or a link is new: what is missing may come at any moment.
    pub fn begin_anew(&mut self, now: Instant) {
        (self.looked, self.pause) = (now, FIRST_PAUSE);
    }

    /// Whether to look now. As long as nothing is new, the pauses grow.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due =
            !self.missing.is_empty() && now.saturating_duration_since(self.looked) >= self.pause;
        if is_due {
            (self.looked, self.pause) = (now, (self.pause * 2).min(LAST_PAUSE));
        }
        is_due
    }

    /// The names of pods that should have a device by now.
    pub fn lasting(&self, now: Instant) -> Vec<String> {
        let lasts = |it: &&Missing| {
            it.since.is_some_and(|since| now.saturating_duration_since(since) >= LASTS)
        };
        let mut names: Vec<String> =
            self.missing.values().filter(lasts).map(|it| it.name.clone()).collect();
        names.sort();
        names
    }
}

/// What a node says of pods without a device, if there are any.
pub fn problem(names: &[String]) -> Option<String> {
    let few = a_few(names);
    match names.len() {
        0 => None,
        1 => Some(format!("found no device for the pod {few}: it passes untranslated")),
        count => Some(format!("found no device for {count} pods ({few}): they pass untranslated")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, has_address: bool) -> Pod {
        let address = "10.0.0.1".parse().expect("an address");
        Pod {
            uid: format!("uid of {name}"),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            labels: Default::default(),
            choice: Default::default(),
            addresses: if has_address { vec![address] } else { Vec::new() },
            host_network: false,
            has_ended: false,
        }
    }

    #[test]
    fn looks_become_rare_until_something_is_new() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut search = Search::new(begin);
        assert!(!search.is_due(at(100)), "nothing is missing");
        search.looked([&pod("web", true)].into_iter(), at(100));
        search.begin_anew(at(100));
        let due = |search: &mut Search, from: u64, to: u64| {
            (from..to).filter(|it| search.is_due(at(*it))).collect::<Vec<u64>>()
        };
        assert_eq!(due(&mut search, 101, 140), [101, 102, 104, 108, 116, 132]);
        assert_eq!(due(&mut search, 140, 3700).len(), 3568 / 60);
        search.begin_anew(at(3700));
        assert_eq!(due(&mut search, 3701, 3705), [3701, 3702, 3704]);
        search.looked([].into_iter(), at(3705));
        assert!(!search.is_due(at(9999)), "it is found");
    }

    #[test]
    fn a_pod_that_is_just_starting_is_no_problem() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut search = Search::new(begin);
        search.looked([&pod("b", true), &pod("a", false)].into_iter(), at(0));
        assert_eq!(search.lasting(at(9)), [""; 0]);
        assert_eq!(search.lasting(at(10)), ["shop/b"]);
        search.looked([&pod("b", true), &pod("a", true)].into_iter(), at(20));
        assert_eq!(search.lasting(at(29)), ["shop/b"]);
        let both = search.lasting(at(30));
        assert_eq!(both, ["shop/a", "shop/b"]);
        let reason = "found no device for 2 pods (shop/a, shop/b): they pass untranslated";
        assert_eq!(problem(&both).as_deref(), Some(reason));
        search.looked([&pod("a", true)].into_iter(), at(31));
        let reason = "found no device for the pod shop/a: it passes untranslated";
        assert_eq!(problem(&search.lasting(at(31))).as_deref(), Some(reason));
        search.looked([].into_iter(), at(32));
        assert_eq!(problem(&search.lasting(at(99))), None);
    }
}
