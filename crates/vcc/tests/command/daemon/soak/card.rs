//! The same of `vcc domain`: its guest and that one's front end are by hand, the peer is this host.

use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use vcc_frames::wire::*;
use vcc_frames::{Packet, options};
use vcc_testing::{eventually, ip, on_a_host};
use vcc_vhost::testing::{EVENT_IDX, FrontEnd, Guest, RECEIVE, SEND, USUAL, words};

use super::super::Place;
use super::{Part, assert_flat, load, work};

/// No offload, no other frame behind it.
const PLAIN: [u8; 12] = [0; 12];
const BUFFERS: u16 = 200;
const SEGMENT_BYTES: usize = 1000;
const DATA_BYTES: u32 = 4 * SEGMENT_BYTES as u32;
/// Frames of a guest: of three connections a SYN, an ACK, data, a FIN and a RST, and another SYN.
const SENT: u16 = 3 * 8 + 1;
/// Far longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

const AT_REST: &str = "[[ports]]\nsocket = \"*/card\"\n\
                       [default]\nact = \"hold\"\nidle_handshake = \"1s\"\nidle_closed = \"1s\"\n";

struct Domain(Child);

impl Domain {
    fn start(place: &Place) -> Self {
        let mut command = place.command();
        command.args(["domain", "--tap", "tap0", "--socket"]).arg(place.path("card"));
        command.arg("--policy").arg(place.config());
        let complaints = File::create(place.path("complaints")).expect("a file");
        command.stdout(Stdio::null()).stderr(complaints);
        Self(command.spawn().expect("the command"))
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Front ends that connect and leave, before, after and while their guest talks.
fn front_ends(place: &Place, listener: &TcpListener, is_over: &AtomicBool) -> u64 {
    let socket = &place.path("card");
    let peer = listener.local_addr().expect("an address");
    load::until(is_over, 5, |number| {
        let mut guest = Guest::new(2);
        match number % 8 {
            0 => drop(FrontEnd::connect(socket)),
            1 => FrontEnd::connect(socket).write(&words(&[5, 1])),
            2 => FrontEnd::connect(socket).ask(99, &[], &[]),
            3 => FrontEnd::connect(socket).share(&guest, USUAL),
            4 => {
                let mut front_end = FrontEnd::connect(socket);
                front_end.share(&guest, USUAL);
                front_end.begin(&guest, RECEIVE);
            }
            5 => FrontEnd::connect(socket).write_with_itself(&words(&[5, 1, 0])),
            _ => {
                let features = if number % 8 == 6 { USUAL } else { USUAL | EVENT_IDX };
                let _front_end = FrontEnd::ready(&guest, socket, features);
                guest.offer_buffers(RECEIVE, BUFFERS, 2048);
                let ends = (0..3).map(|it| (1024 + (number * 3 + it) % 60_000) as u16);
                let ends = ends.map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
                for end in ends.clone() {
                    talk(&mut guest, end, peer);
                    drop(listener.accept());
                }
                for end in ends {
                    let rst = Packet { seq: DATA_BYTES + 2, flags: RST, ..Packet::new(end, peer) };
                    guest.send(PLAIN, &rst.frame());
                }
                let [end, nobody] = [[192, 0, 2, 1], [192, 0, 2, 9]].map(|it| (it, 80).into());
                guest.send(PLAIN, &Packet::syn(end, nobody).frame());
                wait_for("the card has taken all", || guest.used(SEND) == SENT);
            }
        }
    })
}

#[track_caller]
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        sleep(Duration::from_millis(1));
    }
}

/// A handshake, some data, and a FIN. The host closes by a FIN or RST.
fn talk(guest: &mut Guest, end: SocketAddr, peer: SocketAddr) {
    let mut seen = guest.used(RECEIVE);
    let syn = Packet { options: options::mss(1460), ..Packet::syn(end, peer) };
    guest.send(PLAIN, &syn.frame());
    let mut answer = None;
    wait_for("an answer to a SYN", || {
        while answer.is_none() && guest.used(RECEIVE) != seen {
            let frame = guest.received(RECEIVE, seen, 1);
            seen = seen.wrapping_add(1);
            // Others are the host's own, or of a connection before.
            let packet = Packet::read_ipv4(&frame[PLAIN.len()..]);
            answer = packet.filter(|it| it.to == end && it.flags & SYN != 0);
        }
        answer.is_some()
    });
    let ack = answer.map_or(0, |it| it.seq.wrapping_add(1));
    let next = Packet { seq: 1, ack, ..Packet::new(end, peer) };
    guest.send(PLAIN, &next.frame());
    for seq in (1..DATA_BYTES).step_by(SEGMENT_BYTES) {
        let packet = Packet { seq, payload: vec![7; SEGMENT_BYTES], ..next.clone() };
        guest.send(PLAIN, &packet.frame());
    }
    guest.send(PLAIN, &Packet { seq: DATA_BYTES + 1, flags: FIN | ACK, ..next }.frame());
}

/// What is done with the guest's segments changes under its connections.
fn policies(place: &Place, pid: u32, is_over: &AtomicBool) -> u64 {
    load::until(is_over, 100, |number| {
        let policy = match number % 5 {
            0 => AT_REST.replace("hold", "split"),
            1 => format!("{AT_REST}retransmit = true\n"),
            2 => format!("{AT_REST}receive = \"ring\"\n"),
            // A handshake ends under the rule that it began under, also if no rule has replaced it.
            3 => format!(
                "{AT_REST}[[rules]]\nname = \"r{number}\"\nunderlay = \"cubic\"\n\
                 idle_handshake = \"1s\"\nidle_closed = \"1s\"\n"
            ),
            // Refused.
            _ => AT_REST.replace("hold", "grip"),
        };
        place.write(&policy);
        load::hang_up(pid);
    })
}

/// Who asks what the port knows, also without waiting for the answer.
fn readers(place: &Place, is_over: &AtomicBool) -> u64 {
    load::until(is_over, 50, |number| {
        let arguments = match number % 3 {
            0 => "flows --json",
            1 => "ports --json",
            _ => {
                let socket = place.path("run/domains/tap0");
                drop(UnixStream::connect(&socket).expect("a socket"));
                let mut stream = UnixStream::connect(&socket).expect("a socket");
                let _ = stream.write_all(b"x");
                return;
            }
        };
        let output = place.vcc(arguments);
        assert_eq!(output.code, 0, "{arguments}: {}", output.stderr);
    })
}

#[test]
fn a_driver_domain_holds_no_more_after_a_long_time() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        ip("link set tap0 address 02:00:00:00:00:02");
        ip("address add 192.0.2.2/24 dev tap0");
        ip("link set tap0 up");
        ip("neighbour add 192.0.2.1 lladdr 02:00:00:00:00:01 dev tap0");
        let place = &Place::new("soak-card", AT_REST);
        let listener = &TcpListener::bind("192.0.2.2:0").expect("a listener");
        let domain = Domain::start(place);
        let pid = domain.0.id();
        eventually("it serves", || place.path("run/domains/tap0").exists());
        let parts: [Part; 4] = [
            ("front ends", Box::new(|is_over| front_ends(place, listener, is_over))),
            ("policies", Box::new(|is_over| policies(place, pid, is_over))),
            ("readings", Box::new(|is_over| readers(place, is_over))),
            ("recordings", Box::new(|is_over| load::traces(place, "tap0", is_over))),
        ];
        let rest = || {
            place.write(AT_REST);
            load::hang_up(pid);
            // What was promised to a guest that has gone is given up after some time.
            let begin = Instant::now();
            loop {
                let output = place.vcc("flows --json");
                let flows = serde_json::from_str::<Value>(&output.stdout);
                if flows.is_ok_and(|it| it.as_array().is_some_and(Vec::is_empty)) {
                    return;
                }
                assert!(begin.elapsed() < PATIENCE, "connections stay: {}", output.stdout);
                sleep(Duration::from_millis(100));
            }
        };
        assert_flat("vcc domain", pid, |time| work(pid, time, &parts, || {}), rest);
        let complaints = fs::read_to_string(place.path("complaints")).expect("a file");
        assert!(!complaints.contains("panicked"), "{complaints}");
    });
}
