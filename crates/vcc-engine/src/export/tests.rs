use super::row::default_underlay;
use super::*;
use crate::{Field, FlowState, Underlay, sys};

fn flow(guest: &str, peer: &str, vlan: Option<u16>) -> Connection {
    let mut state = FlowState::travelling(Underlay::built_in().last().expect("one"));
    for (field, number) in Field::ALL.iter().zip(1..) {
        assert!(field.set(&mut state, number));
    }
    Connection {
        guest: guest.parse().unwrap(),
        peer: peer.parse().unwrap(),
        vlan,
        inside: vlan.is_some(),
        state,
    }
}

fn two() -> String {
    write(
        "vcc 1.2.3",
        "vnet0",
        &[
            flow("10.0.0.1:5000", "10.0.0.2:80", None),
            flow("[fd00::1]:5000", "[fd00::2]:80", Some(7)),
        ],
    )
}

/// The first `from` becomes `to`, and the checksum is right again.
fn edited(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let text = text.replacen(from, to, 1);
    let (rest, _) = text.trim_end().rsplit_once('\n').unwrap();
    let rest = format!("{rest}\n");
    let footer = Footer { crc32: crc32fast::hash(rest.as_bytes()) };
    rest + &line(&footer)
}

fn why(text: &str) -> Unreadable {
    read(text).err().expect("an error")
}

#[test]
fn what_is_written_is_read() {
    let read = read(&two()).expect("connections");
    let [v4, v6] = &read[..] else { panic!("{}", read.len()) };
    assert_eq!((v4.guest.to_string(), v4.vlan), ("10.0.0.1:5000".into(), None));
    assert_eq!((v6.peer.to_string(), v6.vlan), ("[fd00::2]:80".into(), Some(7)));
    assert_eq!((v4.inside, v6.inside), (false, true));
    for (field, number) in Field::ALL.iter().zip(1..) {
        assert_eq!(field.value_in(&v6.state), number, "{}", field.name);
    }
    assert_eq!(v6.state.underlay, Underlay::built_in().last().unwrap().number());
    assert!(two().len() < 2 * 400 + 700, "a few hundred bytes a connection");
}

#[test]
fn connections_in_their_handshake_stay() {
    let mut half_open = flow("10.0.0.1:5000", "10.0.0.2:80", None);
    half_open.state.0.stage = sys::STAGE_SYN_SENT as u8;
    assert_eq!(read(&write("vcc", "vnet0", &[half_open])).expect("none").len(), 0);
}

#[test]
fn each_end_of_it_that_is_missing_is_missed() {
    let text = two();
    // All but the end of the last line.
    for length in 0..text.len() - 1 {
        let cut = read(&text[..length]);
        assert!(cut.is_err(), "{length} of {} bytes", text.len());
    }
    let (first_row, _) = text.split_once("]\n").expect("rows");
    assert_eq!(why(first_row), Unreadable::CutShort);
    assert_eq!(why(""), Unreadable::NotOurs);
}

#[test]
fn each_byte_that_is_changed_is_noticed() {
    let text = two();
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        assert!(read(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn other_versions_are_recognised() {
    let text = two();
    assert_eq!(why("{\"vcc_export\":2}\nmore\n"), Unreadable::OtherFormat(2));
    let newer = edited(&text, "\"vcc_export\":1", "\"vcc_export\":9");
    assert_eq!(why(&newer), Unreadable::OtherFormat(9));
    assert_eq!(why("[]\n[]\n"), Unreadable::NotOurs);
    // A field that a later version adds is no reason to refuse it; one that is missing is.
    let named = edited(&text, "\"ack_segs64\"", "\"of_tomorrow\"");
    assert_eq!(why(&named), Unreadable::Lacks("ack_segs64"));
    let mut more = edited(&text, "\"ack_segs64\"]", "\"ack_segs64\",\"of_tomorrow\"]");
    for _ in 0..2 {
        let last = format!(",{}]]", Field::ALL.len());
        more = edited(&more, &last, &last.replace("]]", ",5]]"));
    }
    assert_eq!(read(&more).expect("connections").len(), 2);
}

#[test]
fn a_line_that_is_no_connection_is_named() {
    let text = two();
    assert_eq!(why(&edited(&text, "\"10.0.0.1:5000\"", "\"10.0.0.1\"")), Unreadable::Row(2));
    assert_eq!(why(&edited(&text, "[fd00::1]", "[fd00:1]")), Unreadable::Row(3));
    let first = format!("[{}", (1..10).map(|it| it.to_string()).collect::<Vec<_>>().join(","));
    assert_eq!(why(&edited(&text, &first, &first.replace("[1,", "["))), Unreadable::Row(2));
    // A window scale of one byte.
    let scale = ",15,16,17,";
    assert_eq!(why(&edited(&text, scale, ",15,256,17,")), Unreadable::Row(2));
}

#[test]
fn an_underlay_that_is_not_known_here_leaves_the_window() {
    let name = Underlay::built_in().last().unwrap().name();
    let text = edited(&two(), &format!("\"{name}\""), "\"theirs\"");
    let [first, _] = &read(&text).expect("connections")[..] else { panic!() };
    assert_eq!(first.state.underlay, default_underlay().number());
}

/// What a version has written, the next ones read: a connection of a Linux guest to a peer without vcc.
#[test]
fn an_export_of_a_released_version_is_read() {
    let text = include_str!("fixtures/0.1.0.export");
    let flows = read(text).expect("it is read");
    let [flow] = &flows[..] else { panic!("{} connections", flows.len()) };
    assert_eq!((flow.guest.to_string(), flow.peer.port()), ("192.0.2.1:40000".into(), 80));
    assert!(flow.state.can_travel() && flow.state.depends_on_translation());
    let described = |name| Field::named(name).expect("a field").value_in(&flow.state);
    assert_eq!((described("wscale_peer"), described("wscale_shown")), (10, 5));
    let arrived = flow.state.arrive(&crate::Params::default(), 1);
    assert!(arrived.is_some(), "it continues with this version");
    // Whoever needs more refuses what that version has written.
    let header: Header = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let needed: Vec<&str> = Field::needed().iter().map(|field| field.name).collect();
    assert_eq!(header.fields, needed);
}

/// As this version will be for the next ones.
#[test]
fn what_a_later_version_adds_is_as_in_a_new_connection() {
    let of_now = Fields::names();
    let (last, earlier) = of_now.split_last().unwrap();
    let needed = &Field::ALL[..Field::ALL.len() - 1];
    let fields = Fields::with(earlier, needed).expect("nothing lacks");
    assert_eq!(Fields::with(&earlier[1..], needed).err(), Some(earlier[0].as_str()));
    let mut row =
        serde_json::to_value(Row::from_connection(&flow("10.0.0.1:5000", "10.0.0.2:80", None)))
            .unwrap();
    row[4].as_array_mut().unwrap().pop();
    let row: Row = serde_json::from_value(row).unwrap();
    let read = row.connection(&fields).expect("a connection").state;
    let of = |name: &str, state: &FlowState| Field::named(name).unwrap().value_in(state);
    assert_eq!(of(&earlier[0], &read), 1);
    assert_eq!(of(last, &read), of(last, &FlowState::travelling(default_underlay())));
}
