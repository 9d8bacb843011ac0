//! The channel beside a card, as guests use it, honest or not.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use vcc_channel::{Flow, FromGuest, FromHost, MESSAGE_BYTES, Message, VERSION};
use vcc_domain::{Port, Rule, Rules};
use vcc_engine::{FlowKey, Mode, Params, sys};
use vcc_vhost::testing::*;
use vcc_vhost::{ChannelState, Server};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use crate::PLAIN;
use crate::host::{Cable, Host, eventually};
use crate::talk::*;

const HELLO: FromHost = FromHost::Hello { version: VERSION, lease_ms: 2000 };
const ONLINE: FromHost = FromHost::Online { lease_ms: 2000 };
/// Longer than the port is asked in, and shorter than between two renewals of a lease.
const A_LOOK: Duration = Duration::from_millis(300);

fn holding() -> Params {
    Params::with(|params| params.act = sys::ACT_HOLD as u8)
}

fn up(malformed: u64) -> Option<ChannelState> {
    Some(ChannelState { is_up: true, malformed })
}

fn down(malformed: u64) -> Option<ChannelState> {
    Some(ChannelState { is_up: false, malformed })
}

/// The guest's end.
struct Follower(UnixStream);

impl Follower {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("the channel");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Follower(stream)
    }

    fn greeted(path: &Path) -> Self {
        let mut follower = Self::connect(path);
        follower.say(&FromGuest::Hello { version: VERSION });
        assert_eq!(follower.hears(), HELLO);
        follower
    }

    fn say(&mut self, message: &FromGuest) {
        self.0.write_all(&message.to_bytes()).expect("written");
    }

    #[track_caller]
    fn hears(&mut self) -> FromHost {
        let mut bytes = [0; MESSAGE_BYTES];
        self.0.read_exact(&mut bytes).expect("a message");
        let message = FromHost::from_bytes(&bytes).expect("of a host");
        if matches!(message, FromHost::Online { .. } | FromHost::Offline) {
            self.say(&FromGuest::Alive);
        }
        message
    }

    /// The next message that is not the last one again.
    #[track_caller]
    fn hears_after(&mut self, last: FromHost) -> FromHost {
        self.hears_after_any(|message| *message == last)
    }

    #[track_caller]
    fn hears_after_any(&mut self, are_before: impl Fn(&FromHost) -> bool) -> FromHost {
        // Renewals come for ever.
        let until = Instant::now() + PATIENCE;
        loop {
            match self.hears() {
                before if are_before(&before) => {
                    assert!(Instant::now() < until, "nothing but {before:?}");
                }
                next => return next,
            }
        }
    }

    fn hears_nothing(&mut self) {
        self.0.set_read_timeout(Some(A_LOOK)).expect("a timeout");
        let error = self.0.read(&mut [0]).expect_err("silence");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        self.0.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    }

    fn is_closed(&mut self) {
        let mut rest = Vec::new();
        // A reset, if the host has not read all.
        let _ = self.0.read_to_end(&mut rest);
        assert_eq!(rest.len() % MESSAGE_BYTES, 0);
    }
}

/// Opens a connection of [`ends`], through the card.
fn open_connection(host: &Host, guest: &mut Guest) -> Flow {
    guest.offer_buffers(RECEIVE, 8, 2048);
    guest.send(PLAIN, &syn().frame());
    host.sent();
    host.wire.send(&plain(&syn_ack())).expect("sent");
    eventually("the SYN-ACK", || guest.used(RECEIVE) >= 1);
    let [guest, peer] = ends();
    Flow::new(guest, peer)
}

#[test]
fn a_guest_that_says_hello_is_answered_and_its_lease_is_renewed() {
    let (host, channel) = Host::with_channel(Port::new(holding(), 64));
    assert_eq!(host.card.channel(), down(0));
    let mut follower = Follower::connect(&channel);
    follower.hears_nothing();
    follower.say(&FromGuest::Hello { version: 9 });
    assert_eq!(follower.hears(), HELLO, "in the version that both know");
    for _ in 0..3 {
        assert_eq!(follower.hears(), ONLINE);
    }
    assert_eq!(host.card.channel(), up(0));
    host.reports("follows the channel");
    // Another process of the guest.
    follower.say(&FromGuest::Hello { version: VERSION });
    assert_eq!(follower.hears_after(ONLINE), HELLO);
    assert_eq!(follower.hears(), ONLINE);
    drop(follower);
    host.reports("does not follow the channel any more");
    assert_eq!(host.card.channel(), down(0));
}

#[test]
fn a_port_that_does_not_hold_is_offline() {
    let (host, channel) = Host::with_channel(Port::new(Params::default(), 64));
    let mut follower = Follower::greeted(&channel);
    assert_eq!([follower.hears(), follower.hears()], [FromHost::Offline; 2]);
    for mode in [Mode::Shadow, Mode::Drain] {
        host.card.change(|port| port.set_params(holding()));
        assert_eq!(follower.hears_after(FromHost::Offline), ONLINE);
        host.card.change(|port| {
            port.set_params(Params(sys::vcc_params { mode: mode.number(), ..holding().0 }));
        });
        assert_eq!(follower.hears_after(ONLINE), FromHost::Offline);
    }
}

#[test]
fn connections_are_reported_with_their_grants_and_exceptions() {
    let (host, channel) = Host::with_channel(Port::new(holding(), 64));
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    let flow = open_connection(&host, &mut guest);
    let mut follower = Follower::greeted(&channel);
    // It began before the guest asked.
    let FromHost::FlowOnline { flow: named, grant_bytes } = follower.hears_after(ONLINE) else {
        panic!("online")
    };
    assert_eq!(named, flow);
    // Half of the buffer, and the underlay's window.
    assert!((2 << 20..3 << 20).contains(&grant_bytes), "{grant_bytes}");
    host.card.change(|port| {
        port.set_buffer(vcc_domain::BufferSpec { size_bytes: 1 << 20, ..Default::default() });
    });
    let FromHost::FlowOnline { grant_bytes, .. } = follower.hears_after(ONLINE) else {
        panic!("online")
    };
    assert!((1 << 19..1 << 20).contains(&grant_bytes), "{grant_bytes}");

    // Another rule, under which the guest is shown a window.
    let rule = |name: &str, params| Rule { name: name.to_owned(), params };
    let rules = vec![rule("held", holding()), rule("shown", Params::default())];
    let judge = Arc::new(|_: &FlowKey, _: bool| 1);
    host.card
        .change(|port| port.set_rules(Rules { rules, judge, polices: false, pools: Vec::new() }));
    host.wire.send(&plain(&to_guest())).expect("sent");
    let offline = FromHost::FlowOffline { flow };
    assert_eq!(follower.hears_after(ONLINE), offline);
    follower.say(&FromGuest::Hello { version: VERSION });
    assert_eq!(follower.hears_after(ONLINE), HELLO);
    assert_eq!(follower.hears_after(ONLINE), offline);
}

/// Its connections pass, and nothing is known about them.
#[test]
fn a_full_table_is_offline_for_all() {
    let (host, channel) = Host::with_channel(Port::new(holding(), 1));
    let mut follower = Follower::greeted(&channel);
    assert_eq!(follower.hears(), ONLINE);
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    open_connection(&host, &mut guest);
    let is_before = |it: &FromHost| matches!(it, &ONLINE | FromHost::FlowOnline { .. });
    assert_eq!(follower.hears_after_any(is_before), FromHost::Offline);
    assert_eq!(follower.hears(), FromHost::Offline);
}

#[test]
fn garbage_closes_the_channel_and_is_counted() {
    let (host, channel) = Host::with_channel(Port::new(holding(), 64));
    for times in 1..=2 {
        let mut follower = Follower::greeted(&channel);
        follower.0.write_all(&[7; MESSAGE_BYTES]).expect("written");
        follower.is_closed();
        host.reports(
            "closed the channel, because the guest sent a message whose magic is 0x7070707",
        );
        eventually("counted", || host.card.channel() == down(times));
    }
    let mut follower = Follower::connect(&channel);
    follower.0.write_all(&ONLINE.to_bytes()).expect("written");
    host.reports("a message whose kind is 0x2");
    follower.is_closed();
    Follower::greeted(&channel);
}

#[test]
fn a_second_client_is_refused_until_the_first_is_silent() {
    let (host, channel) = Host::with_channel(Port::new(holding(), 64));
    let mut first = Follower::greeted(&channel);
    assert_eq!(first.hears(), ONLINE);
    let mut second = Follower::connect(&channel);
    second.is_closed();
    assert_eq!(first.hears(), ONLINE);
    // It does not answer any more.
    eventually("silence", || host.card.channel() == down(0));
    let mut bytes = Vec::new();
    first.0.set_nonblocking(true).expect("not blocking");
    let _ = first.0.read_to_end(&mut bytes);
    let last = bytes.last_chunk::<MESSAGE_BYTES>().expect("messages");
    assert_eq!(FromHost::from_bytes(last), Ok(FromHost::Offline));
    // It answers again, and may have missed something.
    first.0.set_nonblocking(false).expect("blocking");
    first.say(&FromGuest::Alive);
    assert_eq!(first.hears(), ONLINE);
    eventually("silence", || host.card.channel() == down(0));
    let mut third = Follower::greeted(&channel);
    assert_eq!(third.hears(), ONLINE);
    first.is_closed();
}

/// Whatever a guest says on the channel, the port does what it does without.
#[test]
fn a_lying_guest_gains_nothing() {
    let (host, channel) = Host::with_channel(Port::new(holding(), 64));
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    open_connection(&host, &mut guest);
    let state = || {
        host.card.with_port(|port| {
            let flows: Vec<_> = port.flows().map(|(key, flow)| (*key, flow.0)).collect();
            let buffer = (port.held_bytes(), port.granted_bytes());
            (flows, buffer, port.counters().clone(), *port.params())
        })
    };
    let before = state();
    let mut follower = Follower::greeted(&channel);
    for _ in 0..1000 {
        follower.say(&FromGuest::Hello { version: u16::MAX });
        follower.say(&FromGuest::Alive);
    }
    assert_eq!(follower.hears_after(HELLO), ONLINE);
    assert_eq!(state(), before);
}

/// It asks and never reads: it is left before its answers take the host's memory.
#[test]
fn a_guest_that_does_not_read_is_left() {
    let (_host, channel) = Host::with_channel(Port::new(holding(), 64));
    let mut follower = Follower::greeted(&channel);
    follower.0.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let hello = FromGuest::Hello { version: VERSION }.to_bytes().repeat(1000);
    let refused = (0..1000).find_map(|_| follower.0.write_all(&hello).err());
    let refused = refused.map(|error| error.kind());
    // Reset, if the port had not read all when it closed.
    let closed = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].map(Some);
    assert!(closed.contains(&refused), "{refused:?}");
}

#[test]
fn the_channel_ends_with_its_card() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let (_wire, cable) = Cable::pair();
    let on_event = Box::new(|_| {});
    let port = Port::new(holding(), 64);
    let mut server = Server::new(&path("card"), port, Box::new(cable), on_event).expect("a card");
    assert_eq!(server.card().channel(), None);
    server.open_channel(&path("channel")).expect("a channel");
    let stop = EventFd::new(EFD_NONBLOCK).expect("an eventfd");
    thread::scope(|scope| {
        let served = scope.spawn(|| server.run(&stop));
        let mut follower = Follower::greeted(&path("channel"));
        stop.write(1).expect("stopped");
        follower.is_closed();
        served.join().expect("no panic").expect("served");
    });
    assert!(!path("channel").exists());
    assert!(server.open_channel(&path("card")).is_err(), "of the card");
}
