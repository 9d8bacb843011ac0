//! What connections are at when their guest moves: idle, sending both ways, half closed, closing, many
//! at once. passt's tests of its migration have a like list.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::super::{Image, Vm, run, sha256};
use super::ground::Ground;

const PATIENCE: Duration = Duration::from_secs(60);
const PART_BYTES: usize = 1_000_000;
const MANY: usize = 8;

/// All of them, one after the other; the guest moves in each.
pub fn all(vm: &mut Vm, ground: &mut dyn Ground, image: &Image) {
    run(vm, &format!("head -c {PART_BYTES} /tmp/noise >/tmp/part"));
    let cases: [(&str, Case); 6] = [
        ("idle", idle),
        ("both ways", both_ways),
        ("half closed by the guest", half_closed_by_the_guest),
        ("half closed by the peer", half_closed_by_the_peer),
        ("closing", closing),
        ("many at once", many),
    ];
    for (name, case) in cases {
        println!("{name}");
        case(vm, &mut |vm| {
            ground.migrate(vm, image);
        });
        ground.assert_moved();
    }
}

type Case = fn(&mut Vm, &mut dyn FnMut(&mut Vm));

fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    std::fs::File::open("/dev/urandom").expect("noise").read_exact(&mut noise).expect("noise");
    noise
}

/// To a program of the guest's, when it listens.
pub fn connect(port: u16) -> TcpStream {
    let stream = loop {
        match TcpStream::connect(("192.0.2.1", port)) {
            Ok(stream) => break stream,
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    };
    patient(stream)
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Whose connections are read only a little by the kernel.
fn listen(port: u16) -> TcpListener {
    let listener = TcpListener::bind(("192.0.2.2", port)).expect("an address");
    socket2::SockRef::from(&listener).set_recv_buffer_size(1 << 16).expect("a buffer");
    listener
}

/// What is sent comes back, before and after.
fn idle(vm: &mut Vm, migrate: &mut dyn FnMut(&mut Vm)) {
    vm.begin("nc -l -p 5010 -e cat").expect("a guest that listens");
    let mut stream = connect(5010);
    let mut echo = |bytes: &[u8]| {
        stream.write_all(bytes).expect("sent");
        let mut back = vec![0; bytes.len()];
        stream.read_exact(&mut back).expect("an echo");
        assert_eq!(back, bytes);
    };
    echo(&noise(1000));
    migrate(vm);
    echo(&noise(1000));
    drop(stream);
    vm.finish().expect("its end");
}

/// And meanwhile.
fn both_ways(vm: &mut Vm, migrate: &mut dyn FnMut(&mut Vm)) {
    vm.begin("nc -l -p 5011 -e cat").expect("a guest that listens");
    let mut stream = connect(5011);
    let sent = noise(12 * PART_BYTES);
    let mut reading = stream.try_clone().expect("a socket");
    let back = thread::scope(|scope| {
        scope.spawn(|| {
            for part in sent.chunks(1 << 14) {
                stream.write_all(part).expect("sent");
                thread::sleep(Duration::from_millis(5));
            }
            stream.shutdown(Shutdown::Write).expect("an end");
        });
        let reader = scope.spawn(move || {
            let mut back = Vec::new();
            reading.read_to_end(&mut back).expect("an echo");
            back
        });
        thread::sleep(Duration::from_millis(300));
        migrate(vm);
        reader.join().expect("an echo")
    });
    assert!(back == sent, "{} of {} bytes came back, or others", back.len(), sent.len());
    vm.finish().expect("its end");
}

/// The peer sends on.
fn half_closed_by_the_guest(vm: &mut Vm, migrate: &mut dyn FnMut(&mut Vm)) {
    let listener = listen(5012);
    vm.begin("nc 192.0.2.2 5012 </dev/null | sha256sum").expect("a guest");
    let mut stream = patient(listener.accept().expect("a connection").0);
    assert_eq!(stream.read(&mut [0]).expect("its end"), 0);
    let sent = noise(2 * PART_BYTES);
    let (first, rest) = sent.split_at(PART_BYTES);
    stream.write_all(first).expect("sent");
    migrate(vm);
    stream.write_all(rest).expect("sent");
    drop(stream);
    let sum = vm.finish().expect("its end");
    assert!(sum.contains(&sha256(&sent)), "not what was sent: {sum}");
}

/// The guest still has to send, to a peer that reads when it has moved.
fn half_closed_by_the_peer(vm: &mut Vm, migrate: &mut dyn FnMut(&mut Vm)) {
    let sum = run(vm, "sha256sum /tmp/part");
    vm.begin("nc -l -p 5013 -e cat /tmp/part").expect("a guest that listens");
    let mut stream = connect(5013);
    stream.shutdown(Shutdown::Write).expect("an end");
    thread::sleep(Duration::from_millis(500));
    migrate(vm);
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("all of it");
    vm.finish().expect("its end");
    assert!(sum.contains(&sha256(&got)), "{} bytes, not what was sent: {sum}", got.len());
}

/// The guest has sent all and its end; the peer reads when the guest has moved.
fn closing(vm: &mut Vm, migrate: &mut dyn FnMut(&mut Vm)) {
    let sum = run(vm, "sha256sum /tmp/part");
    let listener = listen(5014);
    vm.begin("nc 192.0.2.2 5014 </tmp/part").expect("a guest");
    let mut stream = patient(listener.accept().expect("a connection").0);
    // All of it is in the guest, in the port or in flight.
    thread::sleep(Duration::from_millis(500));
    migrate(vm);
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("all of it");
    drop(stream);
    vm.finish().expect("its end");
    assert!(sum.contains(&sha256(&got)), "{} bytes, not what was sent: {sum}", got.len());
}

fn many(vm: &mut Vm, migrate: &mut dyn FnMut(&mut Vm)) {
    let sum = run(vm, "sha256sum /tmp/part");
    let listener = listen(5015);
    let line = format!("for i in $(seq {MANY}); do nc 192.0.2.2 5015 </tmp/part & done; wait");
    vm.begin(&line).expect("a guest");
    let streams: Vec<TcpStream> =
        (0..MANY).map(|_| patient(listener.accept().expect("a connection").0)).collect();
    let got: Vec<Vec<u8>> = thread::scope(|scope| {
        let readers: Vec<_> = streams.iter().map(|stream| scope.spawn(|| slowly(stream))).collect();
        thread::sleep(Duration::from_millis(300));
        migrate(vm);
        readers.into_iter().map(|reader| reader.join().expect("all of it")).collect()
    });
    drop(streams);
    vm.finish().expect("its end");
    for got in got {
        assert!(sum.contains(&sha256(&got)), "{} bytes, not what was sent: {sum}", got.len());
    }
}

fn slowly(mut stream: &TcpStream) -> Vec<u8> {
    let (mut got, mut part) = (Vec::new(), [0; 1 << 13]);
    loop {
        match stream.read(&mut part).expect("a part") {
            0 => return got,
            bytes => got.extend_from_slice(&part[..bytes]),
        }
        thread::sleep(Duration::from_millis(20));
    }
}
