//! What the datapath costs: its programs under BPF_PROG_RUN, without devices and their noise.

mod frames;
mod harness;
mod spread;

use std::net::Ipv4Addr;

use serde::Serialize;
use vcc_engine::sys;

use crate::{AttachOptions, Datapath, Error, Program, Result};
use frames::{Endpoint, Segment};
use harness::{Cursor, Harness};
pub use spread::Spread;

/// Runs of one case between two turns of the others, which share the machine's bad moments so.
const RUNS_PER_ROUND: u32 = 10_000;
const PAYLOAD_BYTES: u32 = 1448;
const GUEST: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 1), port: 40_000 };
const PEER: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 2), port: 80 };
const STRANGER: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 3), port: 80 };
/// Far enough from the wrap for the longest measurement.
const GUEST_ISN: u32 = 1_000_000;
const PEER_ISN: u32 = 2_000_000;
const WINDOW: u16 = 512;

/// Nanoseconds a run of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub name: &'static str,
    pub what: &'static str,
    /// As measured, with what repeating and advancing the frame costs.
    pub gross_ns: Spread,
    /// Without that: less the harness of the same round.
    pub ns: Spread,
}

struct Case {
    name: &'static str,
    what: &'static str,
    /// None: the harness alone.
    program: Option<Program>,
    frame: Vec<u8>,
    cursor: Cursor,
}

/// Measures every case in `rounds` interleaved rounds.
pub fn datapath(rounds: u32) -> Result<Vec<Measurement>> {
    let datapath = Datapath::load(&AttachOptions::default())?;
    let harness = Harness::load()?;
    establish(&datapath)?;
    let mut cases = cases();
    let mut samples = vec![Vec::new(); cases.len()];
    // The first round warms caches and branch predictors and does not count.
    for round in 0..=rounds {
        for (case, samples) in cases.iter_mut().zip(&mut samples) {
            let ns = harness.run(&datapath, case, RUNS_PER_ROUND)?;
            if round > 0 {
                samples.push(ns);
            }
        }
    }
    let harness_ns = samples[0].clone();
    let net = |gross: &[f64]| gross.iter().zip(&harness_ns).map(|(ns, own)| ns - own).collect();
    let measured = cases.iter().zip(samples).skip(1);
    Ok(measured
        .map(|(case, gross)| Measurement {
            name: case.name,
            what: case.what,
            ns: Spread::of(net(&gross)),
            gross_ns: Spread::of(gross),
        })
        .collect())
}

/// The harness alone first; then in this order, in which each round's ACKs acknowledge the data
/// of the same round.
fn cases() -> Vec<Case> {
    let data = |to| Segment {
        from: GUEST,
        to,
        seq: 0,
        ack: PEER_ISN + 1,
        flags: sys::TCP_ACK as u8,
        window: WINDOW,
        options: &frames::OPTIONS,
        payload_bytes: PAYLOAD_BYTES as usize,
    };
    let ack = Segment { from: PEER, to: GUEST, payload_bytes: 0, ..data(GUEST) };
    let from_guest = Cursor {
        seq: GUEST_ISN + 1,
        ack: PEER_ISN + 1,
        seq_step: PAYLOAD_BYTES,
        ack_step: 0,
        window: WINDOW,
    };
    let to_guest = Cursor {
        seq: PEER_ISN + 1,
        ack: GUEST_ISN + 1 + PAYLOAD_BYTES,
        seq_step: 0,
        ack_step: PAYLOAD_BYTES,
        window: WINDOW,
    };
    vec![
        Case {
            name: "harness",
            what: "repeating a frame and advancing it to the next segment",
            program: None,
            frame: data(PEER).frame(),
            cursor: from_guest,
        },
        Case {
            name: "parse_only",
            what: "looking at a frame and leaving it alone",
            program: Some(Program::ParseOnly),
            frame: data(PEER).frame(),
            cursor: from_guest,
        },
        Case {
            name: "from_guest_data",
            what: "new data of an established connection, marked ECT(0)",
            program: Some(Program::FromGuest),
            frame: data(PEER).frame(),
            cursor: from_guest,
        },
        Case {
            name: "to_guest_ack",
            what: "an ACK of new data, its window rewritten",
            program: Some(Program::ToGuest),
            frame: ack.frame(),
            cursor: to_guest,
        },
        Case {
            name: "flow_miss",
            what: "data of a connection whose SYN was not seen",
            program: Some(Program::FromGuest),
            frame: data(STRANGER).frame(),
            cursor: from_guest,
        },
    ]
}

/// The handshake of a guest without ECN and a peer with it, through both programs.
fn establish(datapath: &Datapath) -> Result<()> {
    let segment = |from, to, seq, ack, flags: u32, options| Segment {
        from,
        to,
        seq,
        ack,
        flags: flags as u8,
        window: WINDOW,
        options,
        payload_bytes: 0,
    };
    let syn = segment(GUEST, PEER, GUEST_ISN, 0, sys::TCP_SYN, &frames::SYN_OPTIONS[..]);
    let syn_ack_flags = sys::TCP_SYN | sys::TCP_ACK | sys::TCP_ECE;
    let syn_ack =
        segment(PEER, GUEST, PEER_ISN, GUEST_ISN + 1, syn_ack_flags, &frames::SYN_OPTIONS);
    let ack = segment(GUEST, PEER, GUEST_ISN + 1, PEER_ISN + 1, sys::TCP_ACK, &frames::OPTIONS);
    datapath.run(Program::FromGuest, &syn.frame(), 0)?;
    datapath.run(Program::ToGuest, &syn_ack.frame(), 0)?;
    datapath.run(Program::FromGuest, &ack.frame(), 0)?;

    let flows = datapath.flows()?;
    let established = |stage| u32::from(stage) == sys::STAGE_ESTABLISHED;
    match &flows[..] {
        [flow] if established(flow.state.stage) && flow.state.has(sys::FLOW_ECN_FABRIC) => Ok(()),
        _ => Err(Error::System {
            doing: "measure the datapath".into(),
            why: "it did not take the handshake for one with ECN".into(),
        }),
    }
}
