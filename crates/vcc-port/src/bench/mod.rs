//! What the datapath costs: its programs under BPF_PROG_RUN, without devices and their noise.

pub(crate) mod frames;
mod harness;
mod ruled;
mod spread;
mod yardstick;

use std::net::Ipv4Addr;
use std::{io, mem};

use serde::Serialize;
use vcc_engine::sys;

use crate::{AttachOptions, Datapath, Error, Flow, Program, Result, counters};
use frames::{Endpoint, Segment};
use harness::{Cursor, Harness, Next, Restore};
pub use spread::Spread;
pub use yardstick::Yardstick;

/// Runs of one case between two turns of the others, which share the machine's bad moments so.
const RUNS_PER_ROUND: u32 = 10_000;
/// Of these in one go, where each leaves a clone to the kernel, which keeps 1000 waiting
/// (net.core.netdev_max_backlog) and works on them after the last.
const CLONES_AT_ONCE: u32 = 500;
const PAYLOAD_BYTES: u32 = 1448;
const GUEST: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 1), port: 40_000 };
const PEER: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 2), port: 80 };
const STRANGER: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 3), port: 80 };
/// This one is under vcc too.
const AGREED: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 4), port: 80 };
/// Far enough from the wrap for the longest measurement.
const GUEST_ISN: u32 = 1_000_000;
const PEER_ISN: u32 = 2_000_000;
const WINDOW: u16 = 512;
/// Ethernet, IPv4, TCP, timestamps.
const PACK_AT: u32 = 14 + 20 + 20 + 12;

/// Nanoseconds a run of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub name: &'static str,
    pub what: &'static str,
    /// As measured, with what repeating and advancing the frame costs.
    pub gross_ns: Spread,
    /// Without that: less what the harness alone took just before.
    pub ns: Spread,
}

struct Case {
    name: &'static str,
    what: &'static str,
    program: Program,
    frame: Vec<u8>,
    cursor: Cursor,
    next: Next,
    restore: Option<Restore>,
    at_once: u32,
}

/// A datapath with what is measured of it.
struct Subject {
    datapath: Datapath,
    harness: Harness,
    cases: Vec<Case>,
}

impl Subject {
    /// One without a policy.
    fn plain() -> Result<Self> {
        let datapath = Datapath::load(&AttachOptions::default())?;
        establish(&datapath, PEER, false)?;
        establish(&datapath, AGREED, true)?;
        Ok(Self { harness: Harness::load(&datapath)?, datapath, cases: cases() })
    }
}

/// Measures every case in `rounds` interleaved rounds.
pub fn datapath(rounds: u32) -> Result<Vec<Measurement>> {
    let mut subjects = vec![Subject::plain()?];
    for size in ruled::SIZES {
        subjects.push(ruled::subject(size)?);
    }
    let count: usize = subjects.iter().map(|subject| subject.cases.len()).sum();
    let mut samples = vec![(Vec::new(), Vec::new()); count];
    // The first round warms caches and branch predictors and does not count.
    for round in 0..=rounds {
        let cases = subjects.iter_mut().flat_map(|Subject { harness, cases, .. }| {
            let harness = &*harness;
            cases.iter_mut().map(move |case| (harness, case))
        });
        for ((harness, case), (net, gross)) in cases.zip(&mut samples) {
            let turns = RUNS_PER_ROUND / case.at_once;
            let mut sums = [0.0; 2];
            for _ in 0..turns {
                let took = harness.run(case, case.at_once)?;
                sums = [sums[0] + took[0], sums[1] + took[1]];
            }
            let [own_ns, gross_ns] = sums.map(|sum| sum / f64::from(turns));
            if round > 0 {
                gross.push(gross_ns);
                net.push(gross_ns - own_ns);
            }
        }
    }
    subjects.iter().try_for_each(|subject| require_valid(&subject.datapath))?;
    let measured = subjects.iter().flat_map(|subject| &subject.cases).zip(samples);
    Ok(measured
        .map(|(case, (net, gross))| Measurement {
            name: case.name,
            what: case.what,
            ns: Spread::of(net),
            gross_ns: Spread::of(gross),
        })
        .collect())
}

/// Where the data of one run goes on from that of the run before.
const FROM_GUEST: Cursor = Cursor {
    seq: GUEST_ISN + 1,
    ack: PEER_ISN + 1,
    seq_step: PAYLOAD_BYTES,
    ack_step: 0,
    window: WINDOW,
};
const TO_GUEST: Cursor = Cursor {
    seq: PEER_ISN + 1,
    ack: GUEST_ISN + 1 + PAYLOAD_BYTES,
    seq_step: 0,
    ack_step: PAYLOAD_BYTES,
    window: WINDOW,
};

fn case(
    name: &'static str,
    what: &'static str,
    program: Program,
    frame: Segment,
    cursor: Cursor,
) -> Case {
    Case {
        name,
        what,
        program,
        frame: frame.frame(),
        cursor,
        next: match program {
            Program::ParseFromGuest => Next::Parse,
            _ => Next::Translate,
        },
        restore: None,
        at_once: RUNS_PER_ROUND,
    }
}

fn data(to: Endpoint) -> Segment<'static> {
    segment(GUEST, to, &frames::OPTIONS, PAYLOAD_BYTES as usize)
}

/// In this order, in which each round's ACKs acknowledge the data of the same round.
fn cases() -> Vec<Case> {
    let (from_guest, to_guest) = (FROM_GUEST, TO_GUEST);
    let standing = Cursor { seq_step: 0, ..from_guest };
    let due = Restore {
        key: key(GUEST, AGREED),
        ect0_bytes: 0,
        pack_at: 0,
        flow_flags: sys::FLOW_REPORT_DUE | sys::FLOW_REPORT_CE,
        mark: 0,
    };
    let pack = Restore {
        // It starts at 1 (RFC 9768, 3.2.1), and the first report is of one segment.
        ect0_bytes: 1 + PAYLOAD_BYTES,
        pack_at: PACK_AT,
        flow_flags: 0,
        ..due
    };
    let clone = Restore { flow_flags: 0, mark: sys::FACK_MARK, ..due };
    vec![
        case(
            "parse_only",
            "looking at a frame and leaving it alone",
            Program::ParseFromGuest,
            data(PEER),
            from_guest,
        ),
        case(
            "from_guest_data",
            "new data of an established connection, marked ECT(0)",
            Program::FromGuest,
            data(PEER),
            from_guest,
        ),
        case(
            "to_guest_ack",
            "an ACK of new data, its window rewritten",
            Program::ToGuest,
            segment(PEER, GUEST, &frames::OPTIONS, 0),
            to_guest,
        ),
        case(
            "flow_miss",
            "data of a connection whose SYN was not seen",
            Program::FromGuest,
            data(STRANGER),
            from_guest,
        ),
        Case {
            restore: Some(Restore { flow_flags: 0, ..due }),
            next: Next::Clone,
            at_once: CLONES_AT_ONCE,
            ..case(
                "clone_only",
                "a clone of new data, sent by the kernel: for comparison",
                Program::FromGuest,
                data(AGREED),
                standing,
            )
        },
        Case {
            restore: Some(due),
            at_once: CLONES_AT_ONCE,
            ..case(
                "fack",
                "new data, and a clone of it sent to become a FACK",
                Program::FromGuest,
                data(AGREED),
                from_guest,
            )
        },
        Case {
            restore: Some(clone),
            ..case(
                "fack_clone",
                "such a clone, cut to its header and made a FACK",
                Program::FromGuest,
                segment(GUEST, AGREED, &frames::OPTIONS, 8),
                standing,
            )
        },
        Case {
            restore: Some(pack),
            ..case(
                "pack_consume",
                "an ACK of new data, its PACK read and cut off",
                Program::ToGuest,
                segment(AGREED, GUEST, &frames::PACK_OPTIONS, 0),
                to_guest,
            )
        },
        Case {
            restore: Some(due),
            ..case(
                "pack_add",
                "an ACK of the guest, a PACK added",
                Program::FromGuest,
                segment(GUEST, AGREED, &frames::OPTIONS, 0),
                standing,
            )
        },
    ]
}

fn segment(from: Endpoint, to: Endpoint, options: &[u8], payload_bytes: usize) -> Segment<'_> {
    Segment {
        from,
        to,
        seq: 0,
        ack: PEER_ISN + 1,
        flags: sys::TCP_ACK as u8,
        window: WINDOW,
        options,
        payload_bytes,
    }
}

/// The flow's, as the datapath has it.
fn key(guest: Endpoint, peer: Endpoint) -> [u8; size_of::<sys::vcc_key>()] {
    let addresses = [guest, peer].map(|end| end.address.to_ipv6_mapped().octets());
    let ports = [guest, peer].map(|end| end.port.to_be_bytes());
    let bytes = [addresses.concat(), ports.concat(), vec![0; 4]].concat();
    bytes.try_into().unwrap_or_else(|_| unreachable!("two addresses, two ports, VLAN"))
}

/// Every segment was what it was meant to be, or the figures are of something else.
fn require_valid(datapath: &Datapath) -> Result<()> {
    let counted = datapath.counters()?;
    let never = [
        counters::BAD_OPTIONS,
        counters::CONTENDED,
        counters::DROPPED,
        counters::FORGED,
        counters::MALFORMED,
        counters::REPORT_LOST,
        counters::REWRITE_FAILED,
    ];
    let wrong = |why: String| Error::System { doing: "measure the datapath".into(), why };
    if let Some(counter) = never.into_iter().find(|counter| counted.get(*counter) > 0) {
        let times = counted.get(counter);
        return Err(wrong(format!("{times} segments were `{}`", counter.meaning)));
    }
    for flow in datapath.flows()? {
        let heard = flow.state.has(sys::FLOW_FEEDBACK_HEARD);
        let lost = flow.state.has(sys::FLOW_FEEDBACK_LOST);
        if heard != flow.state.has(sys::FLOW_FEEDBACK) || lost {
            return Err(wrong("the reports were not believed".into()));
        }
    }
    Ok(())
}

/// The handshake of a guest without ECN and a peer with it, through both programs. The peer may be
/// under vcc too.
fn establish(datapath: &Datapath, peer: Endpoint, agreed: bool) -> Result<()> {
    let open = |from, to, seq, ack, flags: u32, options| Segment {
        seq,
        ack,
        flags: flags as u8,
        ..segment(from, to, options, 0)
    };
    let syn = open(GUEST, peer, GUEST_ISN, 0, sys::TCP_SYN, &frames::SYN_OPTIONS[..]);
    let syn_ack_flags = sys::TCP_SYN | sys::TCP_ACK | sys::TCP_ECE;
    let accepting = [&frames::SYN_OPTIONS[..], &frames::ACCEPT].concat();
    let answer = if agreed { &accepting } else { &frames::SYN_OPTIONS[..] };
    let syn_ack = open(peer, GUEST, PEER_ISN, GUEST_ISN + 1, syn_ack_flags, answer);
    let ack = open(GUEST, peer, GUEST_ISN + 1, PEER_ISN + 1, sys::TCP_ACK, &frames::OPTIONS);
    datapath.run(Program::FromGuest, &syn.frame(), 0)?;
    datapath.run(Program::ToGuest, &syn_ack.frame(), 0)?;
    datapath.run(Program::FromGuest, &ack.frame(), 0)?;

    let flows = datapath.flows()?;
    let is_it = |flow: &&Flow| flow.peer.ip() == peer.address;
    let expected = sys::FLOW_ECN_FABRIC | if agreed { sys::FLOW_FEEDBACK } else { 0 };
    match flows.iter().find(is_it).map(|flow| flow.state) {
        Some(state)
            if u32::from(state.stage) == sys::STAGE_ESTABLISHED
                && state.flags & expected == expected =>
        {
            Ok(())
        }
        _ => Err(Error::System {
            doing: "measure the datapath".into(),
            why: "it did not take the handshake for what it was".into(),
        }),
    }
}

/// Keeps the calling thread on one CPU. Fails where there is no such CPU.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid; CPU_SET ignores what lies beyond it.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid and of the size given; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
