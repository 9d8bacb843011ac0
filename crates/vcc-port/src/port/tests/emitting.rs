use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use vcc_testing::{Netns, guest};

use super::*;
use crate::{Emitted, Emitter};

/// More than enough segments in flight for three duplicate ACKs, less than a first window.
const FLIGHT: [u8; 12_000] = [7; 12_000];
const REQUEST: [u8; 100] = [5; 100];

/// A guest without SACK, and its peer in the calling thread's namespace.
struct Wire {
    guest: Netns,
    peer: IpAddr,
}

impl Wire {
    /// If `patient`, the guest's own retransmission timeout is too long to matter.
    fn create(v6: bool, patient: bool) -> Self {
        let guest = guest();
        let (own, peer, bits): (_, IpAddr, _) = if v6 {
            ("fd00::1", "fd00::2".parse().expect("an address"), 64)
        } else {
            ("192.0.2.1", "192.0.2.2".parse().expect("an address"), 24)
        };
        let wire = Self { guest, peer };
        if v6 {
            wire.set_reachable(true);
        }
        let configured = wire.guest.inside(|| {
            fs::write("/proc/sys/net/ipv4/tcp_sack", "0").expect("net.ipv4.tcp_sack");
            if v6 {
                ip(&format!("address add {own}/{bits} dev guest nodad"));
            }
            if patient {
                ip(&format!("route replace {peer} dev guest rto_min 60s"));
            }
        });
        configured.expect("inside");
        wire
    }

    /// Without its address, the peer ignores all packets.
    fn set_reachable(&self, reachable: bool) {
        let verb = if reachable { "add" } else { "delete" };
        match self.peer {
            IpAddr::V4(v4) => ip(&format!("address {verb} {v4}/24 dev port")),
            IpAddr::V6(v6) if reachable => ip(&format!("address add {v6}/64 dev port nodad")),
            IpAddr::V6(v6) => ip(&format!("address delete {v6}/64 dev port")),
        }
    }

    /// The guest's end and the peer's; an RTT is known and nothing is in flight.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(SocketAddr::new(self.peer, 0)).expect("a listener");
        let to = listener.local_addr().expect("an address");
        let connected = self.guest.inside(|| TcpStream::connect(to)).expect("inside");
        let mut here = connected.expect("connected");
        let mut there = listener.accept().expect("accepted").0;
        here.write_all(&FLIGHT).expect("sent");
        there.read_exact(&mut [0; FLIGHT.len()]).expect("received");
        (here, there)
    }

    /// A TCP counter of the guest (TcpExt).
    fn counted(&self, name: &str) -> u64 {
        let read = || fs::read_to_string("/proc/thread-self/net/netstat").expect("counters");
        let text = self.guest.inside(read).expect("inside");
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let mut pairs = names.split(' ').zip(values.split(' '));
        let (_, value) = pairs.find(|(found, _)| *found == name).expect("the counter");
        value.parse().expect("a number")
    }

    /// The guest sends a flight that is lost entirely; then the peer is reachable again.
    fn lose_a_flight(&self, port: &Port, here: &mut TcpStream) {
        eventually("nothing is in flight", || flow(port).flight_bytes() == 0);
        self.set_reachable(false);
        here.write_all(&FLIGHT).expect("sent");
        eventually("all is in flight", || flow(port).flight_bytes() as usize == FLIGHT.len());
        self.set_reachable(true);
    }
}

fn options_to_emit() -> AttachOptions {
    AttachOptions::from_params(Params::with(|p| p.emit = 1))
}

fn attach_to_emit() -> Port {
    Port::attach(PORT, &options_to_emit()).expect("an attachment")
}

fn flow(port: &Port) -> vcc_engine::FlowState {
    let flows = port.flows().expect("flows");
    let [flow] = &flows[..] else { panic!("one connection") };
    flow.state
}

/// Returns when the lost flight was retransmitted and received.
fn serve_until_received(emitter: &mut Emitter, mut there: &TcpStream) {
    thread::scope(|scope| {
        let arrival = scope.spawn(move || {
            let mut arrived = [0; FLIGHT.len()];
            there.read_exact(&mut arrived).expect("received");
            assert!(arrived == FLIGHT);
        });
        while !arrival.is_finished() {
            emitter.serve(Duration::from_millis(10)).expect("served");
        }
    });
}

#[test]
fn duplicate_acks_spare_a_guest_without_sack_its_timeout() {
    if !can_attach() {
        return;
    }
    for v6 in [false, true] {
        isolated(|| {
            let wire = Wire::create(v6, true);
            let port = attach_to_emit();
            let mut emitter = port.emitter().expect("an emitter");
            let (mut here, there) = wire.connect();
            wire.lose_a_flight(&port, &mut here);
            serve_until_received(&mut emitter, &there);
            assert!(wire.counted("TCPFastRetrans") >= 1);
            assert_eq!((wire.counted("TCPRenoRecovery"), wire.counted("TCPTimeouts")), (1, 0));
            let Emitted { duplicate_acks, unsent, .. } = emitter.emitted();
            assert_eq!((duplicate_acks, unsent), (3, 0));
            // The engine saw the retransmission, and reduced its window.
            assert_eq!(flow(&port).reductions, 1);
        });
    }
}

#[test]
fn a_guest_that_answers_a_request_is_spared_its_timeout_too() {
    on_a_host(|| {
        let wire = Wire::create(false, true);
        let port = attach_to_emit();
        let mut emitter = port.emitter().expect("an emitter");
        let (mut here, mut there) = wire.connect();
        eventually("nothing is in flight", || flow(&port).flight_bytes() == 0);
        there.write_all(&REQUEST).expect("sent");
        here.read_exact(&mut [0; REQUEST.len()]).expect("received");
        wire.lose_a_flight(&port, &mut here);
        serve_until_received(&mut emitter, &there);
        assert_eq!((wire.counted("TCPRenoRecovery"), wire.counted("TCPTimeouts")), (1, 0));
        // The guest took the first one for a window update, because the peer had sent data.
        assert_eq!(emitter.emitted().duplicate_acks, 4);
    });
}

#[test]
fn without_an_emitter_the_guest_waits_for_its_timeout() {
    on_a_host(|| {
        let wire = Wire::create(false, false);
        let port = attach_to_emit();
        let (mut here, mut there) = wire.connect();
        wire.lose_a_flight(&port, &mut here);
        there.read_exact(&mut [0; FLIGHT.len()]).expect("received");
        assert_eq!(wire.counted("TCPFastRetrans"), 0);
        assert!(wire.counted("TCPTimeouts") >= 1);
        // Events from before are discarded.
        let mut late = port.emitter().expect("an emitter");
        late.serve(Duration::from_millis(20)).expect("served");
        assert_eq!(late.emitted(), Emitted::default());
    });
}

#[test]
fn a_window_that_grew_without_an_ack_is_shown() {
    on_a_host(|| {
        const MINUTE_US: u32 = 60_000_000;
        let wire = Wire::create(false, true);
        let free = Params::with(|p| {
            p.emit = 1;
            p.emit_after_us = 2_000_000;
            p.rto_min_us = MINUTE_US;
        });
        let capped = Params(sys::vcc_params { window_cap_bytes: 3000, ..free.0 });
        let port = Port::attach(PORT, &AttachOptions::from_params(capped)).expect("an attachment");
        let mut emitter = port.emitter().expect("an emitter");
        let (mut here, _there) = wire.connect();
        eventually("nothing is in flight", || flow(&port).flight_bytes() == 0);
        wire.set_reachable(false);
        here.write_all(&FLIGHT).expect("sent");
        eventually("the window is full", || (1..=3000).contains(&flow(&port).flight_bytes()));
        port.resume(&AttachOptions::from_params(free)).expect("without a cap");
        while emitter.emitted().window_updates == 0 {
            emitter.serve(Duration::from_millis(10)).expect("served");
        }
        eventually("all is in flight", || flow(&port).flight_bytes() as usize == FLIGHT.len());
        assert_eq!(wire.counted("TCPTimeouts"), 0);
    });
}

#[test]
fn who_may_emit() {
    on_a_host(|| {
        veth();
        let message = attach().emitter().err().expect("a refusal").to_string();
        assert!(message.starts_with("`port` was attached without --emit"), "{message}");

        let port = attach_pinned(PORT, &options_to_emit()).expect("an attachment");
        let emitter = port.emitter().expect("an emitter");
        let message = port.emitter().err().expect("a refusal").to_string();
        assert!(message.starts_with("another `vcc emit` is running at `port`"), "{message}");
        // A trace reads another ring buffer.
        drop(port.trace(None).expect("a trace"));
        drop(emitter);
        port.emitter().expect("an emitter");

        let other = Netns::create().expect("a namespace");
        let elsewhere = other.inside(|| {
            let ports = Port::list().expect("a list");
            ports[0].emitter().err().expect("a refusal").to_string()
        });
        let message = elsewhere.expect("inside");
        assert!(message.starts_with("`port` is in another network namespace"), "{message}");
    });
}
