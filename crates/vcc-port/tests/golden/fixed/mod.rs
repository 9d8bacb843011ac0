//! Bytes worked out from the RFCs apart from our code, so that what is expected depends on none
//! of it: one connection, from its SYN to an echoed mark.
//!
//! Frames are in hexadecimal, in the order Ethernet, IP, TCP (ports, seq, ack, offset and flags,
//! window, checksum, urgent pointer), options or payload.

mod complete;
mod feedback;
mod ipv4;
mod ipv6;

use vcc_domain::Verdict;
use vcc_engine::{GuestEcn, Mode, Params, Underlay};
use vcc_port::{AttachOptions, Datapath};

use crate::direction::{Direction, NEXT};
use crate::domain::Domain;
use crate::loaded::Loaded;
use vcc_frames::hex;

struct Step {
    what: &'static str,
    from: Direction,
    comes: &'static str,
    leaves: &'static str,
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// All that the expected bytes depend on, so that other defaults do not change them.
fn options(mode: Mode, feedback: bool) -> AttachOptions {
    AttachOptions::from_params(Params::with(|p| {
        p.underlay = "reno-ecn".parse::<Underlay>().expect("an underlay of the engine").number();
        p.mode = mode.number();
        p.guest_ecn = GuestEcn::Leave.number();
        p.prr = 1;
        p.undo = 1;
        p.pace_push = 1;
        p.feedback = feedback.into();
        p.accecn = 0;
        p.window_max_bytes = 2 << 20;
        p.initial_window_segs = 10;
        p.window_floor_segs = 1;
    }))
}

fn play(steps: &[Step], mode: Mode) {
    if !vcc_testing::can_attach() {
        return;
    }
    let datapath = Loaded::with_timer(&options(mode, false));
    for step in steps {
        play_one(&datapath, step, mode);
    }
}

fn play_one(datapath: &Datapath, step: &Step, mode: Mode) {
    let Step { what, from, comes, leaves } = step;
    let comes = bytes(comes);
    let leaves = if mode == Mode::Shadow { comes.clone() } else { bytes(leaves) };
    let output = datapath.run(from.program(), &comes, 0).expect("it runs");
    assert_eq!(output.return_value, NEXT, "{what}");
    assert_eq!(hex(&output.frame), hex(&leaves), "{what}");
}

/// The driver domain needs no privilege.
fn play_in_domain(steps: &[Step], mode: Mode, feedback: bool) {
    let mut domain = Domain::new(&options(mode, feedback));
    let mut also: Vec<Vec<u8>> = Vec::new();
    for (Step { what, from, comes, leaves }, now_us) in steps.iter().zip(1..) {
        let comes = bytes(comes);
        let leaves = if mode == Mode::Shadow { comes.clone() } else { bytes(leaves) };
        // The last step of those with feedback is the FACK that accompanies the one before.
        if let Some(fack) = also.pop() {
            assert_eq!(hex(&fack), hex(&leaves), "{what}");
            continue;
        }
        let output = domain.send(what, *from, now_us, &comes, 0);
        assert_eq!(output.verdict, Verdict::Pass, "{what}");
        assert_eq!(hex(&output.frame), hex(&leaves), "{what}");
        also.extend(output.also.into_iter().map(|fack| fack.bytes));
    }
    assert!(also.is_empty());
}

fn play_feedback(steps: &[Step]) {
    if !vcc_testing::can_attach() {
        return;
    }
    let datapath = Loaded::with_timer(&options(Mode::Enforce, true));
    let (fack, steps) = steps.split_last().expect("steps");
    for step in steps {
        play_one(&datapath, step, Mode::Enforce);
    }
    let output = datapath.run_clone(&bytes(fack.comes), 0).expect("it runs");
    assert_eq!(output.return_value, NEXT, "{}", fack.what);
    assert_eq!(hex(&output.frame), hex(&bytes(fack.leaves)), "{}", fack.what);
}

#[test]
fn over_ipv4() {
    play(ipv4::STEPS, Mode::Enforce);
}

#[test]
fn over_ipv6() {
    play(ipv6::STEPS, Mode::Enforce);
}

#[test]
fn feedback_over_ipv4() {
    play_feedback(feedback::OVER_IPV4);
}

#[test]
fn feedback_over_ipv6() {
    play_feedback(feedback::OVER_IPV6);
}

#[test]
fn nothing_changes_in_shadow() {
    play(ipv4::STEPS, Mode::Shadow);
    play(ipv6::STEPS, Mode::Shadow);
}

#[test]
fn the_domain_makes_the_same_bytes() {
    for steps in [ipv4::STEPS, ipv6::STEPS] {
        play_in_domain(steps, Mode::Enforce, false);
        play_in_domain(steps, Mode::Shadow, false);
    }
    for steps in [feedback::OVER_IPV4, feedback::OVER_IPV6] {
        play_in_domain(steps, Mode::Enforce, true);
    }
}
