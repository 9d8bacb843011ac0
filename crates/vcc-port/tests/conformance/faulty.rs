//! That a script which does not hold, and a port that changes what it may not, are noticed.

use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};
use vcc_testing::on_a_host;

use crate::across::{self, Handshake};
use crate::bed::{Lane, Mode};
use crate::new_peer;
use crate::play::play;
use crate::script::Script;
use crate::wire::Seen;

const OPENED: &str = "connect\n> S 0:0(0)\n< S. 0:0(0) ack 1 <mss 1024>\n> . 1:1(0) ack 1\n";

#[test]
fn a_script_that_does_not_hold_is_reported() {
    // The last lines of scripts, where they fail, and why.
    let cases = [
        ("> . 1:1(0) ack 2", 5, "the guest sends nothing"),
        ("send 9\n> P. 1:9(8) ack 1", 6, "the length"),
        ("send 9\n> . 1:10(9) ack 1", 6, "flags"),
        ("send 9\n> P. 2:11(9) ack 1", 6, "the sequence number"),
        ("send 9\n> P. 1:10(9) ack 1 win 7", 6, "the window"),
        ("send 9\n> P. 1:10(9) ack 1 <TS>", 6, "options"),
        ("send 9\n> P. 1:10(9) ack 1\nat fabric ce P. 1:10(9) ack 1", 6, "the ECN field"),
        ("< . 1:1(0) ack 1\nat guest . 1:1(0) ack 2", 5, "the acknowledgement"),
        ("< . 1:1(0) ack 1\nat guest nothing", 5, "reached the guest"),
        ("send 9", 5, "which is not in the script"),
        ("send 9\n> P. 1:10(9) ack 1 by card 2", 6, "the guest sends this by its other card"),
        (
            "route by card 2\nsend 9\n> P. 1:10(9) ack 1",
            7,
            "the guest sends this by its other card",
        ),
        ("route by card 2\nsend 9", 6, "which is not in the script"),
        ("route by card 2\nsend 9\n> P. 1:9(8) ack 1 by card 2", 7, "the length"),
        ("pause\n< P. 1:2(1) ack 1\n> . 1:1(0) ack 2", 7, "the guest sends nothing"),
        ("pause\nsend 9\n> P. 1:10(9) ack 1", 7, "the guest sends nothing"),
        ("pause\nquiet", 6, "the guest is paused"),
        ("pause\n< P. 1:2(1) ack 1\nresume", 7, "which is not in the script"),
        ("< F. 1:1(0) ack 1\n> . 1:1(0) ack 2\nreceive 1", 7, "the stream ends"),
    ];
    on_a_host(|| {
        let mut lane = Lane::create(&[(Mode::Plain, 1)]).remove(0);
        let guest = lane.guest.clone();
        let reports = guest.inside(|| {
            lane.patience = std::time::Duration::from_millis(200);
            cases.map(|(text, line, why)| {
                let script = Script::read_all("wrong", &format!("{OPENED}{text}"));
                let script = script.expect("a script").remove(0);
                (play(&script, &mut lane, new_peer()), line, why)
            })
        });
        for (report, line, why) in reports.expect("inside") {
            let report = report.expect_err(why);
            assert!(report.starts_with(&format!("wrong:{line}: plain: ")), "{report}");
            assert!(report.lines().next().is_some_and(|first| first.contains(why)), "{report}");
        }
    });
}

#[test]
fn a_port_that_does_not_forget_is_reported() {
    on_a_host(|| {
        let mut lane = Lane::create(&[(Mode::Dctcp, 1)]).remove(0);
        let guest = lane.guest.clone();
        let played = guest.inside(|| {
            lane.patience = std::time::Duration::from_millis(200);
            let script = Script::read_all("wrong", &format!("{OPENED}forgotten"));
            play(&script.expect("a script").remove(0), &mut lane, new_peer())
        });
        let report = played.expect("inside").expect_err("it is known");
        assert!(report.starts_with("wrong:5: dctcp: the port has not forgotten"), "{report}");
    });
}

#[test]
fn a_script_that_cannot_be_read_is_refused() {
    for (text, why) in [
        ("connect\n> S 0:0(1)", "x:2: > S 0:0(1): 0:0(1) is not SEQ:END(BYTES)"),
        ("> . 1:1(0)", "go together"),
        ("> Q 1:1(0)", "Q is no flag"),
        ("> S 0:0(0) <mss>x", "the options have no end"),
        ("> S 0:0(0) <mess 1>", "mess 1 is no option"),
        ("[cubic] connect", "cubic is no mode"),
        ("at fabric S 0:0(0)", "no segment before it"),
        ("connect\nat fabric S 0:0(0)", "is about what the guest sends"),
        ("> S 0:0(0) by card 2\nat fabric S 0:0(0)", "card 2 has no port"),
        ("> S 0:0(0) by card 3", "by is nothing of a segment"),
        ("route by card 3", "there is no such line"),
        ("vary A\nset tcp_sack {B}", "B is not in the line"),
        ("jump", "there is no such line"),
    ] {
        let refused = Script::read_all("x", text).expect_err(text);
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn choices_of_a_script_are_all_made() {
    let scripts = Script::read_all("x", "vary A B\nset tcp_sack {A}\nset tcp_ecn {B?2|1}");
    let texts: Vec<String> = scripts
        .expect("scripts")
        .iter()
        .map(|script| script.events.iter().map(|event| format!("{}; ", event.text)).collect())
        .collect();
    assert_eq!(texts[0], "set tcp_sack 0; set tcp_ecn 1; ");
    assert_eq!(texts[3], "set tcp_sack 1; set tcp_ecn 2; ");
    assert_eq!(texts.len(), 4);
}

fn seen(packet: Packet) -> Seen {
    Seen { frame: packet.frame(), packet }
}

type Change = fn(&mut Packet);

#[test]
fn what_a_port_may_not_change_is_noticed() {
    let ends = (([10, 0, 0, 1], 40_000).into(), ([10, 0, 0, 2], 80).into());
    let data = Packet {
        flags: ACK | PSH,
        options: options::join(&[options::timestamps(1, 2)]),
        payload: payload(9),
        ..Packet::new(ends.0, ends.1)
    };
    let never: [Change; 11] = [
        |p| p.seq += 1,
        |p| p.ack += 1,
        |p| p.flags ^= PSH,
        |p| p.flags |= AE,
        |p| p.window -= 1,
        |p| p.urgent = 1,
        |p| p.traffic_class = 4,
        |p| p.traffic_class = CE,
        |p| p.payload[3] ^= 1,
        |p| p.ipv4_id += 1,
        |p| p.options[5] ^= 1,
    ];
    let if_translated: [Change; 2] = [|p| p.flags |= CWR, |p| p.traffic_class = ECT_0];
    for mode in Mode::ALL {
        let admits = |change: Change| {
            let mut changed = data.clone();
            change(&mut changed);
            let before = seen(data.clone());
            across::from_guest(mode, &mut Handshake::default(), &before, &seen(changed)).is_ok()
        };
        assert!(admits(|_| ()));
        for (at, change) in never.into_iter().enumerate() {
            assert!(!admits(change), "{mode:?}: {at}");
        }
        for change in if_translated {
            assert_eq!(admits(change), mode.translates());
        }
    }
}

#[test]
fn a_window_is_shown_at_most_as_large_as_it_came() {
    let ends = (([10, 0, 0, 2], 80).into(), ([10, 0, 0, 1], 40_000).into());
    let came = seen(Packet { window: 500, ..Packet::new(ends.0, ends.1) });
    for mode in Mode::ALL {
        for (window, is_admitted) in
            [(500, true), (501, false), (0, false), (499, mode.translates())]
        {
            let shown = seen(Packet { window, ..came.packet.clone() });
            let admitted = across::to_guest(mode, &mut Handshake::default(), &came, &shown);
            assert_eq!(admitted.is_ok(), is_admitted, "{mode:?}: {window}");
        }
    }
}
