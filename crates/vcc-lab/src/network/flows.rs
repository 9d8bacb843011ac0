//! From groups of flows to the flows themselves: which host sends to which.

use super::file::{FlowGroup, FlowPattern, Group};
use crate::scenario::Flow;
use std::ops::Range;
use vcc_fabric::HostId;
use vcc_traffic::Pattern;

/// The field that is wrong, and what it may be.
type Refusal = (&'static str, String);

/// Limit, because flows connect one after the other before any of them sends.
const MOST_FLOWS: usize = 5_000;

/// The hosts of a case.
pub(super) struct Hosts<'a> {
    pub groups: &'a [Group],
    /// The receiver of each guest, where the topology has receivers.
    pub peers: &'a [HostId],
    pub phases: u32,
}

impl Hosts<'_> {
    /// The flows of one group, whose number is `number` and whose clients ask for this.
    pub fn flows_of(
        &self,
        number: usize,
        group: &FlowGroup,
        asks: &[(usize, u32)],
    ) -> Result<Vec<Flow>, Refusal> {
        let phases = self.phases_of(group.phases)?;
        let pairs = self.pairs(group)?;
        let workers = workers_of(group)?;
        let flows = pairs.len() * workers as usize;
        if flows > MOST_FLOWS {
            let text = format!("makes {flows} flows: {MOST_FLOWS} are the most");
            return Err(("pattern", text));
        }
        let of_worker = |worker: u32| {
            let (phases, pattern) = (phases.clone(), group.traffic);
            pairs.iter().map(move |&(sender, receiver)| {
                let (phases, asks) = (phases.clone(), asks.to_vec());
                Flow { group: number, sender, receiver, pattern, worker, asks, phases }
            })
        };
        Ok((0..workers).flat_map(of_worker).collect())
    }

    fn pairs(&self, group: &FlowGroup) -> Result<Vec<(HostId, HostId)>, Refusal> {
        let from = self.named("from", &group.from)?;
        let hosts = from.len();
        if group.pattern != FlowPattern::Stride && !group.steps.is_empty() {
            return Err(("steps", "only valid for a stride".into()));
        }
        if group.pattern != FlowPattern::Incast && group.to.is_some() {
            return Err(("to", "only valid for an incast".into()));
        }
        match group.pattern {
            FlowPattern::Peers => self.to_peers(from),
            FlowPattern::Stride => {
                check_steps(&group.steps, &group.from, hosts)?;
                let place = |i: usize, step: u32| from.start + (i + step as usize) % hosts;
                let steps = |i: usize| group.steps.iter().map(move |&step| (i, step));
                let all = (0..hosts).flat_map(steps);
                Ok(all.map(|(i, step)| (from.start + i, place(i, step))).collect())
            }
            FlowPattern::AllToAll if hosts < 2 => {
                let text = format!("needs 2 guests at least, and '{}' has {hosts}", group.from);
                Err(("pattern", text))
            }
            FlowPattern::AllToAll => Ok(product(&from, &from)),
            FlowPattern::Incast => {
                let Some(name) = &group.to else {
                    return Err(("to", "an incast needs the group of guests that receive".into()));
                };
                let to = self.named("to", name)?;
                if to == from {
                    return Err(("to", format!("is '{name}' itself: use 'all-to-all'")));
                }
                Ok(product(&from, &to))
            }
        }
    }

    fn to_peers(&self, from: Range<HostId>) -> Result<Vec<(HostId, HostId)>, Refusal> {
        let pair = |host: HostId| Some((host, *self.peers.get(host)?));
        from.map(pair).collect::<Option<_>>().ok_or_else(|| {
            let text = "this topology has no receivers: use 'stride', 'all-to-all' or 'incast'";
            ("pattern", text.into())
        })
    }

    fn named(&self, field: &'static str, name: &str) -> Result<Range<HostId>, Refusal> {
        match self.groups.iter().any(|group| group.name == name) {
            true => Ok(self.members(name)),
            false => Err((field, format!("there is no group of guests '{name}'"))),
        }
    }

    /// Guests are numbered group by group.
    fn members(&self, name: &str) -> Range<HostId> {
        let count = |group: &Group| group.count.get() as usize;
        let before = self.groups.iter().take_while(|group| group.name != name);
        let start = before.map(count).sum();
        let members = self.groups.iter().find(|group| group.name == name).map_or(0, count);
        start..start + members
    }

    fn phases_of(&self, phases: Option<[u32; 2]>) -> Result<Range<u32>, Refusal> {
        let last = self.phases;
        match phases {
            Some([from, to]) if from < 1 || from > to || to > last => {
                let text = format!("[{from}, {to}] must be two phases in order, from 1 to {last}");
                Err(("phases", text))
            }
            Some([from, to]) => Ok(from - 1..to),
            None => Ok(0..last),
        }
    }
}

fn check_steps(steps: &[u32], group: &str, hosts: usize) -> Result<(), Refusal> {
    if steps.is_empty() {
        return Err(("steps", "a stride needs them: [1, 2] sends to the next two".into()));
    }
    let beyond = |step: &&u32| !(1..hosts.max(1) as u32).contains(step);
    if let Some(step) = steps.iter().find(beyond) {
        let text = format!("{step} does not lead to another one of the {hosts} of '{group}'");
        return Err(("steps", text));
    }
    match (1..steps.len()).find(|&i| steps[..i].contains(&steps[i])) {
        Some(i) => Err(("steps", format!("has {} twice", steps[i]))),
        None => Ok(()),
    }
}

/// All pairs of two different hosts.
fn product(from: &Range<HostId>, to: &Range<HostId>) -> Vec<(HostId, HostId)> {
    let pairs = from.clone().flat_map(|sender| to.clone().map(move |receiver| (sender, receiver)));
    pairs.filter(|(sender, receiver)| sender != receiver).collect()
}

/// The number of workers per sender.
fn workers_of(group: &FlowGroup) -> Result<u32, Refusal> {
    let in_all_phases = matches!(group.traffic, Pattern::Messages(_) | Pattern::Requests(_));
    if in_all_phases && group.phases.is_some() {
        return Err(("phases", "messages and requests are sent in all phases".into()));
    }
    let has_workers = in_all_phases || matches!(group.traffic, Pattern::Transfers(_));
    match group.workers {
        Some(_) if !has_workers => {
            Err(("workers", "only valid for messages, transfers and requests".into()))
        }
        workers => Ok(workers.map_or(1, |workers| workers.get())),
    }
}

/// The guest to which most flows lead; of equals the first.
pub(super) fn busiest(flows: &[Flow], guests: usize) -> HostId {
    let mut flows_to = vec![0_u32; guests];
    let to_guests =
        flows.iter().filter_map(|flow| (flow.receiver < guests).then_some(flow.receiver));
    to_guests.for_each(|receiver| flows_to[receiver] += 1);
    (0..guests).rev().max_by_key(|&guest| flows_to[guest]).unwrap_or(0)
}
