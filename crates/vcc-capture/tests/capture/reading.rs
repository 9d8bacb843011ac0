//! Reading a capture, and the port that it is compared with.

use std::net::SocketAddr;

use vcc_capture::testing::{EPOCH_NS, Timed};
use vcc_capture::{Capture, Connection, Packet, Replay, Replayed, Treatment};
use vcc_domain::{Frame, Out, Port};
use vcc_engine::{FlowKey, FlowState, Mode, Params};

pub const S_NS: u64 = 1_000_000_000;
pub const ETHERNET: u32 = 1;

pub fn ends(is_ipv6: bool) -> [SocketAddr; 2] {
    let ends = match is_ipv6 {
        false => ["10.0.0.2:40000", "192.0.2.9:80"],
        true => ["[fd00::2]:40000", "[fd00::9]:80"],
    };
    ends.map(|end| end.parse().expect("an end"))
}

pub fn shadow() -> Params {
    let mut params = Params::default();
    params.0.mode = Mode::Shadow.number();
    params
}

/// What a file shows, and what is wrong with it.
pub fn read(file: &[u8]) -> (Replayed, Vec<String>) {
    let mut replay = Replay::new(Treatment::from_params(shadow()), 100, None);
    let mut problems = Vec::new();
    let mut packet = Packet::default();
    let mut capture = match Capture::open(file) {
        Ok(capture) => capture,
        Err(problem) => return (replay.end(), vec![problem.to_string()]),
    };
    loop {
        match capture.next(&mut packet) {
            Ok(true) => problems
                .extend(replay.take(&mut packet, &mut |_| {}).err().map(|it| it.to_string())),
            Ok(false) => return (replay.end(), problems),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
}

#[track_caller]
pub fn read_well(file: &[u8]) -> Replayed {
    let (seen, problems) = read(file);
    assert_eq!(problems, [""; 0]);
    seen
}

#[track_caller]
pub fn only(seen: &Replayed) -> &Connection {
    let [connection] = &seen.connections[..] else {
        panic!("{} connections", seen.connections.len());
    };
    connection
}

/// The state of a port's flow behind these frames.
pub fn directly(
    frames: &[Timed<Vec<u8>>],
    [guest, peer]: [SocketAddr; 2],
    vlan: Option<u16>,
) -> FlowState {
    let (mut port, mut out) = (Port::new(shadow(), 100), Out::default());
    for (time_ns, bytes) in frames {
        let now_ns = time_ns - EPOCH_NS + S_NS;
        port.advance(now_ns, &mut out);
        let mut frame = Frame::full(bytes.clone());
        let header = frame.tcp_header().expect("TCP");
        let port_at = header.at..header.at + 2;
        let _ = match frame.bytes[port_at] == guest.port().to_be_bytes() {
            true => port.from_guest(now_ns, &mut frame, &mut out),
            false => port.to_guest(now_ns, &mut frame, &mut out).0,
        };
    }
    *port.flow(&FlowKey::new(guest, peer, vlan)).expect("a flow")
}

#[track_caller]
pub fn assert_same(connection: &Connection, direct: &FlowState) {
    assert!(connection.state.0 == direct.0, "another state than that of a port");
    assert_eq!((direct.retransmissions, direct.reductions), (1, 1));
    assert_eq!((connection.life.sent_bytes, connection.life.acked_bytes), (20_001, 20_001));
}
