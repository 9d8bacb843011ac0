//! Which of the nodes sums up what all of them say: the holder of a lease (coordination.k8s.io).
//!
//! If clocks are wrong by more than the lease lasts, two nodes may sum up at a time, and write the same.

use std::time::{Duration, Instant};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, PostParams};

use crate::pause::{spread, within};
use crate::resource::{self, LeaseResource, LeaseSpec};
use crate::trouble::Troubles;

pub const NAME: &str = "vcc-summary";
/// How long a lease lasts that is not renewed.
const LASTS: Duration = Duration::from_secs(30);
pub const RENEWED_EVERY: Duration = Duration::from_secs(10);
/// From an attempt to renew that failed to the next.
const RETRIED_EVERY: Duration = Duration::from_secs(1);
/// The number of nodes, as the holder counts them.
const NODES: &str = "vcc.internal/nodes";

pub struct Lease {
    api: Api<LeaseResource>,
    node: String,
    troubles: Troubles,
    seen: Seen,
    ours: Ours,
    /// How many there are, as far as we know.
    nodes: usize,
}

/// Whose the lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    ByUs,
    /// Look again after this time.
    ByAnother(Duration),
}

impl Lease {
    pub fn new(client: &Client, namespace: &str, node: &str, troubles: &Troubles) -> Self {
        let api = Api::namespaced_with(client.clone(), namespace, &resource::leases());
        let (seen, ours) = (Seen::default(), Ours::default());
        Self { api, node: node.to_owned(), troubles: troubles.clone(), seen, ours, nodes: 1 }
    }

    /// Whether a lease that we hold has to be renewed.
    pub fn is_due(&self) -> bool {
        self.ours.is_due(Instant::now())
    }

    /// Takes or renews the lease, if it is free or ours. `nodes` is how many there are, if we know.
    pub async fn hold(&mut self, nodes: Option<usize>) -> Held {
        const DOING: &str = "hold the lease for the summary of all nodes";
        self.nodes = nodes.unwrap_or(self.nodes);
        let asked = Instant::now();
        // One attempt fits between a renewal that is due and the end of the lease.
        match within(RENEWED_EVERY, self.try_to_hold(nodes)).await {
            Ok(held) => {
                self.troubles.works(DOING);
                match held {
                    Held::ByUs => self.ours.renewed(asked),
                    Held::ByAnother(_) => self.ours = Ours::default(),
                }
                held
            }
            Err(error) => {
                self.troubles.failed(DOING, &error);
                match self.ours.is_left_after_failure(Instant::now()) {
                    true => Held::ByUs,
                    false => Held::ByAnother(try_again(self.nodes)),
                }
            }
        }
    }

    async fn try_to_hold(&mut self, nodes: Option<usize>) -> kube::Result<Held> {
        let now = Timestamp::now();
        let Some(mut lease) = self.api.get_opt(NAME).await? else {
            let lease = LeaseResource::new(NAME, &resource::leases(), self.spec(now));
            return self.settled(self.api.create(&PostParams::default(), &lease).await);
        };
        let is_ours = lease.spec.holder_identity.as_ref() == Some(&self.node);
        if !is_ours
            && !has_ended(&lease.spec, now)
            && !self.seen.is_left(&lease.spec, Instant::now())
        {
            self.nodes = known_nodes(&lease);
            return Ok(Held::ByAnother(look_again(self.nodes)));
        }
        let acquired = lease.spec.acquire_time.take().filter(|_| is_ours);
        lease.spec = self.spec(now);
        lease.spec.acquire_time = acquired.or(lease.spec.acquire_time);
        if let Some(nodes) = nodes {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(NODES.to_owned(), nodes.to_string());
        }
        // With the version that was read, so that the faster candidate wins.
        self.settled(self.api.replace(NAME, &PostParams::default(), &lease).await)
    }

    fn spec(&self, now: Timestamp) -> LeaseSpec {
        let now = format!("{now:.6}");
        LeaseSpec {
            holder_identity: Some(self.node.clone()),
            lease_duration_seconds: Some(LASTS.as_secs() as i32),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
        }
    }

    fn settled(&self, written: kube::Result<LeaseResource>) -> kube::Result<Held> {
        match written {
            Ok(_) => Ok(Held::ByUs),
            Err(kube::Error::Api(answer)) if answer.code == 409 => {
                Ok(Held::ByAnother(try_again(self.nodes)))
            }
            Err(error) => Err(error),
        }
    }
}

/// Our lease, if we hold it.
#[derive(Default)]
struct Ours {
    /// When we asked for what the API server granted last.
    renewed: Option<Instant>,
    /// When to ask again.
    due: Option<Instant>,
}

impl Ours {
    fn renewed(&mut self, asked: Instant) {
        *self = Self { renewed: Some(asked), due: Some(asked + RENEWED_EVERY) };
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// Whether it is still ours though it could not be renewed: others leave it alone for as long as it
    /// lasts.
    fn is_left_after_failure(&mut self, now: Instant) -> bool {
        let is_left = self.renewed.is_some_and(|renewed| now.duration_since(renewed) < LASTS);
        *self = match is_left {
            true => Self { due: Some(now + RETRIED_EVERY), ..*self },
            false => Self::default(),
        };
        is_left
    }
}

/// Another's lease as we saw it, and since when.
#[derive(Default)]
struct Seen(Option<(LeaseSpec, Instant)>);

impl Seen {
    /// Whether nobody has renewed it for as long as it lasts, by our own clock: that of a holder which has
    /// gone may have been fast.
    fn is_left(&mut self, lease: &LeaseSpec, now: Instant) -> bool {
        match &self.0 {
            Some((seen, since)) if seen == lease => now.duration_since(*since) > LASTS,
            _ => {
                self.0 = Some((lease.clone(), now));
                false
            }
        }
    }
}

fn has_ended(lease: &LeaseSpec, now: Timestamp) -> bool {
    let renewed = lease.renew_time.as_ref().and_then(|time| time.parse::<Timestamp>().ok());
    let lasts = SignedDuration::from_secs(lease.lease_duration_seconds.unwrap_or(0).into());
    renewed.is_none_or(|renewed| now.duration_since(renewed) > lasts)
}

fn known_nodes(lease: &LeaseResource) -> usize {
    let nodes = lease.metadata.annotations.as_ref().and_then(|it| it.get(NODES));
    nodes.and_then(|nodes| nodes.parse().ok()).unwrap_or(1)
}

/// All nodes together look ten times a second, however many they are.
fn look_again(nodes: usize) -> Duration {
    spread(together(nodes).max(RENEWED_EVERY))
}

/// As rarely after a failure: a server that cannot answer needs no crowd.
fn try_again(nodes: usize) -> Duration {
    spread(together(nodes).max(LASTS))
}

fn together(nodes: usize) -> Duration {
    const EACH: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(3600);
    EACH.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_when_it_was_not_renewed() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
        let lease = |renewed: Option<&str>| LeaseSpec {
            renew_time: renewed.map(str::to_owned),
            lease_duration_seconds: Some(30),
            ..LeaseSpec::default()
        };
        assert!(!has_ended(&lease(Some("2026-01-02T03:03:35.000000Z")), now));
        assert!(has_ended(&lease(Some("2026-01-02T03:03:34.999999Z")), now));
        assert!(!has_ended(&lease(Some("2026-01-02T03:09:00.000000Z")), now), "of a fast clock");
        assert!(has_ended(&lease(Some("yesterday")), now));
        assert!(has_ended(&lease(None), now));
    }

    #[test]
    fn the_lease_of_a_fast_clock_ends_when_nobody_renews_it() {
        let lease = |renewed: &str| LeaseSpec {
            holder_identity: Some("gone".into()),
            renew_time: Some(renewed.into()),
            ..LeaseSpec::default()
        };
        let begin = Instant::now();
        let (first, next) = (lease("2038-01-19T03:14:07Z"), lease("2038-01-19T03:14:17Z"));
        let mut seen = Seen::default();
        assert!(!seen.is_left(&first, begin));
        assert!(!seen.is_left(&first, begin + LASTS));
        assert!(!seen.is_left(&next, begin + 2 * LASTS), "renewed");
        assert!(!seen.is_left(&next, begin + 3 * LASTS));
        assert!(seen.is_left(&next, begin + 3 * LASTS + Duration::from_secs(1)));
    }

    #[test]
    fn a_lease_that_cannot_be_renewed_is_ours_until_it_ends() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut ours = Ours::default();
        assert!(ours.is_due(begin) && !ours.is_left_after_failure(begin), "it never was");
        ours.renewed(begin);
        assert!(!ours.is_due(at(9)) && ours.is_due(at(10)));
        assert!(ours.is_left_after_failure(at(12)));
        assert!(!ours.is_due(at(12)) && ours.is_due(at(13)), "soon again");
        assert!(ours.is_left_after_failure(at(29)));
        ours.renewed(at(29));
        assert!(!ours.is_due(at(38)));
        assert!(ours.is_left_after_failure(at(58)));
        assert!(!ours.is_left_after_failure(at(59)), "others may have it");
        assert!(!ours.is_left_after_failure(at(60)));
    }

    #[test]
    fn the_more_nodes_the_more_rarely_each_looks() {
        for (nodes, seconds) in [(1, 10), (100, 10), (1000, 100), (10_000, 1000), (1_000_000, 3600)]
        {
            let again = look_again(nodes);
            let about = Duration::from_secs(seconds);
            assert!(again >= about / 2 && again <= about * 3 / 2, "{nodes}: {again:?}");
            let (again, about) = (try_again(nodes), about.max(LASTS));
            assert!(again >= about / 2 && again <= about * 3 / 2, "{nodes}: {again:?}");
        }
    }
}
