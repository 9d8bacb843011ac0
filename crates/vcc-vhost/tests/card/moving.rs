//! A guest that moves: its front end copies the memory and carries the card's state.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::thread;

use vcc_domain::Port;
use vcc_engine::{Params, sys};
use vcc_frames::{Packet, payload};
use vcc_vhost::testing::*;

use crate::PLAIN;
use crate::host::{Host, eventually};
use crate::talk::*;

/// The answer to VHOST_USER_SET_DEVICE_STATE_FD that brings no descriptor.
const ACCEPTED: u64 = 1 << 8;
const SENT: u32 = 20;
/// Of which the first window has left.
const LEFT: u32 = 10;
const MSS: u32 = MSS_BYTES as u32;
const PAGE_BYTES: u64 = 4096;

/// A machine that stops for a while is no reason to send again.
fn splitting() -> Port {
    let params = Params::with(|params| {
        params.act = sys::ACT_SPLIT as u8;
        params.rto_min_us = 30_000_000;
    });
    Port::new(params, 64)
}

/// A guest that was promised more than has left.
struct Leaving {
    from: Host,
    guest: Guest,
    front_end: FrontEnd,
}

impl Leaving {
    fn new() -> Self {
        let from = Host::with(splitting());
        let mut guest = Guest::new(2);
        let mut front_end = FrontEnd::connect(&from.socket);
        front_end.moves();
        front_end.set_up(&guest, USUAL);
        guest.offer_buffers(RECEIVE, 128, 2048);
        guest.send(PLAIN, &syn().frame());
        from.sent();
        from.wire.send(&plain(&syn_ack())).expect("sent");
        // And the window that the buffer has for it.
        eventually("the SYN-ACK", || guest.used(RECEIVE) == 2);
        guest.send(PLAIN, &from_guest().frame());
        from.sent();
        for number in 0..SENT {
            guest.send(PLAIN, &data(number).frame());
        }
        for number in 0..LEFT {
            assert_eq!(seq(&from.sent()), GUEST_SEQ + number * MSS);
        }
        let leaving = Leaving { from, guest, front_end };
        eventually("all is promised", || leaving.promised() == GUEST_SEQ + SENT * MSS);
        leaving
    }

    /// The last acknowledgement that the guest was shown.
    fn promised(&self) -> u32 {
        let last = self.guest.used(RECEIVE) - 1;
        let tcp = &self.guest.received(RECEIVE, last, 1)[12 + 14 + 20..];
        tcp[8..12].try_into().map(u32::from_be_bytes).expect("a TCP header")
    }

    fn stop(&mut self) -> [u32; 2] {
        [0, 1].map(|ring| self.front_end.stop(ring))
    }

    /// The rings have stopped.
    fn save(&mut self) -> Vec<u8> {
        save(&mut self.front_end)
    }
}

fn data(number: u32) -> Packet {
    let seq = GUEST_SEQ + number * MSS;
    Packet { seq, payload: payload(MSS_BYTES.into()), ..from_guest() }
}

fn seq(frame: &[u8]) -> u32 {
    let tcp = &frame[12 + 14 + 20..];
    tcp[4..8].try_into().map(u32::from_be_bytes).expect("a TCP header")
}

fn save(front_end: &mut FrontEnd) -> Vec<u8> {
    let (mut reader, writer) = pipe();
    assert_eq!(front_end.pass_state(SAVE, writer.as_raw_fd()), ACCEPTED);
    drop(writer);
    let mut state = Vec::new();
    reader.read_to_end(&mut state).expect("a state");
    assert_eq!(front_end.check_state(), 0);
    state
}

/// Of a front end, before the rings start.
fn load(front_end: &mut FrontEnd, state: &[u8]) -> u64 {
    let (reader, mut writer) = pipe();
    assert_eq!(front_end.pass_state(LOAD, reader.as_raw_fd()), ACCEPTED);
    drop(reader);
    // More than fits into a pipe waits for the card.
    writer.write_all(state).expect("written");
    drop(writer);
    front_end.check_state()
}

fn arriving(to: &Host) -> FrontEnd {
    let mut front_end = FrontEnd::connect(&to.socket);
    front_end.moves();
    front_end
}

/// A host that has taken a state, and whose guest has not gone on there.
fn arrived(state: &[u8]) -> (Host, FrontEnd) {
    let to = Host::with(splitting());
    let mut there = arriving(&to);
    assert_eq!(load(&mut there, state), 0);
    (to, there)
}

fn connections(host: &Host) -> usize {
    host.card.with_port(|port| port.flows().count())
}

#[test]
fn what_is_promised_goes_along_and_arrives_from_the_other_host() {
    let mut leaving = Leaving::new();
    leaving.stop();
    let state = leaving.save();
    let Leaving { from, guest, front_end } = leaving;
    from.reports("hands 1 of its connections over");
    let (to, mut there) = arrived(&state);
    to.reports("takes 1 of its connections over");
    // Neither of the two hosts knows whether the guest comes.
    let ack = Packet { ack: GUEST_SEQ + MSS, ..to_guest() };
    for host in [&from, &to] {
        host.wire.send(&plain(&ack)).expect("sent");
        thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(host.sent_more(), None);
    }
    there.set_up(&guest, USUAL);
    drop(front_end);
    from.reports("the guest has left with 1 of its connections");
    assert_eq!((connections(&from), connections(&to)), (0, 1));
    // The window is what it was: the peer acknowledges, and the rest leaves from here.
    let mut next = LEFT;
    while next < SENT {
        let ack = GUEST_SEQ + next * MSS;
        to.wire.send(&plain(&Packet { ack, ..to_guest() })).expect("sent");
        while next < SENT {
            let number = (seq(&to.sent()) - GUEST_SEQ) / MSS;
            next = next.max(number + 1);
            if number + 1 == next && next % 2 == 0 {
                break;
            }
        }
    }
    let ack = GUEST_SEQ + SENT * MSS;
    to.wire.send(&plain(&Packet { ack, ..to_guest() })).expect("sent");
    eventually("all has arrived", || to.card.with_port(|port| port.held_bytes() == 0));
    assert_eq!(from.sent_more(), None, "no RST");
}

/// As of a guest that is copied while it runs, and whose migration is cancelled.
#[test]
fn a_guest_that_stays_goes_on_where_it_was() {
    let mut leaving = Leaving::new();
    leaving.stop();
    leaving.save();
    (0..2).for_each(|ring| leaving.front_end.start(&leaving.guest, ring));
    leaving.from.reports("the guest stays here");
    let ack = GUEST_SEQ + LEFT * MSS;
    leaving.from.wire.send(&plain(&Packet { ack, ..to_guest() })).expect("sent");
    let mut next = LEFT;
    while next < LEFT + 2 {
        next = next.max((seq(&leaving.from.sent()) - GUEST_SEQ) / MSS + 1);
    }
    assert_eq!(connections(&leaving.from), 1);
}

/// Its front end has ended before it had all of the state, so that no other host has it.
#[test]
fn a_state_that_nobody_has_taken_stays() {
    let mut leaving = Leaving::new();
    leaving.stop();
    let (reader, writer) = pipe();
    assert_eq!(leaving.front_end.pass_state(SAVE, writer.as_raw_fd()), ACCEPTED);
    drop((reader, leaving.front_end));
    leaving.from.reports("has gone");
    assert_eq!(connections(&leaving.from), 1);
}

/// Asks for a state, and is gone before it has confirmed that all of it came.
fn leave_without_it(mut front_end: FrontEnd) {
    let (reader, writer) = pipe();
    assert_eq!(front_end.pass_state(SAVE, writer.as_raw_fd()), ACCEPTED);
    drop((reader, front_end));
}

/// Another host has the state: either that host or the one before continues the connections.
#[test]
fn a_host_that_has_not_run_a_guest_does_not_go_on_with_it() {
    let mut leaving = Leaving::new();
    leaving.stop();
    let state = leaving.save();
    let (to, there) = arrived(&state);
    leave_without_it(there);
    let Leaving { from, front_end, .. } = leaving;
    leave_without_it(front_end);
    for host in [to, from] {
        host.reports("has gone");
        assert_eq!(connections(&host), 0);
        assert_eq!(host.sent_more(), None);
    }
}

/// As of a guest that is paused when it comes, and moved once more.
#[test]
fn a_guest_moves_on_from_a_host_that_it_has_not_run_on() {
    let mut leaving = Leaving::new();
    leaving.stop();
    let (by, mut there) = arrived(&leaving.save());
    let (to, mut last) = arrived(&save(&mut there));
    drop((there, leaving.front_end));
    for host in [&leaving.from, &by] {
        host.reports("has gone");
        assert_eq!((connections(host), host.sent_more()), (0, None));
    }
    let held = |host: &Host| host.card.with_port(|port| port.held_bytes());
    last.set_up(&leaving.guest, USUAL);
    eventually("what was held is here", || held(&to) > 0);
    assert_eq!((connections(&to), held(&by)), (1, 0));
}

#[test]
fn a_state_that_is_none_is_refused_in_words_and_the_card_serves_on() {
    let mut leaving = Leaving::new();
    leaving.stop();
    let state = leaving.save();
    let to = Host::with(splitting());
    let mut changed = state.clone();
    changed[900] ^= 1;
    let other = b"{\"vcc_domain\":7}\n".to_vec();
    let bad: [(&[u8], &str); 4] = [
        (&state[..state.len() / 2], "cut short"),
        (&changed, "has been changed"),
        (&other, "has format 7"),
        (b"", "is not one of `vcc domain`"),
    ];
    for (state, why) in bad {
        let mut there = arriving(&to);
        assert_ne!(load(&mut there, state), 0, "{why}");
        to.reports(why);
        assert_eq!(connections(&to), 0);
        drop(there);
        to.reports("has gone");
    }
    let mut there = arriving(&to);
    assert_eq!(load(&mut there, &state), 0);
    // The source continues with it after all: nothing of it is kept here.
    drop(there);
    to.reports("has gone");
    assert_eq!(connections(&to), 0);
    assert_eq!(to.sent_more(), None);
}

#[test]
fn a_state_is_passed_through_a_pipe_while_the_rings_rest() {
    let mut leaving = Leaving::new();
    let (reader, writer) = pipe();
    let Leaving { from, front_end, .. } = &mut leaving;
    assert_ne!(front_end.pass_state(SAVE, writer.as_raw_fd()), ACCEPTED);
    from.reports("rings have not been stopped");
    for ring in 0..2 {
        front_end.stop(ring);
    }
    let file = File::open("/proc/self/exe").expect("a file");
    assert_ne!(front_end.pass_state(SAVE, file.as_raw_fd()), ACCEPTED);
    from.reports("no pipe");
    assert_ne!(front_end.pass_state(7, writer.as_raw_fd()), ACCEPTED);
    from.reports("direction 7");
    assert_ne!(front_end.check_state(), 0);
    // A front end that asks for the end before it has read on, or has written all.
    load_in_part(front_end, reader, writer);
    from.reports("before it is over");
    assert_eq!(connections(from), 1);
}

fn load_in_part(front_end: &mut FrontEnd, reader: File, mut writer: File) {
    assert_eq!(front_end.pass_state(LOAD, reader.as_raw_fd()), ACCEPTED);
    writer.write_all(b"{").expect("written");
    assert_ne!(front_end.check_state(), 0);
}

/// Such front ends copy the guest's memory and leave its connections behind.
#[test]
fn a_log_is_offered_to_those_who_take_the_state() {
    let host = Host::with(splitting());
    for (protocol, is_offered) in [
        (MQ | LOG_SHMFD | DEVICE_STATE, true),
        (MQ | LOG_SHMFD, false),
        (MQ | DEVICE_STATE, false),
        (0, false),
    ] {
        let mut front_end = FrontEnd::connect(&host.socket);
        front_end.ask(16, &protocol.to_ne_bytes(), &[]);
        assert_eq!(front_end.features() & LOG_ALL != 0, is_offered, "{protocol:#x}");
        if !is_offered {
            front_end.ask(2, &(USUAL | LOG_ALL).to_ne_bytes(), &[]);
            host.reports("not offered");
        }
        drop(front_end);
    }
}

/// It leaves without the state, though it has asked for it: neither end may wait for what was promised.
#[test]
fn promises_that_were_left_behind_are_ended() {
    let mut leaving = Leaving::new();
    let log = memory_file(PAGE_BYTES);
    begin_log(&mut leaving.front_end, &log);
    leaving.stop();
    drop(leaving.front_end);
    leaving.from.reports("left without its connections");
    let tcp = &leaving.from.sent()[12 + 14 + 20..];
    assert!(u32::from(tcp[13]) & sys::TCP_RST != 0);
}

/// Its guest may come back, as without a move.
#[test]
fn a_front_end_that_dies_while_it_copies_the_guest_ends_no_promise() {
    let mut leaving = Leaving::new();
    let log = memory_file(PAGE_BYTES);
    begin_log(&mut leaving.front_end, &log);
    drop(leaving.front_end);
    leaving.from.reports("the virtual machine has gone");
    let ack = Packet { ack: GUEST_SEQ + LEFT * MSS, ..to_guest() };
    leaving.from.wire.send(&plain(&ack)).expect("sent");
    let next = std::iter::repeat_with(|| leaving.from.sent()).take(SENT as usize).find(|frame| {
        assert!(u32::from(frame[12 + 14 + 20 + 13]) & sys::TCP_RST == 0, "it is not reset");
        // It may also send again what nobody has acknowledged for a while.
        seq(frame) == GUEST_SEQ + LEFT * MSS
    });
    assert!(next.is_some(), "it delivers what it promised");
}

fn share_log(front_end: &mut FrontEnd) -> File {
    let log = memory_file(PAGE_BYTES);
    front_end.ask(6, &longs(&[PAGE_BYTES, 0]), &[log.as_raw_fd()]);
    front_end.answer(8);
    log
}

fn begin_log(front_end: &mut FrontEnd, log: &File) {
    front_end.ask(6, &longs(&[PAGE_BYTES, 0]), &[log.as_raw_fd()]);
    front_end.answer(8);
    front_end.ask(2, &(USUAL | LOG_ALL).to_ne_bytes(), &[]);
    front_end.settle();
}

/// The pages of which the log has a bit.
fn logged(log: &File) -> Vec<u64> {
    let mut bits = [0; PAGE_BYTES as usize];
    log.read_exact_at(&mut bits, 0).expect("a log");
    let has = |page: &u64| bits[(page / 8) as usize] >> (page % 8) & 1 != 0;
    (0..MEMORY_BYTES as u64 / PAGE_BYTES).filter(has).collect()
}

#[test]
fn each_page_that_the_card_writes_to_is_in_the_log() {
    let host = Host::with(Port::new(Params::default(), 64));
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::connect(&host.socket);
    front_end.moves();
    front_end.set_up(&guest, USUAL);
    let log = memory_file(PAGE_BYTES);
    guest.offer_buffers(RECEIVE, 3, 2048);
    let receive = |number: u16, used: u16| {
        host.wire.send(&[&PLAIN[..], &crate::frame(number)].concat()).expect("sent");
        eventually("received", || guest.used(RECEIVE) == used);
    };
    receive(1, 1);
    assert!(logged(&log).is_empty());
    begin_log(&mut front_end, &log);
    receive(2, 2);
    let buffer = |number: u64| (BUFFERS_AT + 0x10_0000) / PAGE_BYTES + number;
    let used_ring = (guest.start(RECEIVE) + USED_AT) / PAGE_BYTES;
    assert_eq!(logged(&log), [used_ring, buffer(1)]);
    front_end.ask(2, &USUAL.to_ne_bytes(), &[]);
    front_end.settle();
    log.write_all_at(&[0; PAGE_BYTES as usize], 0).expect("cleared");
    receive(3, 3);
    assert!(logged(&log).is_empty(), "the migration is over");
    // Too short for the guest's memory.
    front_end.ask(6, &longs(&[8, 0]), &[log.as_raw_fd()]);
    front_end.ask(2, &(USUAL | LOG_ALL).to_ne_bytes(), &[]);
    host.reports("too short");
}

/// As QEMU starts rings while it copies the guest's memory.
#[test]
fn rings_that_start_before_the_log_wait_for_it() {
    let host = Host::with(Port::new(Params::default(), 64));
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::connect(&host.socket);
    front_end.moves();
    guest.offer_buffers(RECEIVE, 1, 2048);
    front_end.set_up(&guest, USUAL | LOG_ALL);
    guest.send(PLAIN, &crate::frame(1));
    host.wire.send(&[&PLAIN[..], &crate::frame(2)].concat()).expect("sent");
    front_end.settle();
    assert_eq!([RECEIVE, SEND].map(|ring| guest.used(ring)), [0, 0]);
    let log = share_log(&mut front_end);
    eventually("both", || [RECEIVE, SEND].map(|ring| guest.used(ring)) == [1, 1]);
    let [receives, sends] = [RECEIVE, SEND].map(|ring| (guest.start(ring) + USED_AT) / PAGE_BYTES);
    for page in [receives, sends] {
        assert!(logged(&log).contains(&page), "{:?}", logged(&log));
    }

    // The next rings have another log.
    let rings = [RECEIVE, SEND].map(|ring| front_end.stop(ring as u32));
    assert_eq!(rings, [1, 1]);
    log.write_all_at(&[0; PAGE_BYTES as usize], 0).expect("cleared");
    for ring in [RECEIVE, SEND] {
        front_end.start(&guest, ring);
    }
    guest.send(PLAIN, &crate::frame(3));
    front_end.settle();
    assert_eq!(guest.used(SEND), 1);
    let next = share_log(&mut front_end);
    eventually("the frame", || guest.used(SEND) == 2);
    assert!(logged(&next).contains(&sends) && logged(&log).is_empty());
}

/// A front end that was started again while it copies the guest's memory.
#[test]
fn what_was_promised_is_delivered_while_the_log_is_awaited() {
    let Leaving { from, mut guest, front_end } = Leaving::new();
    drop(front_end);
    from.reports("the virtual machine has gone");
    let mut again = FrontEnd::connect(&from.socket);
    again.moves();
    again.set_up(&guest, USUAL | LOG_ALL);
    let before = guest.used(RECEIVE);
    let ack = Packet { ack: GUEST_SEQ + LEFT * MSS, ..to_guest() };
    from.wire.send(&plain(&ack)).expect("sent");
    assert_eq!(seq(&from.sent()), GUEST_SEQ + LEFT * MSS);
    again.settle();
    assert_eq!(guest.used(RECEIVE), before);
    share_log(&mut again);
    guest.send(PLAIN, &from_guest().frame());
    eventually("what has waited", || guest.used(RECEIVE) > before);
}

/// VHOST_USER_SEND_RARP.
#[test]
fn a_guest_is_announced() {
    let host = Host::with(splitting());
    let mut front_end = FrontEnd::connect(&host.socket);
    let mac = [2, 0, 0, 0, 0, 7];
    front_end.ask(19, &[&mac[..], &[0, 0]].concat(), &[]);
    let frame = &host.sent()[12..];
    assert_eq!(frame.len(), 60);
    assert_eq!(
        (&frame[..6], &frame[6..12], &frame[12..14]),
        (&[0xff; 6][..], &mac[..], &[0x80, 0x35][..])
    );
}
