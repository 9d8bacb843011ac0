//! A server of a tier: to respond to a request, it asks others first. It neither reads nor writes:
//! its caller passes in what has come, and it returns what to send.

use crate::requests::{Call, RequestsPlan};
use std::collections::{BTreeMap, VecDeque};

/// What to send next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A request over a flow of the guest's own.
    Ask { flow: usize, kind: usize },
    /// The response to the request that came over this connection.
    Respond { connection: usize, kind: usize },
}

/// The requests that a guest works on. Connections have at most one each.
#[derive(Debug)]
pub struct Tier<'a> {
    plan: &'a RequestsPlan,
    jobs: BTreeMap<usize, Job>,
    /// Requests that wait until others have their responses: connection and kind.
    waiting: VecDeque<(usize, usize)>,
    /// By the number of the group of flows.
    pools: BTreeMap<usize, Pool>,
    /// The connection whose request an own flow asks for, and the group of that flow.
    asking: BTreeMap<usize, (usize, usize)>,
}

#[derive(Debug)]
struct Job {
    kind: usize,
    /// The number of the current call.
    call: usize,
    asked: u32,
    answered: u32,
}

/// The flows of one group.
#[derive(Debug)]
struct Pool {
    /// The one that was free for the longest time is taken first.
    free: VecDeque<usize>,
    /// The connections whose calls wait for a flow.
    waiting: VecDeque<usize>,
}

impl<'a> Tier<'a> {
    pub fn new(plan: &'a RequestsPlan) -> Self {
        let pool = |flows: &Vec<usize>| Pool {
            free: flows.iter().copied().collect(),
            waiting: VecDeque::new(),
        };
        Self {
            plan,
            jobs: BTreeMap::new(),
            waiting: VecDeque::new(),
            pools: plan.pools.iter().map(|(&group, flows)| (group, pool(flows))).collect(),
            asking: BTreeMap::new(),
        }
    }

    /// A request of a known kind has come over a connection that has no other.
    pub fn request(&mut self, connection: usize, kind: usize) -> Vec<Step> {
        self.waiting.push_back((connection, kind));
        self.begin_jobs()
    }

    /// The response to what an own flow has asked for has come.
    pub fn response(&mut self, flow: usize) -> Vec<Step> {
        let Some((connection, group)) = self.asking.remove(&flow) else { return Vec::new() };
        let mut steps = Vec::new();
        if let Some(pool) = self.pools.get_mut(&group) {
            pool.free.push_back(flow);
            if let Some(next) = pool.waiting.pop_front() {
                steps.extend(self.ask(next));
            }
        }
        if let Some(job) = self.jobs.get_mut(&connection) {
            job.answered += 1;
        }
        steps.extend(self.go_on(connection));
        steps
    }

    /// All of a response has been written.
    pub fn responded(&mut self, connection: usize) -> Vec<Step> {
        self.jobs.remove(&connection);
        self.begin_jobs()
    }

    fn begin_jobs(&mut self) -> Vec<Step> {
        let most = self.plan.serves_at_once.map_or(usize::MAX, |most| most as usize);
        let mut steps = Vec::new();
        while self.jobs.len() < most {
            let Some((connection, kind)) = self.waiting.pop_front() else { break };
            self.jobs.insert(connection, Job { kind, call: 0, asked: 0, answered: 0 });
            steps.extend(self.go_on(connection));
        }
        steps
    }

    /// Asks as much as the current call admits, or responds after the last one.
    fn go_on(&mut self, connection: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        let Some(job) = self.jobs.get_mut(&connection) else { return steps };
        let calls = &self.plan.kinds[job.kind].calls;
        while calls.get(job.call).is_some_and(|call| job.answered >= call.count) {
            (job.call, job.asked, job.answered) = (job.call + 1, 0, 0);
        }
        let Some(&Call { group, count, at_once, .. }) = calls.get(job.call) else {
            return vec![Step::Respond { connection, kind: job.kind }];
        };
        let more = count.min(job.answered.saturating_add(at_once)) - job.asked;
        job.asked += more;
        if let Some(pool) = self.pools.get_mut(&group) {
            (0..more).for_each(|_| pool.waiting.push_back(connection));
            let ready = pool.waiting.len().min(pool.free.len());
            let ready: Vec<usize> = pool.waiting.drain(..ready).collect();
            steps.extend(ready.into_iter().filter_map(|connection| self.ask(connection)));
        }
        steps
    }

    /// Asks the current call of a job over a free flow.
    fn ask(&mut self, connection: usize) -> Option<Step> {
        let job = self.jobs.get(&connection)?;
        let &Call { kind, group, .. } = self.plan.kinds[job.kind].calls.get(job.call)?;
        let flow = self.pools.get_mut(&group)?.free.pop_front()?;
        self.asking.insert(flow, (connection, group));
        Some(Step::Ask { flow, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Kind;
    use Step::{Ask, Respond};

    const PAGE: usize = 0;
    const ROW: usize = 1;
    const IMAGE: usize = 2;
    const EMPTY: usize = 3;
    const DATABASE: usize = 7;
    const FILES: usize = 9;

    /// A page takes two rows in sequence and then three images, two at a time.
    fn plan(serves_at_once: Option<u32>) -> RequestsPlan {
        let kind =
            |calls: &[Call]| Kind { request_bytes: 1, response_bytes: 1, calls: calls.to_vec() };
        let rows = Call { kind: ROW, group: DATABASE, count: 2, at_once: 1 };
        let images = Call { kind: IMAGE, group: FILES, count: 3, at_once: 2 };
        let none = Call { kind: IMAGE, group: FILES, count: 0, at_once: 1 };
        RequestsPlan {
            kinds: vec![kind(&[rows, images]), kind(&[]), kind(&[]), kind(&[none])],
            clients: Vec::new(),
            pools: [(DATABASE, vec![0]), (FILES, vec![4, 5])].into(),
            serves_at_once,
        }
    }

    #[test]
    fn a_request_is_answered_after_all_of_its_calls() {
        let plan = plan(None);
        let mut tier = Tier::new(&plan);
        assert_eq!(tier.request(2, PAGE), [Ask { flow: 0, kind: ROW }]);
        assert_eq!(tier.response(0), [Ask { flow: 0, kind: ROW }]);
        let images = [Ask { flow: 4, kind: IMAGE }, Ask { flow: 5, kind: IMAGE }];
        assert_eq!(tier.response(0), images);
        assert_eq!(tier.response(5), [Ask { flow: 5, kind: IMAGE }]);
        assert_eq!(tier.response(4), []);
        assert_eq!(tier.response(5), [Respond { connection: 2, kind: PAGE }]);
        assert_eq!(tier.responded(2), []);
        assert_eq!(tier.response(5), [], "nobody asked");
        assert_eq!(tier.request(2, ROW), [Respond { connection: 2, kind: ROW }]);
        assert_eq!(tier.request(3, EMPTY), [Respond { connection: 3, kind: EMPTY }]);
    }

    #[test]
    fn calls_wait_for_a_free_flow_in_their_order() {
        let plan = plan(None);
        let mut tier = Tier::new(&plan);
        assert_eq!(tier.request(1, PAGE), [Ask { flow: 0, kind: ROW }]);
        assert_eq!(tier.request(2, PAGE), []);
        assert_eq!(tier.response(0), [Ask { flow: 0, kind: ROW }], "of the second");
        assert_eq!(tier.response(0), [Ask { flow: 0, kind: ROW }], "of the first again");
        // Now the first has its rows, and its images come from other flows.
        let steps = tier.response(0);
        let images = [Ask { flow: 4, kind: IMAGE }, Ask { flow: 5, kind: IMAGE }];
        assert_eq!(steps[0], Ask { flow: 0, kind: ROW });
        assert_eq!(steps[1..], images);
        // The second's must wait for the first's.
        assert_eq!(tier.response(0), []);
        assert_eq!(tier.response(4), [Ask { flow: 4, kind: IMAGE }]);
    }

    #[test]
    fn no_more_requests_are_served_than_at_once() {
        let plan = plan(Some(1));
        let mut tier = Tier::new(&plan);
        assert_eq!(tier.request(1, ROW), [Respond { connection: 1, kind: ROW }]);
        assert_eq!(tier.request(2, ROW), [], "until the first is written");
        assert_eq!(tier.request(3, ROW), []);
        assert_eq!(tier.responded(1), [Respond { connection: 2, kind: ROW }]);
        assert_eq!(tier.responded(2), [Respond { connection: 3, kind: ROW }]);
        assert_eq!(tier.responded(3), []);
    }
}
