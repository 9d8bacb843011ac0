//! Which link a frame takes next: the fewest links to its destination. Where several ways are
//! equally short, a hash of the two hosts chooses (RFC 2992), so that the frames of a flow stay in
//! order, and go back the way that they came.

use crate::{HostId, LinkId};
use std::collections::VecDeque;
use vcc_net::random::mix;

/// The links that are equally good next ones: a range of `Routes::choices`.
#[derive(Debug, Clone, Copy, Default)]
struct Choice {
    start: u32,
    links: u32,
}

/// Nodes are hosts first, then switches.
#[derive(Debug, Clone, Default)]
pub(super) struct Routes {
    hosts: usize,
    /// By node, then by destination.
    table: Vec<Choice>,
    choices: Vec<LinkId>,
}

impl Routes {
    /// `links` are the ends of each; hosts pass nothing on.
    pub fn find(hosts: usize, nodes: usize, links: &[(usize, usize)]) -> Self {
        let mut into: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        let mut out_of: Vec<Vec<LinkId>> = vec![Vec::new(); nodes];
        for (id, &(from, to)) in links.iter().enumerate() {
            into[to].push(from);
            out_of[from].push(id);
        }
        let mut routes =
            Self { hosts, table: vec![Choice::default(); nodes * hosts], choices: Vec::new() };
        for destination in 0..hosts {
            let distances = distances(destination, hosts, &into);
            for node in (0..nodes).filter(|&node| node != destination) {
                let Some(distance) = distances[node] else { continue };
                let start = routes.choices.len();
                let is_nearer = |id: &&LinkId| distances[links[**id].1] == Some(distance - 1);
                routes.choices.extend(out_of[node].iter().filter(is_nearer));
                let links = (routes.choices.len() - start) as u32;
                routes.table[node * hosts + destination] = Choice { start: start as u32, links };
            }
        }
        routes
    }

    pub fn next(&self, node: usize, from: HostId, to: HostId) -> Option<LinkId> {
        if to >= self.hosts {
            return None;
        }
        let Choice { start, links } = self.table[node * self.hosts + to];
        let number = match links {
            0 => return None,
            1 => 0,
            several => mix((from.min(to) << 16 | from.max(to)) as u64) % u64::from(several),
        };
        Some(self.choices[start as usize + number as usize])
    }
}

/// Distance of each node to the destination in links; none without a path.
fn distances(destination: HostId, hosts: usize, into: &[Vec<usize>]) -> Vec<Option<u32>> {
    let mut distances = vec![None; into.len()];
    distances[destination] = Some(0);
    let mut reached = VecDeque::from([(destination, 0)]);
    while let Some((node, distance)) = reached.pop_front() {
        if node < hosts && node != destination {
            continue;
        }
        for &from in &into[node] {
            if distances[from].is_none() {
                distances[from] = Some(distance + 1);
                reached.push_back((from, distance + 1));
            }
        }
    }
    distances
}
