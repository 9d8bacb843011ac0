//! Attaching and detaching repeatedly under traffic.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use libbpf_rs::query::LinkInfoIter;
use vcc_testing::{EndOnDrop, Netns, guest};

use super::*;

/// The number of cycles, if not the default.
const CYCLES: &str = "VCC_ATTACH_CYCLES";
const SHORT_CYCLES: usize = 12;
static PIECE: [u8; 20_000] = [7; 20_000];

fn connect(netns: &Netns, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let address = listener.local_addr().expect("an address");
    let guest = netns.inside(|| TcpStream::connect(address)).expect("inside").expect("open");
    let (host, _) = listener.accept().expect("accepted");
    for stream in [&guest, &host] {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    }
    (guest, host)
}

/// Transfers in both directions, and compares every byte.
fn exchange((guest, host): &mut (TcpStream, TcpStream)) {
    let mut received = [0; PIECE.len()];
    guest.write_all(&PIECE).expect("sent");
    host.read_exact(&mut received).expect("received");
    assert_eq!(received, PIECE);
    host.write_all(&PIECE).expect("sent");
    guest.read_exact(&mut received).expect("received");
    assert_eq!(received, PIECE);
}

#[test]
fn attaching_and_detaching_under_traffic_leaves_and_breaks_nothing() {
    if !can_attach() {
        return;
    }
    let cycles = std::env::var(CYCLES).ok().map_or(SHORT_CYCLES, |it| it.parse().expect(CYCLES));
    isolated(|| {
        let netns = guest();
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let mut old = connect(&netns, &listener);
        let over = AtomicBool::new(false);
        let (mut objects, mut links) = (Vec::new(), Vec::new());
        thread::scope(|scope| {
            let end = EndOnDrop(&over);
            let talking = scope.spawn(|| {
                let mut rounds = 0;
                while !over.load(Ordering::Relaxed) {
                    exchange(&mut old);
                    rounds += 1;
                }
                rounds
            });
            for _ in 0..cycles {
                let port = attach();
                objects.push(Objects::from_port(&port));
                links.extend(port.links.iter().map(|link| link.info().expect("a link").id));
                let mut young = connect(&netns, &listener);
                exchange(&mut young);
                assert_eq!(port.drain().expect("drains"), 1);
                exchange(&mut young);
                drop(young);
                eventually("no flow depends on vcc", || port.drain().expect("drains") == 0);
                port.detach().expect("detached");
            }
            drop(end);
            assert!(talking.join().expect("every byte") > cycles);
        });
        eventually("programs and maps gone", || objects.iter().all(Objects::all_gone));
        let left = LinkInfoIter::default().filter(|link| links.contains(&link.id)).count();
        assert_eq!((left, links.len()), (0, 2 * cycles));
    });
}
