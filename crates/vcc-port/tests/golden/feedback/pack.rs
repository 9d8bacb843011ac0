//! Reports on pure ACKs of the guest.

use vcc_engine::sys;
use vcc_frames::options;
use vcc_frames::wire::*;

use super::*;
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::setup::usual;

/// With any options of the guest's ACK, or in an ACK of its own, if they leave no room.
#[test]
fn a_report_goes_on_pure_acks() {
    let blocks = |count: u32| {
        let blocks: Vec<_> = (1..=count).map(|i| (i * 3000, i * 3000 + 1448)).collect();
        options::sack(&blocks)
    };
    let stamps = || options::timestamps(7, 8);
    let ended = || [vec![OPTION_END], vec![0x99; 3]].concat();
    let layouts = [
        vec![],
        vec![options::nops(2), stamps()],
        vec![stamps(), options::nops(2)],
        vec![options::nops(1), stamps(), options::nops(1)],
        vec![options::nops(2), stamps(), options::nops(2), blocks(1)],
        vec![options::nops(2), blocks(3)],
        vec![options::nops(2), stamps(), options::nops(2), blocks(2)],
        vec![options::nops(2), stamps(), options::nops(2), blocks(3)],
        vec![options::nops(2), blocks(4)],
        vec![ended()],
        vec![options::nops(2), stamps(), ended()],
    ];
    with_agreed(&usual(), |c| {
        let (mut ect0_bytes, mut ce_bytes) = (ECT0_INITIAL, 0);
        for (bytes, layout) in (1..).map(|i| i * 100).zip(&layouts) {
            for ecn in [ECT_0, ECT_1, CE] {
                make_due(c, bytes, ecn);
                *(if ecn == CE { &mut ce_bytes } else { &mut ect0_bytes }) += bytes as u32;
                let own = layout.concat();
                let room = own.len() <= 32;
                let out = c.send(FromGuest, |p| p.options = own.clone());
                let pack = options::pack(ect0_bytes, ce_bytes);
                let fack = options::fack(ect0_bytes, ce_bytes);
                assert_eq!(ends_with(&out, &pack), room, "{}: {own:02x?}", c.run.doing);
                assert_eq!(out.fack.is_some(), !room);
                assert!(out.fack.is_none_or(|frame| frame.ends_with(&fack)));
                // Once.
                let again = c.send(FromGuest, |p| p.options = own.clone());
                assert!(!says_ours(again.options()) && again.fack.is_none());
            }
        }
    });
}

/// Ethernet fills a short frame up to 60 bytes: the option takes the padding's place.
#[test]
fn padding_behind_an_ack_is_no_part_of_it() {
    with_agreed(&usual(), |c| {
        for padding in [1, 2, 6, 7, 8, 9, 14, 100] {
            make_due(c, 100, CE);
            let out = c.send(FromGuest, |p| p.padding = vec![0xa5; padding]);
            assert_eq!(out.action.emit, sys::EMIT_PACK as u8);
            assert_eq!(out.frame.len(), out.at.end);

            let pack = sent_and_heard(c);
            let own = c.connection.packet(ToGuest).options;
            let out = c.send(ToGuest, |p| {
                p.options.extend(&pack);
                p.padding = vec![0xa5; padding];
            });
            assert_eq!((out.options(), out.frame.len()), (&own[..], out.at.end));
            // Where nothing is cut off the padding stays.
            let pack = sent_and_heard(c);
            let out = c.send(ToGuest, |p| {
                p.options = options::join(&[pack.clone(), options::nops(1)]);
                p.padding = vec![0xa5; padding];
            });
            assert_eq!(out.frame.len(), out.at.end + padding);
        }
    });
}

/// A report waits for two segments' worth, or a mark.
#[test]
fn little_that_came_unmarked_waits() {
    with_agreed(&usual(), |c| {
        let mss = usize::from(c.state().mss_bytes);
        make_due(c, mss, ECT_0);
        assert!(c.data(FromGuest, 10).fack.is_none());
        make_due(c, mss - 1, ECT_0);
        assert!(c.data(FromGuest, 10).fack.is_none());
        make_due(c, 1, ECT_0);
        assert!(c.data(FromGuest, 10).fack.is_some());
        make_due(c, 1, 0);
        assert!(c.data(FromGuest, 10).fack.is_none(), "not ECN-capable, not counted");
        make_due(c, 1, CE);
        assert!(c.data(FromGuest, 10).fack.is_some());
        make_due(c, 1, ECT_0);
        assert!(ends_with(&c.ack(FromGuest), &options::pack(ECT0_INITIAL + 2 * mss as u32 + 1, 1)));
    });
}
