//! The guest never sees the options of vcc.

use vcc_engine::sys;
use vcc_frames::wire::*;
use vcc_frames::{options, payload};

use super::*;
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::setup::usual;

/// At the very end of a pure ACK it is cut off, anywhere else it turns into NOPs.
#[test]
fn reports_leave_what_the_guest_gets() {
    with_agreed(&usual(), |c| {
        let stamps = options::timestamps(7, 8);
        for before in 0..12 {
            for after in 0..8 {
                for bytes in [0, 700] {
                    let pack = sent_and_heard(c);
                    let parts = [options::nops(before), pack, options::nops(after), stamps.clone()];
                    let last = [options::nops(before), stamps.clone(), options::nops(after)];
                    for parts in [parts.to_vec(), [&last[..], &parts[1..2]].concat()] {
                        let own = options::join(&parts);
                        if own.len() > 40 {
                            continue;
                        }
                        let out = c.send(ToGuest, |p| {
                            p.options = own.clone();
                            p.payload = payload(bytes);
                        });
                        assert!(!says_ours(out.options()), "{own:02x?}");
                        let is_last = own.ends_with(&parts[parts.len() - 1])
                            && parts[parts.len() - 1][0] == OPTION_PACK;
                        let cut = if is_last && bytes == 0 { 8 } else { 0 };
                        assert_eq!(out.options().len(), own.len() - cut, "{own:02x?}");
                    }
                }
            }
        }
        assert!(c.state().has(sys::FLOW_FEEDBACK_HEARD));
        assert_eq!(c.state().forged, 0);
    });
}

/// All of them, where there are several; the last one counts.
#[test]
fn several_options_of_ours_leave_together() {
    with_agreed(&usual(), |c| {
        let pack = sent_and_heard(c);
        for own in [
            [options::pack(0, 0), pack.clone()].concat(),
            [options::hello(HELLO_OFFER), pack.clone()].concat(),
            [options::pack(5, 5), options::hello(HELLO_ACCEPT), options::nops(4), pack].concat(),
        ] {
            for from in [ToGuest, FromGuest] {
                let out = c.send(from, |p| p.options = own.clone());
                assert_eq!(out.options(), options::nops(own.len()), "{from:?}");
            }
        }
    });
}

/// A kind of ours of another length or version is no report; and not for the guest either.
#[test]
fn what_is_not_quite_ours_leaves_too() {
    with_agreed(&usual(), |c| {
        c.connection.offers.timestamps = false;
        for length in 2..=40u8 {
            let body = |head: &[u8]| {
                let mut option = head.to_vec();
                option.resize(length.into(), 9);
                options::join(&[option])
            };
            let named = [&[OPTION_EXPERIMENT, length], &EXPERIMENT_NAME[..]].concat();
            let mut bad = vec![];
            if length != 8 {
                bad.push(body(&[OPTION_PACK, length]));
            }
            if length >= 4 {
                bad.push(body(&named));
            }
            if length >= 6 {
                bad.push(body(&[&named[..], &[VERSION + 1, FACK]].concat()));
                bad.push(body(&[&named[..], &[VERSION, 4]].concat()));
            }
            for own in bad {
                for from in [ToGuest, FromGuest] {
                    let forged = c.state().forged;
                    let out = c.send(from, |p| p.options = own.clone());
                    let rest = own.len() - usize::from(length);
                    let expected = [options::nops(length.into()), options::nops(rest)].concat();
                    assert_eq!(out.options(), expected, "{own:02x?}");
                    assert_eq!(c.state().forged, forged.saturating_add(1), "{own:02x?}");
                }
            }
            // Another's experiment by the same kind (RFC 6994).
            if length >= 4 {
                let other = body(&[OPTION_EXPERIMENT, length, 0xf9, 0x89]);
                for from in [ToGuest, FromGuest] {
                    assert_eq!(c.send(from, |p| p.options = other.clone()).options(), other);
                }
            }
        }
    });
}

/// Malformed options are neither trusted nor removed.
#[test]
fn options_of_ours_past_the_end_are_not_read() {
    with_agreed(&usual(), |c| {
        for own in [
            [options::nops(1), options::pack(7, 7)[..7].to_vec()].concat(),
            [options::nops(2), options::fack(7, 7)[..10].to_vec()].concat(),
            vec![OPTION_NOP, OPTION_NOP, OPTION_PACK, 8],
            vec![OPTION_NOP, OPTION_NOP, OPTION_NOP, OPTION_PACK],
            vec![OPTION_EXPERIMENT, 8, b'v', b'c'],
            [vec![OPTION_PACK, 1], options::nops(6)].concat(),
            [vec![OPTION_EXPERIMENT, 0], options::nops(6)].concat(),
        ] {
            for from in [ToGuest, FromGuest] {
                let heard = c.state().heard;
                let out = c.send(from, |p| p.options = own.clone());
                assert_eq!(out.options(), own, "{from:?}");
                assert_eq!(c.state().heard, heard, "{own:02x?}");
            }
        }
    });
}
