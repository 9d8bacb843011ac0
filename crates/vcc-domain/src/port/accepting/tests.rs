//! Rare and dishonest segments of connections that the port accepts.

use vcc_engine::{Mode, Params};
use vcc_frames::{MACS, Packet, payload};
use vcc_net::seq::before;

use super::*;
use crate::testing::{ACK, SYN, Talk, framed, is_right};
use crate::{CannotTakeOver, Rule, Rules};

const FIN: u16 = sys::TCP_FIN as u16;
const RST: u16 = sys::TCP_RST as u16;
const ECE: u16 = sys::TCP_ECE as u16;
const PEER_PORT: u16 = 9000;
const ISN: u32 = 0x8000_0000;
const MSS: [u8; 4] = [2, 4, 3, 0xe8];
const MS: u64 = 1_000_000;

fn accepting() -> Params {
    Params::with(|params| (params.receive, params.underlay) = (sys::RECEIVE_ACCEPT as u8, 0))
}

/// A port of a guest that has answered a SYN like those to come.
fn known() -> Talk {
    let mut talk = Talk::new(accepting());
    talk.port.set_isn_hash(Arc::new(|_| ISN.into()));
    cross(
        false,
        &Packet { flags: SYN, ack: 0, options: MSS.into(), ..talk.segment(false) },
        &mut talk,
    );
    talk.peer_next += 1;
    cross(true, &Packet { flags: SYN | ACK, options: MSS.into(), ..talk.segment(true) }, &mut talk);
    talk.guest_next += 1;
    cross(false, &talk.segment(false), &mut talk);
    assert_eq!(accepted(&talk), 0);
    Talk { peer_next: 70_000, ..talk }
}

/// And of another connection, whose SYN the port answers.
fn begun() -> (Talk, u32) {
    let mut talk = known();
    talk.peer.set_port(PEER_PORT);
    let (_, out) = syn(&mut talk, 0);
    let answer = parsed(&out.to_fabric[0], Direction::FromGuest).segment;
    assert_eq!((answer.flags & (SYN | ACK), out.to_fabric.len()), (SYN | ACK, 1));
    assert_eq!((accepted(&talk), answer.ack), (1, talk.peer_next));
    (talk, answer.seq)
}

fn accepted(talk: &Talk) -> u64 {
    talk.port.counters().get(sys::COUNT_ACCEPTED)
}

fn parsed(frame: &Frame, direction: Direction) -> Parsed {
    parse(frame, direction).expect("TCP")
}

/// Packets of the peer are to the guest on the link as well.
fn addressed(from_guest: bool, packet: &Packet) -> Packet {
    let macs = if from_guest { MACS } else { [MACS[1], MACS[0]] };
    Packet { macs, ..packet.clone() }
}

/// Returns what passes, and what follows.
fn cross(from_guest: bool, packet: &Packet, talk: &mut Talk) -> (Option<Frame>, Out) {
    let (verdict, frame, out) = talk.cross(from_guest, framed(&addressed(from_guest, packet)));
    for frame in out.to_guest.iter().chain(&out.to_fabric) {
        assert!(is_right(frame));
    }
    ((verdict == Verdict::Pass).then_some(frame), out)
}

/// The peer's SYN, at another sequence number than the first.
fn syn(talk: &mut Talk, offset: u32) -> (Option<Frame>, Out) {
    let seq = talk.peer_next.wrapping_add(offset);
    let syn = Packet { flags: SYN, ack: 0, seq, options: MSS.into(), ..talk.segment(false) };
    if offset == 0 {
        talk.peer_next += 1;
    }
    cross(false, &syn, talk)
}

/// The peer's ACK of the port's SYN-ACK.
fn open(talk: &mut Talk, isn: u32) {
    let ack = Packet { ack: isn + 1, ..talk.segment(false) };
    assert_eq!(cross(false, &ack, talk).0, None, "the guest does not know the connection");
}

/// The guest's own SYN-ACK.
fn join(talk: &mut Talk) -> Out {
    let own = Packet { flags: SYN | ACK, options: MSS.into(), ..talk.segment(true) };
    talk.guest_next += 1;
    let (passes, out) = cross(true, &own, talk);
    assert_eq!(passes, None);
    out
}

fn joined() -> (Talk, u32) {
    let (mut talk, isn) = begun();
    open(&mut talk, isn);
    let out = join(&mut talk);
    let ack = parsed(&out.to_guest[0], Direction::ToGuest).segment;
    assert_eq!((ack.ack, ack.seq), (talk.guest_next, talk.peer_next));
    (talk, isn)
}

fn has_flow(talk: &Talk) -> bool {
    talk.port.flow(&talk.key()).is_some()
}

#[test]
fn each_end_has_its_own_numbers() {
    let (mut talk, isn) = joined();
    let sent = Packet { payload: payload(100), ..talk.segment(true) };
    let (passes, _) = cross(true, &sent, &mut talk);
    assert_eq!(parsed(&passes.expect("it passes"), Direction::FromGuest).segment.seq, isn + 1);
    let ack = Packet { ack: isn + 101, ..talk.segment(false) };
    let (passes, _) = cross(false, &ack, &mut talk);
    let passes = passes.expect("it passes");
    assert_eq!(parsed(&passes, Direction::ToGuest).segment.ack, talk.guest_next + 100);
    assert!(is_right(&passes));
}

/// A connection without a flow, as of a port before this one.
#[test]
fn a_forged_syn_ends_no_connection() {
    let (mut talk, _) = begun();
    // Its peer sends data, which the port cannot be asked about.
    let data = Packet { payload: payload(10), ack: talk.guest_next + 77, ..talk.segment(false) };
    assert!(cross(false, &data, &mut talk).0.is_some(), "it may be another connection's");
    let own = Packet { payload: payload(10), seq: 424_242, ..talk.segment(true) };
    let (passes, out) = cross(true, &own, &mut talk);
    assert_eq!(passes, Some(framed(&own)), "as it is");
    assert_eq!((out, has_flow(&talk)), (Out::default(), false));
}

#[test]
fn another_syn_is_challenged_and_changes_nothing() {
    for (is_open, joins) in [(false, false), (false, true), (true, false)] {
        let (mut talk, isn) = begun();
        if is_open {
            open(&mut talk, isn);
        }
        if joins {
            join(&mut talk);
        }
        let (passes, out) = syn(&mut talk, 50_000);
        assert_eq!((passes, out.to_guest), (None, Vec::new()), "{is_open} {joins}");
        let [ack] = &out.to_fabric[..] else { panic!("{:?}", out.to_fabric) };
        let ack = parsed(ack, Direction::FromGuest).segment;
        assert_eq!((ack.flags, ack.seq, ack.ack), (ACK, isn + 1, talk.peer_next));
        // A peer that has begun anew answers by a RST.
        let reset = Packet { flags: RST, seq: ack.ack, ack: 0, ..talk.segment(false) };
        let (passes, _) = cross(false, &reset, &mut talk);
        assert!(passes.is_some(), "the guest hears of it");
        let (_, out) = syn(&mut talk, 60_000);
        assert_eq!(accepted(&talk), if out.to_fabric.is_empty() { 1 } else { 2 });
    }
}

/// The path repeats a SYN that the guest has answered itself.
#[test]
fn a_syn_that_the_guest_has_answered_is_not_answered_again() {
    let mut talk = known();
    talk.peer.set_port(PEER_PORT);
    let shape = Packet { flags: SYN, ack: 0, options: vec![1, 1, 4, 2], ..talk.segment(false) };
    assert!(cross(false, &shape, &mut talk).0.is_some());
    talk.peer_next += 1;
    let answer = Packet { flags: SYN | ACK, options: vec![1, 1, 4, 2], ..talk.segment(true) };
    assert!(cross(true, &answer, &mut talk).0.is_some());
    let (passes, out) = cross(false, &shape, &mut talk);
    assert!(passes.is_some());
    assert_eq!((out.to_fabric, accepted(&talk)), (Vec::new(), 0));
}

/// The guest's FIN is lost, and its retransmission comes long after both have been seen.
#[test]
fn numbers_are_adjusted_until_both_ends_have_all_of_it() {
    let (mut talk, isn) = joined();
    let fin = Packet { flags: FIN | ACK, ack: isn + 1, ..talk.segment(false) };
    assert!(cross(false, &fin, &mut talk).0.is_some());
    talk.peer_next += 1;
    let own = Packet { flags: FIN | ACK, ..talk.segment(true) };
    for silent_s in [0, 15, 40, 80] {
        talk.wait(silent_s * 1000 * MS);
        talk.advance();
        let (passes, _) = cross(true, &own, &mut talk);
        let passes = passes.unwrap_or_else(|| panic!("{silent_s} s"));
        assert_eq!(parsed(&passes, Direction::FromGuest).segment.seq, isn + 1, "{silent_s} s");
    }
    let last = Packet { ack: isn + 2, ..talk.segment(false) };
    assert!(cross(false, &last, &mut talk).0.is_some());
    for _ in 0..30 {
        talk.wait(1000 * MS);
        talk.advance();
    }
    assert!(!has_flow(&talk), "both have all of it");
}

/// Not in silence, if one end never gets the rest.
#[test]
fn an_end_that_is_never_acknowledged_is_reset() {
    let (mut talk, isn) = joined();
    let fin = Packet { flags: FIN | ACK, ack: isn + 1, ..talk.segment(false) };
    cross(false, &fin, &mut talk);
    talk.peer_next += 1;
    cross(true, &Packet { flags: FIN | ACK, ..talk.segment(true) }, &mut talk);
    let mut out = Out::default();
    for _ in 0..200 {
        talk.wait(1000 * MS);
        talk.port.advance(talk.now_ns, &mut out);
    }
    let has_reset = |frames: &[Frame], direction| {
        frames.iter().any(|frame| parsed(frame, direction).segment.flags & RST != 0)
    };
    assert!(has_reset(&out.to_guest, Direction::ToGuest) && !has_flow(&talk));
    assert!(has_reset(&out.to_fabric, Direction::FromGuest));
}

#[test]
fn first_fragments_are_adjusted_in_both_directions() {
    let (mut talk, isn) = joined();
    let fragment = |packet: &Packet| {
        let mut bytes = packet.frame();
        // More fragments follow (RFC 791, 3.1).
        bytes[20] = 0x20;
        let header = &mut bytes[14..34];
        (header[10], header[11]) = (0, 0);
        let check = crate::checksum::of_ipv4(header);
        header[10..12].copy_from_slice(&check.to_be_bytes());
        Frame::full(bytes)
    };
    let received = Packet { payload: payload(80), ack: isn + 1, ..talk.segment(false) };
    let (_, frame, _) = talk.cross(false, fragment(&received));
    let read = parse_first_fragment(&frame, Direction::ToGuest).expect("a header");
    assert_eq!(read.segment.ack, talk.guest_next);
    let sent = Packet { payload: payload(80), ..talk.segment(true) };
    let (_, frame, _) = talk.cross(true, fragment(&sent));
    let read = parse_first_fragment(&frame, Direction::FromGuest).expect("a header");
    assert_eq!(read.segment.seq, isn + 1);
}

/// SYNs whose senders never acknowledge the answer take a part of the table, also if the guest answers.
#[test]
fn a_syn_flood_leaves_room_for_others() {
    let mut talk = known();
    for port in 0..200 {
        talk.peer.set_port(PEER_PORT + port);
        let (_, out) = syn(&mut talk, 0);
        if !out.to_fabric.is_empty() {
            join(&mut talk);
        }
        talk.wait(200 * MS);
        talk.advance();
    }
    let flows = talk.port.flows().count();
    assert!(flows < talk.port.max_flows(), "{flows} flows");
    assert_eq!(accepted(&talk), u64::from(half_open_max(16)));
}

#[test]
fn what_the_guest_would_not_say_is_not_said() {
    for (flags, options, tos, is_known) in [
        (SYN | ACK, MSS.to_vec(), 0, true),
        (SYN | ACK | ECE, MSS.to_vec(), 0, true),
        (SYN | ACK, MSS.to_vec(), 2, false),
        (SYN | ACK | 1 << 8, MSS.to_vec(), 0, false),
        (SYN | ACK, [&MSS[..], &[30, 4, 0, 0]].concat(), 0, false),
    ] {
        let talk = Talk::v4();
        let answer = Packet { flags, options, traffic_class: tos, ..talk.segment(true) };
        let frame = framed(&answer);
        let read = parsed(&frame, Direction::FromGuest);
        let listener = Listener::read(0, (SYN, 0), &frame, &read);
        assert_eq!(listener.is_some(), is_known, "{answer:?}");
    }
}

#[test]
fn a_syn_to_another_card_is_not_answered() {
    let mut talk = known();
    talk.peer.set_port(PEER_PORT);
    let syn = Packet { flags: SYN, ack: 0, options: MSS.into(), ..talk.segment(false) };
    let mut frame = framed(&addressed(false, &syn));
    frame.bytes[5] ^= 1;
    let (_, _, out) = talk.cross(false, frame);
    assert_eq!((out.to_fabric, accepted(&talk)), (Vec::new(), 0));
}

/// A RST of the peer before the guest has answered is one that the guest believes.
#[test]
fn a_reset_reaches_a_guest_that_has_not_answered() {
    let (mut talk, isn) = begun();
    open(&mut talk, isn);
    let reset = Packet { flags: RST | ACK, ack: isn + 1, ..talk.segment(false) };
    let (passes, _) = cross(false, &reset, &mut talk);
    let seen = parsed(&passes.expect("it passes"), Direction::ToGuest).segment;
    assert_eq!((seen.flags, seen.seq), (RST, talk.peer_next));
    // It may have answered meanwhile.
    let late = Packet { flags: SYN | ACK, options: MSS.into(), ..talk.segment(true) };
    let (passes, out) = cross(true, &late, &mut talk);
    assert_eq!((passes, out.to_fabric.len()), (None, 0));
    let seen = parsed(&out.to_guest[0], Direction::ToGuest).segment;
    assert_eq!((seen.flags, seen.seq), (RST, talk.peer_next));
}

/// Others that come for a guest that does not run are no sign of it.
#[test]
fn a_guest_that_does_not_run_is_sent_each_syn_once() {
    let (mut talk, _) = begun();
    for port in 1..4 {
        talk.wait(1500 * MS);
        assert_eq!(talk.advance(), [], "the first one is in its ring");
        talk.peer.set_port(PEER_PORT + port);
        syn(&mut talk, 0);
    }
}

/// After a connection between the same ends was broken, another one may be accepted.
#[test]
fn ends_that_were_reset_may_connect_again() {
    let (mut talk, isn) = begun();
    open(&mut talk, isn);
    let mut out = Out::default();
    talk.port.end(talk.now_ns, &mut out);
    assert!(!has_flow(&talk) && out.to_fabric.len() == 1);
    talk.peer_next += 100_000;
    let (_, out) = syn(&mut talk, 0);
    let answer = parsed(&out.to_fabric[0], Direction::FromGuest).segment;
    let ack = Packet { ack: answer.seq + 1, ..talk.segment(false) };
    let (passes, out) = cross(false, &ack, &mut talk);
    assert_eq!((passes, out), (None, Out::default()), "no RST");
    let out = join(&mut talk);
    assert!(!before(parsed(&out.to_guest[0], Direction::ToGuest).segment.ack, talk.guest_next));
}

/// The guest may answer either of two SYNs that differ in what they offer, and says which by its answer.
#[test]
fn a_syn_that_is_repeated_in_another_shape_is_left_to_the_guest() {
    let without_options = |talk: &mut Talk| {
        let seq = talk.peer_next.wrapping_sub(1);
        let syn = Packet { flags: SYN, ack: 0, seq, options: vec![], ..talk.segment(false) };
        cross(false, &syn, talk).1
    };
    // The port has answered the first one.
    let (mut talk, isn) = begun();
    assert_eq!(without_options(&mut talk).to_fabric, []);
    open(&mut talk, isn);
    join(&mut talk);
    // The port did not know how the guest answers the first one, and knows how it answers the second one.
    let mut talk = known();
    talk.peer.set_port(PEER_PORT);
    talk.peer_next += 1;
    assert_eq!(without_options(&mut talk).to_fabric, []);
    talk.peer_next -= 1;
    let (passes, out) = syn(&mut talk, 0);
    assert_eq!((passes.is_some(), out.to_fabric, accepted(&talk)), (true, vec![], 0));
}

/// The guest continues behind another port.
fn moved(talk: &mut Talk, mut next: Port) -> Out {
    let mut out = Out::default();
    talk.port.end_waits(talk.now_ns, &mut out);
    let (_, state) = talk.port.hand_over("a test", std::iter::empty());
    next.set_isn_hash(Arc::new(|_| ISN.into()));
    next.take_over(talk.now_ns, &state).expect("a state");
    next.go_on(talk.now_ns, &mut out);
    talk.port = next;
    out
}

/// A port with one rule.
fn under(params: Params) -> Port {
    let mut port = Port::new(params, 16);
    port.set_rules(Rules {
        rules: vec![Rule { name: "all".into(), params }],
        judge: Arc::new(|_, _| 0),
        pools: vec![],
        polices: false,
    });
    port
}

/// It is the only one who knows what the guest's numbers lack.
#[test]
fn a_port_that_ignores_connections_translates_those_that_another_has_accepted() {
    let ignoring = Params(sys::vcc_params { mode: Mode::Ignore.number(), ..accepting().0 });
    for waits in [true, false] {
        let (mut talk, isn) = if waits { begun() } else { joined() };
        if waits {
            open(&mut talk, isn);
        }
        moved(&mut talk, under(ignoring));
        if waits {
            join(&mut talk);
        }
        let sent = Packet { payload: payload(100), ..talk.segment(true) };
        let (passes, _) = cross(true, &sent, &mut talk);
        assert_eq!(parsed(&passes.expect("it passes"), Direction::FromGuest).segment.seq, isn + 1);
        talk.peer.set_port(PEER_PORT + 1);
        let (passes, out) = syn(&mut talk, 0);
        assert_eq!((passes.is_some(), out.to_fabric), (true, vec![]), "others are ignored");
    }
}

/// The peer may have the port's SYN-ACK, of which the next host knows nothing: both ends are reset (law 16).
#[test]
fn a_handshake_that_the_peer_has_not_ended_does_not_move() {
    let (mut talk, isn) = begun();
    let out = moved(&mut talk, Port::new(accepting(), 16));
    assert!(!has_flow(&talk));
    let [to_peer] = &out.to_fabric[..] else { panic!("{out:?}") };
    let to_peer = parsed(to_peer, Direction::FromGuest).segment;
    assert_eq!((to_peer.flags & RST, to_peer.seq), (RST, isn + 1));
    assert!(!out.to_guest.is_empty());
    for to_guest in &out.to_guest {
        let to_guest = parsed(to_guest, Direction::ToGuest).segment;
        assert_eq!((to_guest.flags & RST, to_guest.seq), (RST, talk.peer_next));
    }
}

/// The state with a change, and the right checksum.
fn resealed(state: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let is_footer = |part: &[u8]| part == b"{\"crc32\":";
    let footer_at = state.windows(9).rposition(is_footer).expect("a footer");
    let mut changed = state[..footer_at].to_vec();
    change(&mut changed);
    let footer = format!("{{\"crc32\":{}}}\n", crc32fast::hash(&changed));
    [&changed, footer.as_bytes()].concat()
}

/// Each change is of a frame that the state's row of an accepted connection names.
#[test]
fn an_accepted_connection_without_its_syn_or_ack_does_not_arrive() {
    let (mut talk, isn) = begun();
    open(&mut talk, isn);
    let (_, state) = talk.port.hand_over("a test", std::iter::empty());
    let arrives = |state: &[u8]| Port::new(accepting(), 16).take_over(0, state).map(drop);
    assert_eq!(arrives(&resealed(&state, |_| {})), Ok(()));
    let port = PEER_PORT.to_be_bytes();
    let ports_at: Vec<usize> =
        (0..state.len() - 20).filter(|at| state[*at..].starts_with(&port)).collect();
    let [syn_at, ack_at] = ports_at[..] else { panic!("{ports_at:?}") };
    const FLAGS_AT: usize = 13;
    for (what, at, byte) in [
        ("the SYN is of another connection", syn_at, 0),
        ("the SYN is a SYN-ACK", syn_at + FLAGS_AT, (SYN | ACK) as u8),
        ("the SYN is a RST", syn_at + FLAGS_AT, RST as u8),
        ("the ACK is of another connection", ack_at, 0),
        ("the ACK is a SYN", ack_at + FLAGS_AT, SYN as u8),
        ("the ACK is a FIN", ack_at + FLAGS_AT, (FIN | ACK) as u8),
        ("the ACK has no header", ack_at + FLAGS_AT - 1, 0),
    ] {
        let refused = arrives(&resealed(&state, |state| state[at] = byte));
        assert!(matches!(refused, Err(CannotTakeOver::Row(_))), "{what}: {refused:?}");
    }
}
