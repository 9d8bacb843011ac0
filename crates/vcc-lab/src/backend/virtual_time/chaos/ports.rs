//! What happens at ports.

use super::super::isn_hash;
use super::dice::Dice;
use super::{CHANGES_FOR_NS, CHANGES_FROM_NS, MS};
use crate::scenario::{Change, Family, MAX_FLOWS, address};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use vcc_domain::{BufferSpec, Ledger, Out, Port, Promise};
use vcc_engine::{Act, Mode, Params, Receive, Underlay};
use vcc_fabric::HostId;

const UNDERLAYS: [&str; 4] = ["reno-ecn", "dctcp", "cubic", "reno"];
const ACTS: [Act; 3] = [Act::Window, Act::Hold, Act::Split];
const RECEIVES: [Receive; 7] = [
    Receive::Guest,
    Receive::Guest,
    Receive::Guest,
    Receive::Guest,
    Receive::Ring,
    Receive::Buffer,
    Receive::Accept,
];

pub fn params(dice: &mut Dice) -> Params {
    let underlay: Underlay = dice.one_of(&UNDERLAYS).parse().expect("an underlay");
    let mode = match dice.below(8) {
        0 | 1 => Mode::Shadow,
        2 => dice.one_of(&[Mode::Drain, Mode::Ignore]),
        _ => Mode::Enforce,
    };
    Params::with(|p| {
        p.underlay = underlay.number();
        p.mode = mode.number();
        p.act = dice.one_of(&ACTS).number();
        p.retransmit = (p.act == Act::Hold.number() && dice.one_in(2)).into();
        p.receive = dice.one_of(&RECEIVES).number();
        p.feedback = (!dice.one_in(4)).into();
        p.emit = dice.one_in(3).into();
        p.window_cap_bytes = if dice.one_in(4) { 20_000 } else { 0 };
    })
}

/// A host's memory, which outlives its port: a ledger, and which connections ended with the port that
/// had promised more of them than it had delivered.
#[derive(Default)]
pub struct Memory(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    promises: BTreeMap<usize, Promise>,
    /// By both ends.
    ended: BTreeSet<[SocketAddr; 2]>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().expect("nobody has panicked with it")
    }

    /// Whether the connection of that host's port has to end, because a promise was broken.
    pub fn has_ended(&self, sender: HostId, port: u16) -> bool {
        let its = [Family::Ipv4, Family::Ipv6]
            .map(|family| SocketAddr::new(address(family, sender), port));
        self.lock().ended.iter().flatten().any(|end| its.contains(end))
    }

    pub fn ended(&self) -> usize {
        self.lock().ended.len()
    }

    fn take(&self) -> Vec<Promise> {
        let mut remembered = self.lock();
        let promises: Vec<_> = std::mem::take(&mut remembered.promises).into_values().collect();
        let ends = |Promise { key, .. }: &Promise| [key.guest(), key.peer()];
        remembered.ended.extend(promises.iter().map(ends));
        promises
    }
}

impl Ledger for Memory {
    fn write(&self, slot: usize, promise: Option<&Promise>) {
        let promises = &mut self.lock().promises;
        match promise {
            Some(promise) => promises.insert(slot, *promise),
            None => promises.remove(&slot),
        };
    }
}

/// Another port takes the place of this one, as after an end of `vcc domain`: it knows the ledger, and
/// nothing else.
fn replace(port: &mut Port, memory: &Arc<Memory>, now_ns: u64, out: &mut Out) {
    *port = Port::with_buffer(*port.params(), MAX_FLOWS as usize, BufferSpec::default());
    port.set_isn_hash(isn_hash());
    let promises = memory.take();
    port.keep_ledger(memory.clone());
    port.end_promises(now_ns, promises, out);
}

/// In order of time, and the hosts' memories.
pub fn changes(dice: &mut Dice, hosts: usize) -> (Vec<Change>, Vec<Arc<Memory>>) {
    let memories: Vec<Arc<Memory>> = (0..hosts).map(|_| Arc::default()).collect();
    let keep = |(host, memory): (HostId, &Arc<Memory>)| {
        let memory = memory.clone();
        let what = Arc::new(move |port: &mut Port, _: u64, _: &mut Out| {
            port.keep_ledger(memory.clone());
        });
        Change { at_ns: 0, host, what }
    };
    let mut changes: Vec<Change> = memories.iter().enumerate().map(keep).collect();
    let mut at_ns = CHANGES_FROM_NS;
    while at_ns < CHANGES_FROM_NS + CHANGES_FOR_NS {
        let host = dice.below(hosts as u64) as usize;
        let memory = memories[host].clone();
        let kind = dice.below(8);
        let params = params(dice);
        let what = Arc::new(move |port: &mut Port, now_ns: u64, out: &mut Out| match kind {
            // It is killed.
            0 => replace(port, &memory, now_ns, out),
            // It ends in order.
            1 => {
                port.end(now_ns, out);
                replace(port, &memory, now_ns, out);
            }
            _ => port.set_params(params),
        });
        changes.push(Change { at_ns, host, what });
        at_ns += dice.below(300 * MS);
    }
    (changes, memories)
}
