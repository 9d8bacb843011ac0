//! Frames from a device that has summed up the whole frame (CHECKSUM_COMPLETE). The programs'
//! changes must keep the kernel's sum right, or the kernel drops the frame as corrupted.
//! BPF_PROG_RUN checks the sum itself. It also checks one that is no longer valid: a frame whose
//! length changes has no sum (bpf_skb_change_tail makes it CHECKSUM_NONE), so no option is added
//! or cut off here.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys::BPF_F_TEST_SKB_CHECKSUM_COMPLETE;
use libbpf_rs::{ErrorKind, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, ProgramMut};
use vcc_engine::{Mode, sys};

use super::{Step, bytes, ipv4, ipv6, options};
use crate::direction::Direction;
use vcc_frames::hex;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc.bpf.o"));

fn load() -> Object {
    let mut open = ObjectBuilder::default().open_memory(OBJECT).expect("the object opens");
    open.maps_mut().find(|map| map.name() == "flows").unwrap().set_max_entries(16).unwrap();
    let object = open.load().expect("the datapath loads");
    let params = options(Mode::Enforce, false).params.0;
    let port = sys::vcc_port { params, flows_max: 16, ..Default::default() };
    // SAFETY: pointer and length are those of the value, a C struct of integers without padding.
    let value =
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&port).cast(), size_of_val(&port)) };
    let map = |name| object.maps().find(|map| map.name() == name).unwrap();
    map("ports").update(&[0; 4], value, MapFlags::ANY).expect("the parameters are taken");
    let wheel = vec![0; map("wheels").value_size() as usize];
    map("wheels").update(&[0; 4], &wheel, MapFlags::ANY).expect("the wheel is taken");
    for direction in ["from_guest", "to_guest"] {
        let array = format!("call_{direction}");
        let calls = object.maps().find(|map| map.name() == array.as_str()).unwrap();
        for (call, kind) in (0u32..).zip(["fast", "all", "rewrite"]) {
            let program = program(&object, &format!("{kind}_{direction}"));
            let fd = program.as_fd().as_raw_fd().to_ne_bytes();
            calls.update(&call.to_ne_bytes(), &fd, MapFlags::ANY).expect("a program to call");
        }
    }
    object
}

fn program<'object>(object: &'object Object, name: &str) -> ProgramMut<'object> {
    object.progs_mut().find(|program| program.name() == name).expect("a program of the object")
}

fn run(object: &Object, from: Direction, frame: &[u8]) -> libbpf_rs::Result<Vec<u8>> {
    let name = match from {
        Direction::FromGuest => "fast_from_guest",
        Direction::ToGuest => "fast_to_guest",
    };
    let mut out = vec![0; frame.len()];
    program(object, name).test_run(ProgramInput {
        data_in: Some(frame),
        data_out: Some(&mut out),
        flags: BPF_F_TEST_SKB_CHECKSUM_COMPLETE,
        ..ProgramInput::default()
    })?;
    Ok(out)
}

fn play(steps: &[Step]) {
    if !vcc_testing::can_attach() {
        return;
    }
    let object = load();
    for Step { what, from, comes, leaves } in steps {
        match run(&object, *from, &bytes(comes)) {
            Ok(out) => assert_eq!(hex(&out), hex(&bytes(leaves)), "{what}"),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                return vcc_testing::skip("this kernel's BPF_PROG_RUN knows no CHECKSUM_COMPLETE");
            }
            Err(error) => panic!("{what}: the kernel's sum is wrong ({error})"),
        }
    }
}

#[test]
fn complete_sums_over_ipv4() {
    play(ipv4::STEPS);
}

#[test]
fn complete_sums_over_ipv6() {
    play(ipv6::STEPS);
}
