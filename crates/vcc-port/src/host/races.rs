//! Segments on all CPUs, in both directions, of connections that begin, end and are replaced, while
//! timers, sweeps and policies visit them. Afterwards every state and every account is right.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use vcc_engine::FlowState;
use vcc_frames::wire::*;
use vcc_frames::{Packet, options};
use vcc_policy::Policy;
use vcc_testing::{can_attach, eventually};

use super::*;
use crate::test_run::{self, Context};
use crate::{AttachOptions, Datapath, Program, SharedPolicy, counters};

/// How many seconds it takes. `make verify` sets an hour.
const SECONDS: &str = "VCC_RACE_SECONDS";
const SHORT: Duration = Duration::from_secs(4);
/// So many segments a thread between two looks at everything.
const SEGMENTS: u32 = 100_000;
const CONNECTIONS: u32 = 24;
/// Fewer than there are connections, so that some give way and some find no room.
const FLOWS_MAX: u32 = 20;
/// Connections from and to these ports share a pool under one policy and are ignored under the other.
const POLICIES: [&str; 2] = [
    r#"
[[pools]]
name = "p"
window = "100K"
[[rules]]
name = "pooled"
guest_port = "1-12"
pool = "p"
guest_ecn = "override"
[[rules]]
name = "policed"
guest_port = "13-18"
police = true
emit = true
guest_ecn = "override"
[default]
emit = true
idle_closed = "1s"
idle_handshake = "1s"
"#,
    r#"
[[pools]]
name = "q"
window = "50K"
[[rules]]
name = "ignored"
guest_port = "1-4"
mode = "ignore"
[[rules]]
name = "pooled"
guest_port = "5-20"
pool = "q"
guest_ecn = "override"
underlay = "cubic"
[default]
emit = true
underlay = "reno-ecn"
idle_closed = "1s"
idle_handshake = "1s"
"#,
];

/// xorshift64 (Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as u32) % bound
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }
}

/// The next sequence numbers of a connection's guest and peer, which all threads use.
#[derive(Default)]
struct Ends([AtomicU32; 2]);

const GUEST: usize = 0;
const PEER: usize = 1;

/// Some segment of some connection, and the direction that it takes.
fn segment(all: &[Ends], random: &mut Random) -> (Program, Packet) {
    let number = random.below(CONNECTIONS);
    let ends = &all[number as usize].0;
    let from = if random.one_in(2) { GUEST } else { PEER };
    let opener = (number % 2) as usize;
    let addresses = [([192, 0, 2, 1], 1 + number as u16).into(), ([198, 51, 100, 1], 80).into()];
    let mut packet = Packet::new(addresses[from], addresses[1 - from]);
    packet.seq = ends[from].load(Ordering::Relaxed);
    packet.ack = ends[1 - from].load(Ordering::Relaxed);
    match random.below(20) {
        0 | 1 => {
            let syn_ack = from != opener;
            if !syn_ack && random.one_in(4) {
                packet.seq = random.below(u32::MAX);
                ends[from].store(packet.seq.wrapping_add(1), Ordering::Relaxed);
            } else {
                packet.seq = packet.seq.wrapping_sub(1);
            }
            packet.flags = if syn_ack { SYN | ACK | ECE } else { SYN };
            packet.options =
                options::join(&[options::mss(1460), options::wscale(7), options::sack_permitted()]);
        }
        2 => packet.flags |= FIN,
        3 if random.one_in(4) => packet.flags = RST | ACK,
        3 | 4 => packet.seq = packet.seq.wrapping_add(random.below(1 << 20)),
        5 => packet.flags |= ECE,
        6..=9 => packet.ack = packet.ack.wrapping_sub(random.below(20_000)),
        10 => {
            let edge = packet.ack.wrapping_add(3000);
            let block = options::sack(&[(edge, edge.wrapping_add(1448))]);
            packet.options = options::join(&[block]);
        }
        _ => {
            packet.payload = vec![7; 1 + random.below(1448) as usize];
            packet.traffic_class = if random.one_in(8) { 3 } else { 2 };
            if !random.one_in(8) {
                let end = packet.seq.wrapping_add(packet.payload.len() as u32);
                ends[from].store(end, Ordering::Relaxed);
            }
        }
    }
    (if from == GUEST { Program::FromGuest } else { Program::ToGuest }, packet)
}

fn stay_on(cpu: usize) {
    // SAFETY: a set that is valid when zeroed, of the size given; 0 is this thread.
    let status = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    assert_eq!(status, 0, "CPU {cpu}");
}

struct Race {
    shared: SharedPolicy,
    datapath: Datapath,
    programs: [(Program, OwnedFd); 2],
    all: Vec<Ends>,
}

impl Race {
    fn new() -> Self {
        let shared = SharedPolicy::unpinned().expect("a policy");
        Self::apply(&shared, 0);
        let options = AttachOptions { max_flows: FLOWS_MAX, ..AttachOptions::default() };
        let datapath = Datapath::load_under(&shared, 0, &options).expect("a datapath");
        let programs = [Program::FromGuest, Program::ToGuest].map(|it| {
            let program = datapath.program(it).expect("a program");
            (it, program.as_fd().try_clone_to_owned().expect("a descriptor"))
        });
        let all = (0..CONNECTIONS).map(|_| Ends::default()).collect();
        Self { shared, datapath, programs, all }
    }

    fn apply(shared: &SharedPolicy, which: usize) {
        let policy = Policy::parse(POLICIES[which], "policy").expect("valid").policy;
        shared.apply(&policy, &[(0, None.into())]).expect("applied");
    }

    /// Both threads send, while this one changes the policy and visits all flows.
    fn run(&self, seed: u64) {
        let left = AtomicU32::new(CPUS as u32);
        let Self { programs, all, .. } = self;
        thread::scope(|scope| {
            for cpu in 0..CPUS {
                let left = &left;
                scope.spawn(move || {
                    stay_on(cpu % thread::available_parallelism().map_or(1, usize::from));
                    let mut random = Random(seed * CPUS as u64 + cpu as u64 + 1);
                    for _ in 0..SEGMENTS {
                        let (program, packet) = segment(all, &mut random);
                        let at = programs.iter().find(|(it, _)| *it == program).expect("one");
                        test_run::run(at.1.as_fd(), &packet.frame(), Context::default())
                            .expect("it runs");
                    }
                    left.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let mut random = Random(seed + (1 << 40));
            while left.load(Ordering::Relaxed) > 0 {
                match random.below(8) {
                    0 => {
                        self.datapath.forget_flows().expect("forgotten");
                    }
                    1..=3 => {
                        self.datapath.settle_flows().expect("settled");
                        Self::apply(&self.shared, random.below(2) as usize);
                    }
                    _ => {
                        self.datapath.judge_flows().expect("judged");
                    }
                }
                thread::sleep(Duration::from_millis(random.below(5).into()));
            }
        });
    }

    fn entries(&self) -> Vec<sys::vcc_entry> {
        let flows = &self.datapath.maps().flows;
        let value = |tag: Vec<u8>| flows.lookup(&tag, MapFlags::ANY).expect("read");
        let entry = |value: Vec<u8>| from_bytes(&value).expect("an entry");
        flows.keys().filter_map(value).map(entry).collect()
    }

    /// Is the flow in the place where its deadline, or the search for one to evict, finds it?
    fn is_queued(&self, entry: &sys::vcc_entry) -> bool {
        let is_at = |queue: u16, at: u32| {
            // The port's index is 0.
            let place = [&queue.to_ne_bytes()[..], &[0; 2], &at.to_ne_bytes()].concat();
            let found = self.datapath.maps().queued.lookup(&place, MapFlags::ANY);
            found.expect("read").is_some_and(|found| found == to_bytes(&entry.key))
        };
        is_at(entry.due.queue, entry.due.at)
            && (entry.half_open == 0 || is_at(sys::QUEUE_HALF_OPEN as u16, entry.half_open_at))
    }

    /// Timers still visit flows, so what they have just changed may look wrong once.
    fn check(&self, doing: &str) {
        for entry in self.entries() {
            assert!(FlowState(entry.flow).is_sound(), "{doing}: {:?}", entry.flow);
        }
        eventually("no flow is left locked", || self.entries().iter().all(|it| it.lock == 0));
        eventually("each flow has its places in the queues", || {
            self.entries().iter().all(|it| self.is_queued(it))
        });
        eventually("the port's account is that of its table", || {
            let entries = self.entries();
            let half_open = entries.iter().filter(|it| it.half_open != 0).count();
            let used = self.datapath.usage().expect("usage");
            (used.flows, used.half_open) == (entries.len() as u32, half_open as u32)
        });
        assert!(self.datapath.usage().expect("usage").flows <= FLOWS_MAX);
    }

    fn end(&self) {
        self.datapath.forget_flows().expect("forgotten");
        let none = |it: &crate::Usage| (it.flows, it.half_open) == (0, 0);
        eventually("all is forgotten", || none(&self.datapath.usage().expect("usage")));
        let maps = self.datapath.maps();
        assert!(self.entries().is_empty());
        eventually("no place is taken in a queue", || maps.queued.keys().next().is_none());
        for pool in self.shared.pools().expect("pools") {
            let held = (pool.held_bytes, pool.idle_bytes, pool.weight);
            assert_eq!(held, (0, 0, 0), "what the pool `{}` counts of nobody", pool.name);
        }
        let counted = self.datapath.counters().expect("counters");
        for counter in [counters::UNTIMED, counters::TIMER_LATE, counters::REWRITE_FAILED] {
            assert_eq!(counted.get(counter), 0, "{}", counter.name);
        }
    }
}

const CPUS: usize = 2;

#[test]
fn segments_timers_sweeps_and_policies_leave_every_account_right() {
    if !can_attach() {
        return;
    }
    let seconds = std::env::var(SECONDS).ok().map(|it| it.parse().expect(SECONDS));
    let duration = seconds.map_or(SHORT, Duration::from_secs);
    let race = Race::new();
    let begin = Instant::now();
    let mut rounds = 0;
    while begin.elapsed() < duration {
        race.run(rounds + 1);
        race.check(&format!("round {rounds}"));
        race.end();
        rounds += 1;
    }
    let counted = race.datapath.counters().expect("counters");
    println!(
        "figure: {} segments, {} while another CPU held their connection, {} gave way, {} found no room",
        rounds * u64::from(SEGMENTS) * CPUS as u64,
        counted.get(counters::CONTENDED),
        counted.get(counters::GAVE_WAY),
        counted.get(counters::TABLE_FULL),
    );
}
