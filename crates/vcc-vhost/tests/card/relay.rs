//! A relay between two wires.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use vcc_domain::{Port, Promise};
use vcc_engine::{FlowKey, Params, sys};
use vcc_frames::{Packet, payload};
use vcc_vhost::testing::PATIENCE;
use vcc_vhost::{Error, HEADER_BYTES, Offload, RelayServer, Wire};

use crate::host::{Cable, eventually};
use crate::talk::*;
use crate::{frame, port};

/// The guest sends so many segments, which is more than an initial window.
const SEGS: u32 = 30;

/// The relay's ends: of the guest, of the fabric, and those that end it.
struct Ends {
    guest: UnixDatagram,
    fabric: UnixDatagram,
    stop: UnixStream,
    gone: Option<UnixStream>,
    ended: Receiver<Result<(), Error>>,
}

impl Ends {
    fn with(port: Port) -> Self {
        let (guest, guests) = Cable::pair();
        let (fabric, fabrics) = Cable::pair();
        Self { guest, fabric, ..Self::between(port, Box::new(guests), Box::new(fabrics)) }
    }

    fn between(port: Port, guest: Box<dyn Wire>, fabric: Box<dyn Wire>) -> Self {
        let pair = || UnixStream::pair().expect("a pair");
        let ((stop, stops), (gone, goes)) = (pair(), pair());
        let (sender, ended) = channel();
        let server = RelayServer::new("veth0", port, guest, fabric, Box::new(|_| {}));
        let mut server = server.expect("a server");
        thread::spawn(move || {
            let ended = server.run(&stops, &goes);
            if ended.is_ok() {
                server.end();
            }
            sender.send(ended)
        });
        let unused = || UnixDatagram::unbound().expect("a socket");
        Ends { guest: unused(), fabric: unused(), stop, gone: Some(gone), ended }
    }

    fn ended(&self) -> Result<(), Error> {
        self.ended.recv_timeout(PATIENCE).expect("an end")
    }

    /// The guest opens a connection and sends.
    fn send_data(&self) {
        self.guest.send(&plain(&syn())).expect("sent");
        next(&self.fabric);
        self.fabric.send(&plain(&syn_ack())).expect("sent");
        next(&self.guest);
        for number in 0..SEGS {
            let seq = GUEST_SEQ + number * u32::from(MSS_BYTES);
            let data = Packet { seq, payload: payload(MSS_BYTES.into()), ..from_guest() };
            self.guest.send(&plain(&data)).expect("sent");
        }
    }
}

/// The frame behind the header.
#[track_caller]
fn next(end: &UnixDatagram) -> Vec<u8> {
    let mut frame = vec![0; 1 << 17];
    let bytes = end.recv(&mut frame).expect("a frame");
    frame[HEADER_BYTES..bytes].to_vec()
}

/// All that come until none has come for a while.
fn all(end: &UnixDatagram) -> Vec<Vec<u8>> {
    end.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    let mut frame = vec![0; 1 << 17];
    let received = std::iter::from_fn(|| {
        let bytes = end.recv(&mut frame).ok()?;
        Some(frame[HEADER_BYTES..bytes].to_vec())
    });
    let received = received.collect();
    end.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    received
}

fn is_data(frame: &[u8]) -> bool {
    frame.len() > usize::from(MSS_BYTES)
}

fn is_reset(frame: &[u8]) -> bool {
    frame[14 + 20 + 13] & sys::TCP_RST as u8 != 0
}

fn ack_of(frame: &[u8]) -> u32 {
    frame[14 + 20 + 8..][..4].try_into().map(u32::from_be_bytes).expect("a TCP header")
}

fn with(act: u32) -> Port {
    Port::new(Params::with(|params| params.act = act as u8), 64)
}

#[test]
fn what_the_port_passes_leaves_on_the_other_wire() {
    let ends = Ends::with(port());
    ends.guest.send(&[&[0; HEADER_BYTES][..], &frame(1)].concat()).expect("sent");
    assert_eq!(next(&ends.fabric), frame(1));
    ends.fabric.send(&[&[0; HEADER_BYTES][..], &[7; 60]].concat()).expect("sent");
    assert_eq!(next(&ends.guest), [7; 60]);
    ends.stop.shutdown(std::net::Shutdown::Both).expect("an end");
    ends.ended().expect("a stop is no error");
}

#[test]
fn what_is_held_leaves_by_the_window() {
    let ends = Ends::with(with(sys::ACT_HOLD));
    ends.send_data();
    let left = all(&ends.fabric).into_iter().filter(|it| is_data(it)).count() as u32;
    assert!((1..SEGS).contains(&left), "{left} segments left at once");
    let mut arrived = left;
    while arrived < SEGS {
        let ack = GUEST_SEQ + arrived * u32::from(MSS_BYTES);
        ends.fabric.send(&plain(&Packet { ack, ..to_guest() })).expect("sent");
        let (before, until) = (arrived, Instant::now() + PATIENCE);
        while arrived == before {
            assert!(Instant::now() < until, "{arrived} of {SEGS} left, and no more");
            arrived += all(&ends.fabric).into_iter().filter(|it| is_data(it)).count() as u32;
        }
    }
}

/// Though the peer has not.
#[test]
fn what_is_split_is_acknowledged_by_the_port() {
    let ends = Ends::with(with(sys::ACT_SPLIT));
    ends.send_data();
    let all_sent = GUEST_SEQ + SEGS * u32::from(MSS_BYTES);
    eventually("an acknowledgement of all", || ack_of(&next(&ends.guest)) == all_sent);
    ends.stop.shutdown(std::net::Shutdown::Both).expect("an end");
    ends.ended().expect("a stop is no error");
    for end in [&ends.guest, &ends.fabric] {
        let has_reset = all(end).iter().any(|frame| is_reset(frame));
        assert!(has_reset, "promises are broken at both ends");
    }
}

/// The first may be lost, and an end that has nothing to send would never ask.
#[test]
fn resets_of_a_process_before_are_repeated_though_no_frame_comes() {
    let (guest, guests) = Cable::pair();
    let (fabric, fabrics) = Cable::pair();
    let server =
        RelayServer::new("veth0", port(), Box::new(guests), Box::new(fabrics), Box::new(|_| {}));
    let mut server = server.expect("a server");
    let key = FlowKey::new(([10, 0, 0, 2], 40_000).into(), ([10, 0, 0, 9], 80).into(), None);
    let [guest_mac, next_hop_mac] = [[2; 6], [4; 6]];
    let [snd_una, snd_nxt, promised, rcv_nxt] = [1_000, 2_000, 3_000, 4_000];
    let left = Promise { key, guest_mac, next_hop_mac, snd_una, snd_nxt, promised, rcv_nxt };
    server.card().end_promises(vec![left]);
    let (stop, stops) = UnixStream::pair().expect("a pair");
    let (_gone, goes) = UnixStream::pair().expect("a pair");
    let serving = thread::spawn(move || server.run(&stops, &goes));
    for end in [&guest, &fabric] {
        end.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let first = next(end);
        assert!(is_reset(&first));
        while next(end) != first {}
    }
    stop.shutdown(std::net::Shutdown::Both).expect("an end");
    serving.join().expect("no panic").expect("a stop is no error");
}

#[test]
fn it_ends_with_its_device() {
    let mut ends = Ends::with(port());
    ends.gone = None;
    let error = ends.ended().expect_err("no device");
    assert!(matches!(&error, Error::DeviceGone(device) if device == "veth0"), "{error}");
}

/// A tap that was deleted.
struct NoWire(UnixDatagram);

impl AsRawFd for NoWire {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Wire for NoWire {
    fn receive(&mut self, _frame: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::NotConnected.into())
    }

    fn send(&mut self, _header: &[u8; HEADER_BYTES], _frame: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotConnected.into())
    }

    fn set_offload(&mut self, _offload: Offload) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn it_ends_with_either_wire() {
    for guest_is_gone in [false, true] {
        let (end, wire) = Cable::pair();
        let (other, gone) = UnixDatagram::pair().expect("a wire");
        drop(other);
        let (wire, gone): (Box<dyn Wire>, Box<dyn Wire>) = (Box::new(wire), Box::new(NoWire(gone)));
        let (guest, fabric) = if guest_is_gone { (gone, wire) } else { (wire, gone) };
        end.send(&[&[0; HEADER_BYTES][..], &frame(1)].concat()).expect("sent");
        let ends = Ends::between(port(), guest, fabric);
        let error = ends.ended().expect_err("no wire");
        assert!(matches!(error, Error::DetourGone(_)), "{error}");
    }
}
