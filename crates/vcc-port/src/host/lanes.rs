//! Lanes of runs that preempt each other, which `timers::without` pretends: other runs' are taken here.

use std::os::fd::AsFd;

use libbpf_rs::{MapCore, MapFlags};
use vcc_engine::{Params, sys};
use vcc_frames::Packet;
use vcc_testing::can_attach;

use crate::test_run::{self, Context};
use crate::{AttachOptions, Datapath, Program, counters, maps};

const NEXT: i32 = -1;
const DROP: i32 = 2;

/// The task of a run that is preempted all the time.
const TASK: u64 = 7;

fn owners(datapath: &Datapath) -> Vec<Vec<u64>> {
    let values = datapath.maps().lanes.lookup_percpu(&[0; 4], MapFlags::ANY);
    let values = values.expect("read").expect("there");
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    values.iter().map(|value| value.chunks_exact(8).map(word).collect()).collect()
}

/// On each CPU, the first lanes are other runs'.
fn take(datapath: &Datapath, taken: u32) {
    let lane = |lane| if lane < taken { TASK } else { 0 };
    let value: Vec<u8> = (0..sys::LANES).flat_map(|it| lane(it).to_ne_bytes()).collect();
    let cpus = libbpf_rs::num_possible_cpus().expect("a number");
    let written = datapath.maps().lanes.update_percpu(&[0; 4], &vec![value; cpus], MapFlags::ANY);
    written.expect("written");
}

#[test]
fn a_run_has_a_lane_that_no_other_has() {
    if !can_attach() || !maps::has_lanes() {
        return;
    }
    let datapath =
        Datapath::load(&AttachOptions::from_params(Params::default())).expect("it loads");
    let run = |port: u16| {
        let syn = Packet::syn(([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 2).into());
        datapath.run(Program::FromGuest, &syn.frame(), 0).expect("it runs").return_value
    };
    let flows = || datapath.usage().expect("usage").flows;
    for taken in 0..sys::LANES {
        take(&datapath, taken);
        let before = owners(&datapath);
        assert_eq!((run(1 + taken as u16), flows()), (NEXT, 1 + taken));
        assert_eq!(owners(&datapath), before, "it has left its own");
    }
    take(&datapath, sys::LANES);
    assert_eq!((run(99), flows()), (DROP, sys::LANES), "there is none for it");
    let counted = datapath.counters().expect("counters");
    assert_eq!(counted.get(counters::REWRITE_FAILED), 1);
    // The program that turns the wheels has one of its own.
    let turn = datapath.program(Program::Turn).expect("a program");
    let turned = test_run::run(turn.as_fd(), &[0; 64], Context::default()).expect("it runs");
    assert_eq!(turned.return_value, 0);
}
