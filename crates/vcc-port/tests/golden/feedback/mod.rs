//! The options of two vcc ends: hello, PACK and FACK.

mod distrust;
mod fack;
mod hello;
mod pack;
mod stripped;

use vcc_engine::sys;
use vcc_frames::wire::*;
use vcc_frames::{options, payload};
use vcc_port::AttachOptions;

use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::dual::{DualRun, Outcome};

/// The initial value of the counter of ECT(0) bytes (RFC 9768, 3.2.1).
const ECT0_INITIAL: u32 = 1;

/// A handshake in which both ends are under vcc.
fn open_agreed(c: &mut Conversation) {
    let opener = c.opener();
    let mut syn = c.connection.syn();
    if opener == ToGuest {
        syn.flags |= ECE | CWR;
        syn.options.extend(options::hello(HELLO_OFFER));
    }
    c.send_packet(opener, 0, &syn);
    let mut syn_ack = c.connection.syn_ack();
    if opener == FromGuest {
        syn_ack.flags |= ECE;
        syn_ack.options.extend(options::hello(HELLO_ACCEPT));
    }
    c.send_packet(opener.other(), 0, &syn_ack);
    c.ack(opener);
    assert!(c.state().has(sys::FLOW_FEEDBACK), "{}", c.run.doing);
}

/// An agreed flow of every shape, with timestamps and without.
fn with_agreed(attach: &AttachOptions, test: impl Fn(&mut Conversation)) {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(attach);
    let mut guest_port = 20_000;
    for shape in Shape::all() {
        for timestamps in [false, true] {
            guest_port += 1;
            run.doing = format!("{shape:?}, timestamps {timestamps}");
            let mut c = Conversation::new(&mut run, shape, guest_port);
            c.connection.offers.timestamps = timestamps;
            open_agreed(&mut c);
            test(&mut c);
        }
    }
    run.assert_all();
}

/// Data of the peer makes a report due.
fn make_due(c: &mut Conversation, bytes: usize, ecn: u8) {
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (ecn, payload(bytes)));
}

/// The guest's data, and the counters of an honest peer that got it.
fn sent_and_heard(c: &mut Conversation) -> Vec<u8> {
    c.data(FromGuest, MSS_BYTES);
    let heard = c.state().heard;
    options::pack(heard.ect0_bytes + MSS_BYTES as u32, heard.ce_bytes)
}

fn ends_with(outcome: &Outcome, option: &[u8]) -> bool {
    outcome.options().ends_with(option) && outcome.frame.ends_with(option)
}

fn says_ours(options: &[u8]) -> bool {
    let name = |at: &[u8]| at[0] == OPTION_EXPERIMENT && at[2..4] == EXPERIMENT_NAME;
    options.windows(4).any(|at| (at[0] == OPTION_PACK && at[1] == 8) || name(at))
}
