//! Clients in a closed loop: what each asks for next, and how long it thinks before.

use crate::requests::ClientPlan;
use vcc_net::random::SplitMix64;

const NS_PER_MS: f64 = 1e6;
/// The longest think time, over their mean.
const LONGEST_THINK: f64 = 5.0;

/// The choices of one client, which depend on its seed only.
#[derive(Debug)]
pub struct Client<'a> {
    plan: &'a ClientPlan,
    random: SplitMix64,
    /// Flows whose responses it waits for.
    unanswered: usize,
}

impl<'a> Client<'a> {
    pub fn new(plan: &'a ClientPlan) -> Self {
        Self { plan, random: SplitMix64::new(plan.seed), unanswered: 0 }
    }

    /// Asks: for this kind over each of these flows, which are positions among the host's.
    pub fn ask(&mut self) -> (usize, &'a [usize]) {
        self.unanswered = self.plan.flows.len();
        (self.next_kind(), &self.plan.flows)
    }

    /// A response has come. Returns whether it was the last one that the client has waited for.
    pub fn take_response(&mut self) -> bool {
        self.unanswered -= 1;
        self.unanswered == 0
    }

    fn next_kind(&mut self) -> usize {
        let all: u64 = self.plan.asks.iter().map(|&(_, share)| u64::from(share)).sum();
        let mut place = self.random.next_u64() % all.max(1);
        for &(kind, share) in &self.plan.asks {
            match place.checked_sub(share.into()) {
                Some(beyond) => place = beyond,
                None => return kind,
            }
        }
        unreachable!("the place is below the sum of all shares")
    }

    /// Exponentially distributed.
    pub fn think_ns(&mut self) -> u64 {
        // Within (0, 1].
        let uniform = (self.random.next_u64() >> 11) as f64 + 1.0;
        let means = -(uniform / (1_u64 << 53) as f64).ln();
        (means.min(LONGEST_THINK) * f64::from(self.plan.think_ms) * NS_PER_MS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(asks: &[(usize, u32)]) -> ClientPlan {
        let (flows, asks) = (vec![0, 3], asks.to_vec());
        ClientPlan { flows, asks, think_ms: 100, starts_at_ns: 0, seed: 5 }
    }

    #[test]
    fn asks_again_when_all_have_answered() {
        let plan = plan(&[(4, 1)]);
        let mut client = Client::new(&plan);
        for _ in 0..2 {
            assert_eq!(client.ask(), (4, [0, 3].as_slice()));
            assert!(!client.take_response());
            assert!(client.take_response());
        }
    }

    #[test]
    fn kinds_come_as_often_as_their_shares() {
        let plan = plan(&[(4, 70), (1, 0), (2, 30)]);
        let mut client = Client::new(&plan);
        let kinds: Vec<usize> = (0..10_000).map(|_| client.next_kind()).collect();
        let times = |kind| kinds.iter().filter(|&&it| it == kind).count();
        assert_eq!(times(1), 0);
        assert!((6_800..7_200).contains(&times(4)), "{}", times(4));
        assert_eq!(times(4) + times(2), 10_000);
    }

    #[test]
    fn think_times_have_their_mean_and_no_long_tail() {
        let mut plan = plan(&[(0, 1)]);
        let mut client = Client::new(&plan);
        let thought_ns: Vec<u64> = (0..10_000).map(|_| client.think_ns()).collect();
        let mean_ns = thought_ns.iter().sum::<u64>() / 10_000;
        assert!((96_000_000..103_000_000).contains(&mean_ns), "{mean_ns}");
        assert!(thought_ns.iter().all(|&ns| ns <= 500_000_000));
        plan.think_ms = 0;
        assert_eq!(Client::new(&plan).think_ns(), 0);
    }
}
