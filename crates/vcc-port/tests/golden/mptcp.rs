//! SYNs with MPTCP options (RFC 8684): subflows of MPTCP share a window, which vcc cannot control.

use vcc_engine::{Mode, Params, Underlay};
use vcc_frames::options;
use vcc_frames::wire::*;

use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::setup::{usual, usually};

/// MP_CAPABLE, version 1, of a SYN (RFC 8684, 3.1), and MP_JOIN (3.2).
const MP_CAPABLE: [u8; 4] = [OPTION_MPTCP, 4, 0x01, 0x81];
const MP_JOIN: [u8; 12] = [OPTION_MPTCP, 12, 0x10, 1, 1, 2, 3, 4, 5, 6, 7, 8];

/// Opens a connection; returns the options of the SYN and of the SYN-ACK as they leave.
fn open(run: &mut DualRun, opener: Direction, offer: &[u8], port: u16) -> [Vec<u8>; 2] {
    let mut c = Conversation::new(run, Shape::plain(opener), port);
    let with = |own: Vec<u8>| options::join(&[options::mss(1460), offer.to_vec(), own]);
    let mut syn = c.connection.syn();
    syn.options = with(options::wscale(7));
    let asked = c.send_packet(opener, 0, &syn);
    let mut syn_ack = c.connection.syn_ack();
    syn_ack.flags |= asked.flags() & ECE;
    syn_ack.options = with(options::wscale(7));
    let answered = c.send_packet(opener.other(), 0, &syn_ack);
    c.ack(opener);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
    [asked.options().to_vec(), answered.options().to_vec()]
}

#[test]
fn syns_of_a_controlled_connection_offer_no_mptcp() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut ports = 20_000..;
    for opener in Direction::BOTH {
        for offer in [&MP_CAPABLE[..], &MP_JOIN] {
            for left in open(&mut run, opener, offer, ports.next().expect("a port")) {
                assert_eq!(left[..2], [OPTION_MSS, 4], "{opener:?}: other options stay");
                assert_eq!(left[4..][..offer.len()], vec![OPTION_NOP; offer.len()], "{opener:?}");
            }
        }
    }
    run.assert_all();
}

#[test]
fn it_stays_where_nothing_is_changed() {
    if !vcc_testing::can_attach() {
        return;
    }
    let shadow = Params::with(|p| p.mode = Mode::Shadow.number());
    let transparent =
        Params::with(|p| p.underlay = "transparent".parse::<Underlay>().expect("a name").number());
    for params in [shadow, transparent] {
        let mut run = DualRun::new(&usually(params));
        for (opener, port) in Direction::BOTH.into_iter().zip(20_000..) {
            for left in open(&mut run, opener, &MP_CAPABLE, port) {
                assert_eq!(left[4..8], MP_CAPABLE, "{opener:?}");
            }
        }
        run.assert_all();
    }
}
