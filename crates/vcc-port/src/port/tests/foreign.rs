use std::net::UdpSocket;

use super::*;
use crate::{Program, counters};

/// Programs of another application: here, the yardstick and a program of the datapath, because they
/// count.
struct Foreign {
    datapath: Datapath,
    _link: Link,
}

impl Foreign {
    fn attach(program: Program) -> Self {
        let datapath = Datapath::load_with_yardsticks(None, &AttachOptions::default());
        let datapath = datapath.expect("a datapath");
        let ifindex = Device::named(PORT).expect("a device").ifindex;
        let link = {
            let program = datapath.program(program).expect("a program");
            tcx::attach(&program, ifindex, vcc_policy::Order::Last, 0)
                .expect("a foreign attachment")
        };
        Self { datapath, _link: link }
    }

    fn seen(&self) -> u64 {
        self.datapath.counters().expect("counters").get(counters::NOT_TCP)
    }
}

fn seen(port: &Port) -> u64 {
    port.counters().expect("counters").get(counters::NOT_TCP)
}

/// Sends a UDP datagram out of `device`.
fn send_from(device: &str) {
    ip(&format!("address replace 192.0.2.1/24 dev {device}"));
    ip(&format!("neighbour replace 192.0.2.2 lladdr 02:00:00:00:00:02 dev {device}"));
    let socket = UdpSocket::bind("192.0.2.1:0").expect("a socket");
    socket.send_to(b"datagram", "192.0.2.2:9").expect("sent");
}

#[test]
fn a_program_before_ours_keeps_working() {
    on_a_host(|| {
        veth();
        let foreign = Foreign::attach(Program::ParseFromGuest);
        let port = attach();
        send_from("guest");
        eventually("both saw it", || foreign.seen() == 1 && seen(&port) == 1);
        port.detach().expect("detached");
        send_from("guest");
        eventually("it still sees all", || foreign.seen() == 2);
    });
}

#[test]
fn a_program_after_ours_keeps_working() {
    on_a_host(|| {
        veth();
        let port = attach();
        let from_guest = Foreign::attach(Program::ParseFromGuest);
        let to_guest = Foreign::attach(Program::ToGuest);
        send_from("guest");
        eventually("both saw it", || from_guest.seen() == 1 && seen(&port) == 1);
        ip("address flush dev guest");
        send_from(PORT);
        eventually("both saw it", || to_guest.seen() == 1 && seen(&port) == 2);
    });
}
