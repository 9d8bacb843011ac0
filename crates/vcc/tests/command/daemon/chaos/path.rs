//! Two guests, and the path between the bridges of their ports.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use vcc_port::Netns;
use vcc_testing::{ip, tun};

use super::random::Random;

const FRAME_MAX_BYTES: usize = 2048;
/// EtherType, as it is sent.
const IPV4: [u8; 2] = [8, 0];

/// A guest at 192.0.2.N behind the port of that number, bridged to one end of the path.
pub fn guest(number: u32) -> (Netns, File) {
    let guest = Netns::create().expect("a namespace");
    ip(&format!("link add port{number} type veth peer name guest netns {}", guest.path()));
    let inside = guest.inside(|| {
        ip(&format!("address add 192.0.2.{number}/24 dev guest"));
        ip("link set guest up");
    });
    inside.expect("inside");
    let path = tun::create(&format!("path{number}"), libc::IFF_TAP, libc::O_NONBLOCK);
    ip(&format!("link add bridge{number} type bridge"));
    for device in ["port", "path"] {
        ip(&format!("link set {device}{number} master bridge{number}"));
        ip(&format!("link set {device}{number} up"));
    }
    ip(&format!("link set bridge{number} up"));
    (guest, path)
}

/// Carries frames between both ends, and impairs one in some of them.
pub fn carry(ends: [&File; 2], seed: u64, is_over: &AtomicBool) {
    let mut random = Random::new(seed);
    let mut overtaken: [Option<Vec<u8>>; 2] = [None, None];
    let mut buffer = [0; FRAME_MAX_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let mut polled =
            ends.map(|end| libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        // SAFETY: two live pollfds.
        unsafe { libc::poll(polled.as_mut_ptr(), 2, 20) };
        for from in 0..2 {
            let mut to = ends[1 - from];
            // The kernel drops the frame if a queue is full.
            let mut send = |frame: &[u8]| {
                let _ = to.write(frame);
            };
            let late = overtaken[from].take();
            if let Ok(bytes) = { ends[from] }.read(&mut buffer) {
                let frame = &mut buffer[..bytes];
                match random.below(1000) {
                    0..5 => {}
                    5..10 => [&frame, &frame].iter().for_each(|frame| send(frame)),
                    10..25 => overtaken[from] = Some(frame.to_vec()),
                    // ARP has no checksum: a changed one makes a neighbour unreachable for a minute.
                    25..28 if frame.get(12..14) == Some(&IPV4) => {
                        let at = random.below(bytes as u32) as usize;
                        frame[at] ^= 1 << random.below(8);
                        send(frame);
                    }
                    28 => {
                        sleep(Duration::from_millis(random.below(30).into()));
                        send(frame);
                    }
                    _ => send(frame),
                }
            }
            if let Some(frame) = late {
                send(&frame);
            }
        }
    }
}
