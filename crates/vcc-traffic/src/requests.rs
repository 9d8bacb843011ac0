//! Requests: what they weigh, what a server asks of others before it responds, and who asks.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kind of request. All guests of a run have the same kinds, by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// What the server asks for, one after the other, before it responds.
    pub calls: Vec<Call>,
}

/// Requests of one kind over the flows of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub kind: usize,
    /// The number of the group of flows.
    pub group: usize,
    pub count: u32,
    /// The most of them without a response; at least one.
    pub at_once: u32,
}

/// A guest's part. Flows are positions among those that it sends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestsPlan {
    pub kinds: Vec<Kind>,
    pub clients: Vec<ClientPlan>,
    /// The flows over which the guest makes its calls, by the number of their group.
    pub pools: BTreeMap<usize, Vec<usize>>,
    /// The most requests that it works on; others wait.
    pub serves_at_once: Option<u32>,
}

/// A client: it asks over all of its flows at once, waits for all responses, thinks, and asks again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientPlan {
    pub flows: Vec<usize>,
    /// The kinds that it asks for, and how often in proportion to the others.
    pub asks: Vec<(usize, u32)>,
    pub think_ms: u32,
    /// It thinks for the first time from here on.
    pub starts_at_ns: u64,
    /// The random seed.
    pub seed: u64,
}

impl RequestsPlan {
    /// The first problem of the plan; `is_asking` is true for the flows on which requests are sent.
    pub(crate) fn problem(&self, is_asking: impl Fn(usize) -> bool) -> Option<String> {
        let pooled = self.pools.values().flatten().copied();
        let of_clients = self.clients.iter().flat_map(|client| client.flows.iter().copied());
        let mut flows = pooled.chain(of_clients);
        if let Some(flow) = flows.find(|&flow| !is_asking(flow)) {
            return Some(format!("has no flow of requests in place {flow}"));
        }
        if self.serves_at_once == Some(0) {
            return Some("serves no request at once".into());
        }
        for client in &self.clients {
            if client.flows.is_empty() {
                return Some("has a client without a flow".into());
            }
            if client.asks.iter().all(|&(_, share)| share == 0) {
                return Some("has a client that asks for nothing".into());
            }
        }
        let asked = self.clients.iter().flat_map(|client| &client.asks).map(|&(kind, _)| kind);
        let calls = self.kinds.iter().flat_map(|kind| &kind.calls);
        if let Some(call) = calls.clone().find(|call| call.at_once == 0) {
            return Some(format!("has a call of kind {} with none at once", call.kind));
        }
        let mut asked = asked.chain(calls.map(|call| call.kind));
        let unknown = asked.find(|&kind| kind >= self.kinds.len());
        unknown.map(|kind| format!("asks for kind {kind} of {}", self.kinds.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> RequestsPlan {
        let call = Call { kind: 1, group: 3, count: 2, at_once: 1 };
        let kind = |calls| Kind { request_bytes: 1, response_bytes: 1, calls };
        let client = ClientPlan {
            flows: vec![0],
            asks: vec![(0, 1)],
            think_ms: 0,
            starts_at_ns: 1,
            seed: 1,
        };
        RequestsPlan {
            kinds: vec![kind(vec![call]), kind(Vec::new())],
            clients: vec![client],
            pools: [(3, vec![1])].into(),
            serves_at_once: Some(1),
        }
    }

    #[test]
    fn contradictions_are_reported() {
        let problem = |change: fn(&mut RequestsPlan)| {
            let mut plan = plan();
            change(&mut plan);
            plan.problem(|flow| flow < 2).unwrap_or_default()
        };
        assert_eq!(problem(|_| {}), "");
        let elsewhere = problem(|plan| plan.clients[0].flows.push(2));
        assert_eq!(elsewhere, "has no flow of requests in place 2");
        assert_eq!(problem(|plan| plan.clients[0].flows.clear()), "has a client without a flow");
        assert_eq!(problem(|plan| plan.serves_at_once = Some(0)), "serves no request at once");
        let idle = problem(|plan| plan.clients[0].asks[0].1 = 0);
        assert_eq!(idle, "has a client that asks for nothing");
        let none = problem(|plan| plan.kinds[0].calls[0].at_once = 0);
        assert_eq!(none, "has a call of kind 1 with none at once");
        assert_eq!(problem(|plan| plan.clients[0].asks[0].0 = 2), "asks for kind 2 of 2");
        assert_eq!(problem(|plan| plan.kinds[0].calls[0].kind = 5), "asks for kind 5 of 2");
    }
}
