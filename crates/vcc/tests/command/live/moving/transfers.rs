//! Transfers in the middle of which a guest moves.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vcc_testing::EndOnDrop;

use super::super::{TRANSFER_BYTES, Vm, begin_from_guest, begin_to_guest, noise, run, sha256};

/// For a part of a transfer, whose guest moves meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of a transfer that has to last.
const PART_BYTES: usize = 1 << 14;

/// Between two parts of it.
const PAUSE: Duration = Duration::from_millis(20);

/// The guest sends a file of noise, and moves meanwhile.
pub fn from_guest(vm: &mut Vm, midway: &mut dyn FnMut(&mut Vm) -> Instant) -> Duration {
    let sum = run(vm, "sha256sum /tmp/noise");
    let mut stream = begin_from_guest(vm);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut bytes = vec![0; TRANSFER_BYTES / 8];
    stream.read_exact(&mut bytes).expect("the first part");
    let has_moved = &AtomicBool::new(false);
    let silence = thread::scope(|scope| {
        let end = EndOnDrop(has_moved);
        let reader = scope.spawn(|| read_all(&stream, has_moved));
        let moved = midway(vm);
        drop(end);
        let (rest, read_at) = reader.join().expect("the rest");
        bytes.extend(rest);
        after(moved, &read_at)
    });
    drop(stream);
    vm.finish().expect("its end");
    assert_eq!(bytes.len(), TRANSFER_BYTES);
    assert!(sum.contains(&sha256(&bytes)), "not what the guest has sent: {sum}");
    silence
}

/// Reads slowly until the guest has moved, so that the transfer lasts as long. Returns, too, when each
/// part came.
fn read_all(mut stream: &TcpStream, has_moved: &AtomicBool) -> (Vec<u8>, Vec<Instant>) {
    let (mut bytes, mut read_at) = (Vec::new(), Vec::new());
    let mut part = [0; PART_BYTES];
    loop {
        match stream.read(&mut part).expect("a part") {
            0 => return (bytes, read_at),
            part_bytes => bytes.extend_from_slice(&part[..part_bytes]),
        }
        read_at.push(Instant::now());
        pause_until(has_moved);
    }
}

fn pause_until(has_moved: &AtomicBool) {
    if !has_moved.load(Ordering::Relaxed) {
        thread::sleep(PAUSE);
    }
}

/// How long after the move the transfer continued.
fn after(moved: Instant, parts_at: &[Instant]) -> Duration {
    let next = parts_at.iter().find(|at| **at > moved);
    *next.expect("a transfer that lasts longer than the move") - moved
}

/// The guest receives noise, and moves meanwhile.
pub fn to_guest(vm: &mut Vm, midway: &mut dyn FnMut(&mut Vm) -> Instant) -> Duration {
    let noise = noise();
    let mut stream = begin_to_guest(vm);
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let (first, rest) = noise.split_at(TRANSFER_BYTES / 8);
    stream.write_all(first).expect("the first part");
    let has_moved = &AtomicBool::new(false);
    let silence = thread::scope(|scope| {
        let end = EndOnDrop(has_moved);
        let stream = &stream;
        let writer = scope.spawn(move || {
            let mut stream = stream;
            let written_at = rest.chunks(PART_BYTES).map(|part| {
                stream.write_all(part).expect("a part");
                pause_until(has_moved);
                Instant::now()
            });
            let written_at: Vec<Instant> = written_at.collect();
            stream.shutdown(Shutdown::Write).expect("an end");
            written_at
        });
        let moved = midway(vm);
        drop(end);
        after(moved, &writer.join().expect("the rest"))
    });
    let sum = vm.finish().expect("its end");
    assert!(sum.contains(&sha256(&noise)), "not what the guest was sent: {sum}");
    silence
}
