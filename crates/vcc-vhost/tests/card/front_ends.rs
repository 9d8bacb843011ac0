//! Front ends that go, come back, or say what makes no sense.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use vcc_domain::{Ask, Reloaded, Status};
use vcc_vhost::testing::*;
use vcc_vhost::{Error, PolicyFile, Server, Wire};
use vmm_sys_util::epoll::Epoll;
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use crate::PLAIN;
use crate::host::{Host, eventually};
use crate::{frame, port};

/// Frames continue where they were, whether the front end or the card's process begins anew.
#[test]
fn a_guest_goes_on_where_it_was() {
    let mut host = Host::with(port());
    let mut guest = Guest::new(2);
    for round in 0..6 {
        let front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
        for number in 0..100 {
            guest.send(PLAIN, &frame(number));
            assert_eq!(host.sent()[12..], frame(number), "round {round}");
        }
        assert_eq!(host.card.front_end(), std::process::id());
        drop(front_end);
        host.reports("has gone");
        assert_eq!(host.card.front_end(), 0);
        // Frames that the guest queues while nobody serves it.
        guest.send(PLAIN, &frame(1000 + round));
        if round % 2 == 0 {
            host = Host::with(port());
        }
        let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
        assert_eq!(host.sent()[12..], frame(1000 + round));
        drop(_front_end);
        host.reports("has gone");
    }
}

/// A guest that kicks only if it is asked to is asked each time.
#[test]
fn no_frame_waits_for_another_ones_kick() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    for number in 0..3000 {
        guest.send_quietly(PLAIN, &frame(number));
        // The next one comes while the card still works on this one.
        assert_eq!(host.sent()[12..], frame(number));
    }
}

/// A process that was killed before it interrupted leaves that to the next.
#[test]
fn a_guest_is_called_when_its_rings_start() {
    let host = Host::with(port());
    let guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    assert!((0..2).all(|ring| guest.was_called(ring)));
}

/// The descriptors are the front end's as well.
#[test]
fn no_descriptor_of_the_front_end_makes_the_card_wait() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    for ring in [RECEIVE, SEND] {
        guest.make_descriptors_wait(ring);
    }
    guest.offer_buffers(RECEIVE, 20, 2048);
    for number in 0..20 {
        guest.send(PLAIN, &frame(number));
        // A kick that has been taken is no kick.
        guest.take_kicks(SEND);
        guest.kick(SEND);
        assert_eq!(host.sent()[12..], frame(number));
        host.wire.send(&[&PLAIN[..], &frame(number)].concat()).expect("sent");
        eventually("received", || guest.used(RECEIVE) == number + 1);
    }
}

#[test]
fn messages_that_make_no_sense_end_the_connection() {
    let host = Host::with(port());
    let guest = Guest::new(2);
    let epoll = Epoll::new().expect("a descriptor that can be waited for");
    let file = std::fs::File::open("/proc/self/exe").expect("a file");
    let event = EventFd::new(EFD_NONBLOCK).expect("an eventfd");
    let far = longs(&[1, 0, 1 << 40, 0, 0]);
    let wrapped = longs(&[1, u64::MAX - 4096, 8192, 0, 0]);
    let nine = longs(&[9]);
    let more = longs(&[1, 0, MEMORY_BYTES as u64, 0, 4096]);
    type Say<'a> = &'a dyn Fn(&mut FrontEnd);
    let bad: &[(&str, Say)] = &[
        ("unknown request, 99", &|end| end.ask(99, &[], &[])),
        ("unknown request, 0", &|end| end.write(&[0; 64])),
        ("a message of 4294967295 bytes", &|end| end.write(&words(&[1, 1, u32::MAX]))),
        ("another version", &|end| end.ask_with(1, 2, &[], &[])),
        ("SetFeatures with 0 bytes", &|end| end.ask(2, &[], &[])),
        ("not offered", &|end| end.ask(2, &[0xff; 8], &[])),
        ("ring 200, of 16", &|end| end.ask(8, &words(&[200, 256]), &[])),
        ("ring 4294967295, of 16", &|end| end.ask(10, &words(&[u32::MAX, 0]), &[])),
        ("ring 0 of 0 entries", &|end| end.ask(8, &words(&[0, 0]), &[])),
        ("ring 0 of 255 entries", &|end| end.ask(8, &words(&[0, 255]), &[])),
        ("ring 3 of 65536 entries", &|end| end.ask(8, &words(&[3, 65_536]), &[])),
        ("ring 5 at 0x1, in no memory", &|end| end.ask(9, &longs(&[5, 1, 2, 3, 0]), &[])),
        ("1 memory regions with 0 descriptors", &|end| end.ask(5, &far, &[])),
        ("9 memory regions", &|end| end.ask(5, &nine, &[])),
        ("memory of 0x10000000000 bytes", &|end| end.ask(5, &far, &[file.as_raw_fd()])),
        ("beyond the end of all memory", &|end| end.ask(5, &wrapped, &[file.as_raw_fd()])),
        // The card would touch what is not there, and be killed.
        ("at 0x0: its file ends at 0x400000", &|end| {
            end.ask(5, &more, &[guest.file().as_raw_fd()]);
        }),
        ("0 memory regions", &|end| end.ask(5, &longs(&[0]), &[])),
        ("more than 8 descriptors", &|end| end.ask(5, &nine, &[file.as_raw_fd(); 9])),
        ("ring 0 without kicks, which QEMU's card has with ioeventfd=on", &|end| {
            end.ask(12, &longs(&[1 << 8]), &[])
        }),
        // Before there is memory, a ring lies nowhere.
        ("ring 0: ", &|end| end.ask(12, &longs(&[0]), &[event.as_raw_fd()])),
        ("kicks of ring 0 by no eventfd", &|end| {
            end.set_up(&guest, USUAL);
            end.ask(12, &longs(&[0]), &[file.as_raw_fd()]);
        }),
        ("kicks of ring 1 by no eventfd", &|end| {
            end.set_up(&guest, USUAL);
            end.ask(12, &longs(&[1]), &[epoll.as_raw_fd()]);
        }),
        ("interrupts of ring 1 by no eventfd", &|end| {
            end.ask(13, &longs(&[1]), &[epoll.as_raw_fd()]);
        }),
    ];
    for (what, say) in bad {
        let mut front_end = FrontEnd::connect(&host.socket);
        say(&mut front_end);
        host.reports(what);
        assert!(front_end.sees_its_end(), "{what}");
    }
    // The next one is served.
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    guest.send(PLAIN, &frame(7));
    assert_eq!(host.sent()[12..], frame(7));
    assert_eq!(front_end.stop(1), 1);
}

#[test]
fn messages_may_come_in_pieces_and_end_anywhere() {
    let host = Host::with(port());
    let whole = [words(&[1, 1, 0]), words(&[18, 1, 8, 0, 1]), words(&[1, 1, 0])].concat();
    for end in 0..whole.len() {
        let mut front_end = FrontEnd::connect(&host.socket);
        whole[..end].iter().for_each(|byte| front_end.write(&[*byte]));
        drop(front_end);
        host.reports("has gone");
    }
    let mut front_end = FrontEnd::connect(&host.socket);
    whole.iter().for_each(|byte| front_end.write(&[*byte]));
    let answers = [front_end.answer(8), front_end.answer(8)];
    assert_eq!(answers[0], answers[1]);
}

/// While the card waited for the rest of such a message, it had the connection's other end itself.
#[test]
fn a_front_end_that_gives_its_own_end_away_is_not_kept() {
    let host = Host::with(port());
    let mut front_end = FrontEnd::connect(&host.socket);
    front_end.write_with_itself(&words(&[1]));
    drop(front_end);
    host.reports("a socket with a message");
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    guest.send(PLAIN, &frame(7));
    assert_eq!(host.sent()[12..], frame(7));
}

#[test]
fn noise_on_the_socket_breaks_nothing() {
    let host = Host::with(port());
    let mut state = 1_u64;
    for _ in 0..300 {
        let mut front_end = FrontEnd::connect(&host.socket);
        let mut noise = Vec::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let request = (state >> 33) as u32 % 45;
            noise.extend(words(&[request, 1 | (state >> 40) as u32 & 8, 40]));
            noise.extend((0..5).flat_map(|shift| (state >> (shift * 11)).to_ne_bytes()));
        }
        front_end.write(&noise);
    }
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    // Some has asked to announce an address (VHOST_USER_SEND_RARP).
    while host.sent_more().is_some() {}
    guest.send(PLAIN, &frame(7));
    assert_eq!(host.sent()[12..], frame(7));
}

/// A front end that reads no answers is not waited for.
#[test]
fn a_front_end_that_does_not_read_is_not_waited_for() {
    let host = Host::with(port());
    let mut front_end = FrontEnd::connect(&host.socket);
    let question = words(&[1, 1, 0]);
    for _ in 0..100_000 {
        front_end.write(&question);
    }
    host.reports("requests without reading the answers");
}

/// The host's network is not reconfigured for each message.
#[test]
fn features_are_set_at_the_wire_when_a_guest_receives() {
    let host = Host::with(port());
    let guest = Guest::new(2);
    let mut front_end = FrontEnd::connect(&host.socket);
    for number in 0..100 {
        let features = if number % 2 == 0 { USUAL } else { USUAL & !(GUEST_CSUM | GUEST_TSO4) };
        front_end.share(&guest, features);
    }
    front_end.settle();
    assert_eq!(host.offloads(), 0);
    front_end.set_up(&guest, USUAL);
    front_end.settle();
    assert_eq!(host.offloads(), 1);
    drop(front_end);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    front_end.settle();
    assert_eq!(host.offloads(), 1, "the next one takes the same");
}

#[test]
fn a_legacy_driver_is_reported() {
    let host = Host::with(port());
    let guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL & !VERSION_1);
    host.reports("disable-legacy=on");
}

#[test]
fn whoever_asks_is_answered() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    guest.send(PLAIN, &frame(7));
    host.sent();
    let path = host.socket.with_extension("d").join("status");
    let reload = || Err("no port".to_owned());
    let policy = PolicyFile { path: "/etc/policy".to_owned(), reload: Arc::new(reload) };
    host.card.answer_at(&path, Some(policy)).expect("a socket");
    let answer = |question: &[u8]| {
        let mut bytes = Vec::new();
        let mut stream = UnixStream::connect(&path).expect("connected");
        stream.write_all(question).expect("asked");
        stream.read_to_end(&mut bytes).expect("an answer");
        bytes
    };
    for _ in 0..2 {
        let bytes = answer(&Ask::Status(None).to_bytes());
        let status = Status::from_bytes(&bytes).expect("a status");
        // The frame was of a connection that the port does not know.
        let unknown = status.counts[vcc_engine::sys::COUNT_UNKNOWN as usize];
        assert_eq!((status.max_flows, unknown, &*status.policy), (64, 1, "/etc/policy"));
        let reloaded = Reloaded::from_bytes(&answer(&Ask::Reload.to_bytes()));
        assert_eq!(reloaded, Ok(Reloaded(reload())));
        // Of another version, or of none.
        assert_eq!(answer(&[0; Ask::BYTES]), [0; 0]);
        drop(UnixStream::connect(&path).expect("connected"));
    }
}

/// A wire of which nothing comes but errors, a few each time.
struct NoWire {
    stream: UnixStream,
    errors: Vec<ErrorKind>,
}

impl NoWire {
    fn new(errors: &[ErrorKind]) -> Box<Self> {
        let (stream, other) = UnixStream::pair().expect("a pair");
        // Its end is readable.
        drop(other);
        Box::new(NoWire { stream, errors: errors.to_vec() })
    }
}

impl AsRawFd for NoWire {
    fn as_raw_fd(&self) -> i32 {
        self.stream.as_raw_fd()
    }
}

impl Wire for NoWire {
    fn receive(&mut self, _frame: &mut [u8]) -> std::io::Result<usize> {
        Err(self.errors.pop().unwrap_or(ErrorKind::WouldBlock).into())
    }

    fn send(&mut self, _header: &[u8; 12], _frame: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn set_offload(&mut self, _offload: vcc_vhost::Offload) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn only_a_socket_that_nobody_serves_is_replaced() {
    let host = Host::with(port());
    let server =
        |path: &std::path::Path| Server::new(path, port(), NoWire::new(&[]), Box::new(|_| {}));
    assert!(matches!(server(&host.socket), Err(Error::Served(_))));
    let file = host.socket.with_extension("file");
    std::fs::write(&file, "").expect("a file");
    assert!(matches!(server(&file), Err(Error::NoSocket(_))));
    std::fs::remove_file(&file).expect("removed");
    drop(server(&file).expect("a new socket"));
    server(&file).expect("a socket that was left");
}

/// A frame that cannot be read is lost alone; a wire that was removed ends the service.
#[test]
fn the_end_of_the_wire_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let errors = [ErrorKind::NotConnected, ErrorKind::OutOfMemory, ErrorKind::OutOfMemory];
    let path = directory.path().join("socket");
    let server = Server::new(&path, port(), NoWire::new(&errors), Box::new(|_| {}));
    let mut server = server.expect("a server");
    let (guest, card) = (Guest::new(2), server.card());
    let service = std::thread::spawn(move || {
        let never = EventFd::new(EFD_NONBLOCK).expect("an eventfd");
        server.run(&never)
    });
    let mut front_end = FrontEnd::connect(&path);
    front_end.share(&guest, USUAL);
    front_end.begin(&guest, RECEIVE);
    let end = service.join().expect("its end").expect_err("no wire");
    assert!(matches!(end, Error::WireGone), "{end}");
    assert_eq!(card.counts().wire_failed, 2);
}
