use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use libbpf_rs::{MapCore, MapFlags};
use vcc_testing::guest;

use super::*;
use crate::flows::tests::insert;
use crate::plain::to_bytes;

#[test]
fn detaching_leaves_nothing() {
    on_a_host(|| {
        veth();
        let port = attach();
        let objects = Objects::from_port(&port);
        assert_eq!(objects.program_ids.len(), 2);
        assert!(!objects.all_gone());
        port.detach().expect("detached");
        assert!(program_ids(PORT).is_empty());
        eventually("programs and maps gone", || objects.all_gone());
    });
}

#[test]
fn dropping_detaches() {
    on_a_host(|| {
        veth();
        drop(attach());
        assert!(program_ids(PORT).is_empty());
    });
}

#[test]
fn ten_attachments_leak_nothing() {
    on_a_host(|| {
        veth();
        let mut all = Vec::new();
        for _ in 0..10 {
            let port = attach();
            all.push(Objects::from_port(&port));
            port.detach().expect("detached");
        }
        eventually("programs and maps gone", || all.iter().all(Objects::all_gone));
    });
}

#[test]
fn ports_are_isolated() {
    on_a_host(|| {
        veth();
        let (one, other) = (attach(), Port::attach("guest", &AttachOptions::default()));
        let (one, other) =
            (Objects::from_port(&one), Objects::from_port(&other.expect("an attachment")));
        assert!(one.map_ids.iter().all(|id| !other.map_ids.contains(id)));
        assert!(one.program_ids.iter().all(|id| !other.program_ids.contains(id)));
    });
}

#[test]
fn options_reach_the_datapath() {
    on_a_host(|| {
        veth();
        let params = Params::with(|p| {
            p.prr = 0;
            p.window_max_bytes = 123_456;
        });
        let options = AttachOptions { max_flows: 77, ..AttachOptions::from_params(params) };
        let port = Port::attach(PORT, &options).expect("an attachment");
        let params = port.params().expect("parameters").0;
        assert_eq!((params.prr, params.pace_push, params.window_max_bytes), (0, 1, 123_456));
        assert_eq!(port.max_flows().expect("a limit"), 77);

        port.set_mode(Mode::Shadow).expect("another mode");
        let changed = port.params().expect("parameters").0;
        assert_eq!(Mode::from_number(changed.mode), Some(Mode::Shadow));
        assert_eq!(changed.window_max_bytes, 123_456);
    });
}

#[test]
fn draining_counts_connections_that_need_the_translation() {
    on_a_host(|| {
        veth();
        let port = attach();
        assert_eq!(port.drain().expect("drained"), 0);
        let (established, closed) = (sys::STAGE_ESTABLISHED as u8, sys::STAGE_CLOSED as u8);
        let flow = |stage, wscale_peer, wscale_shown| sys::vcc_flow {
            stage,
            wscale_peer,
            wscale_shown,
            ..Default::default()
        };
        let maps = port.maps().expect("maps");
        insert(maps, 1, flow(established, 7, 3));
        insert(maps, 2, flow(established, 3, 3));
        insert(maps, 3, flow(closed, 7, 3));
        let used = sys::vcc_usage { flows: 3, ..Default::default() };
        maps.usage.update(&[0; 4], to_bytes(&used), MapFlags::ANY).expect("written");
        assert_eq!(port.drain().expect("drained"), 1);
        assert_eq!(port.params().expect("parameters").0.mode, Mode::Drain.number());
    });
}

#[test]
fn a_connection_that_is_counted_goes_on() {
    on_a_host(|| {
        let guest = guest();
        let port = Port::attach("port", &AttachOptions::default()).expect("attached");
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let to = listener.local_addr().expect("an address");
        let mut opened =
            guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
        let (mut accepted, _) = listener.accept().expect("accepted");
        for _ in 0..2 {
            assert_eq!(port.visit(Sweep::Count).expect("visited"), 1);
        }
        opened.write_all(b"still here").expect("sent");
        accepted.read_exact(&mut [0; 10]).expect("received");
        let counted = port.counters().expect("counters");
        assert_eq!(counted.get(counters::CONTENDED), 0, "a visited flow is not left locked");
    });
}
