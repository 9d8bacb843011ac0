//! Workers: applications that send messages over several connections.

use crate::pattern::{Messages, Order, Pace, Size};
use serde::{Deserialize, Serialize};
use vcc_net::random::{mix, nth};

const NS_PER_MS: usize = 1_000_000;

/// The plan of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerPlan {
    /// The positions of its flows among those of its host; at least one.
    pub flows: Vec<usize>,
    pub messages: Messages,
    pub starts_at_ns: u64,
    /// The random seed.
    pub seed: u64,
}

/// A message to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post {
    /// A position among the flows of the host.
    pub flow: usize,
    pub bytes: u64,
}

/// The state of a worker.
#[derive(Debug)]
pub struct Worker<'a> {
    plan: &'a WorkerPlan,
    posted: u64,
    /// The remaining flows of this round, in reverse order.
    round: Vec<usize>,
}

impl<'a> Worker<'a> {
    pub fn new(plan: &'a WorkerPlan) -> Self {
        Self { plan, posted: 0, round: Vec::new() }
    }

    /// The next message, which depends on the seed only.
    pub fn next_post(&mut self) -> Post {
        let flow = self.next_flow();
        let bytes = match self.plan.messages.size {
            Size::Bytes(bytes) => bytes.get(),
            Size::Trace(trace) => trace.size_bytes(self.random(Question::Size, self.posted)),
        };
        self.posted += 1;
        Post { flow, bytes }
    }

    fn next_flow(&mut self) -> usize {
        let flows = &self.plan.flows;
        match self.plan.messages.order {
            Order::InTurn => flows[self.posted as usize % flows.len()],
            Order::Random => flows[self.below(self.posted, flows.len())],
            Order::Shuffled => loop {
                if let Some(flow) = self.round.pop() {
                    return flow;
                }
                self.round = self.shuffled();
            },
        }
    }

    /// Fisher-Yates shuffle.
    fn shuffled(&self) -> Vec<usize> {
        let mut flows = self.plan.flows.clone();
        for last in (1..flows.len()).rev() {
            flows.swap(last, self.below(self.posted + last as u64, last + 1));
        }
        flows
    }

    /// A random number from 0 to `count` - 1.
    fn below(&self, number: u64, count: usize) -> usize {
        let word = self.random(Question::Flow, number);
        ((u128::from(word) * count as u128) >> 64) as usize
    }

    fn random(&self, question: Question, number: u64) -> u64 {
        let seed = mix(self.plan.seed ^ question as u64);
        nth(seed, number)
    }
}

/// Random choices; each has a random sequence of its own.
#[derive(Clone, Copy)]
enum Question {
    Size = 1,
    Flow = 2,
}

impl WorkerPlan {
    /// The times up to `end_ns` of messages that no answer triggers.
    pub fn posts_at_ns(&self, end_ns: u64) -> Box<dyn Iterator<Item = u64> + '_> {
        match self.messages.pace {
            Pace::AtOnce(messages) => Box::new((0..messages.get()).map(|_| self.starts_at_ns)),
            Pace::EveryMs(ms) => {
                let every_ns = ms.get() as usize * NS_PER_MS;
                Box::new((self.starts_at_ns..end_ns).step_by(every_ns))
            }
        }
    }

    /// Whether an answer triggers the next message.
    pub fn follows_answers(&self) -> bool {
        matches!(self.messages.pace, Pace::AtOnce(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::Trace;
    use std::num::{NonZeroU32, NonZeroU64};

    fn plan(order: Order, size: Size) -> WorkerPlan {
        let messages = Messages { size, order, pace: Pace::AtOnce(NonZeroU32::MIN) };
        WorkerPlan { flows: vec![3, 5, 8], messages, starts_at_ns: 20, seed: 7 }
    }

    fn flows(order: Order, posts: usize) -> Vec<usize> {
        let plan = plan(order, Size::Bytes(NonZeroU64::MIN));
        let mut worker = Worker::new(&plan);
        (0..posts).map(|_| worker.next_post().flow).collect()
    }

    #[test]
    fn in_turn_is_round_and_round() {
        assert_eq!(flows(Order::InTurn, 5), [3, 5, 8, 3, 5]);
    }

    #[test]
    fn shuffled_meets_each_once_a_round() {
        let all = flows(Order::Shuffled, 300);
        let mut orders: Vec<&[usize]> = all.chunks(3).collect();
        for round in &orders {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [3, 5, 8]);
        }
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), 6, "every order comes");
    }

    #[test]
    fn random_meets_all_about_equally() {
        let all = flows(Order::Random, 3000);
        for flow in [3, 5, 8] {
            let met = all.iter().filter(|&&it| it == flow).count();
            assert!((900..1100).contains(&met), "{flow}: {met}");
        }
    }

    #[test]
    fn sizes_are_of_the_trace_and_of_the_seed() {
        let mut plan = plan(Order::InTurn, Size::Trace(Trace::WebSearch));
        let sizes = |plan: &WorkerPlan| {
            let mut worker = Worker::new(plan);
            (0..1000).map(|_| worker.next_post().bytes).collect::<Vec<_>>()
        };
        let first = sizes(&plan);
        assert_eq!(first, sizes(&plan));
        let small = first.iter().filter(|&&bytes| bytes <= 10_000).count();
        assert!((110..190).contains(&small), "15 % are: {small}");
        plan.seed += 1;
        assert_ne!(first, sizes(&plan));
    }

    #[test]
    fn messages_go_off_at_the_start_or_every_so_often() {
        let mut plan = plan(Order::InTurn, Size::Bytes(NonZeroU64::MIN));
        plan.messages.pace = Pace::AtOnce(2.try_into().unwrap());
        assert!(plan.posts_at_ns(50).eq([20, 20]) && plan.follows_answers());
        plan.messages.pace = Pace::EveryMs(1.try_into().unwrap());
        assert!(plan.posts_at_ns(2_000_020).eq([20, 1_000_020]) && !plan.follows_answers());
    }
}
