//! Floods, one way, in the middle of which a guest moves: when what they carry is back.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vcc_testing::EndOnDrop;

use super::super::{Image, Vm};
use super::ground::Ground;

const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(3);
/// Goodput is of intervals of this length.
const INTERVAL: Duration = Duration::from_millis(100);
/// Of what it settles at, where it counts as back.
const BACK: f64 = 0.8;
const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
const PART_BYTES: usize = 1 << 16;

/// When how many bytes had come.
type Progress = Vec<(Instant, u64)>;

/// Of one move.
#[derive(Clone, Copy, Debug)]
pub struct Back {
    /// After the guest has gone on, until goodput is back in an interval; None: not in all of the time.
    pub after: Option<Duration>,
    /// Goodput in the second before, in bits per second, and in the last one: a connection that has
    /// moved with an emulated guest is slower than a new one there, also without vcc.
    pub before: f64,
    pub settled: f64,
}

fn at(progress: &Progress, when: Instant) -> u64 {
    let count = progress.partition_point(|(at, _)| *at <= when);
    count.checked_sub(1).map_or(0, |last| progress[last].1)
}

/// Bits per second.
fn goodput(progress: &Progress, from: Instant, interval: Duration) -> f64 {
    let bytes = at(progress, from + interval) - at(progress, from);
    bytes as f64 * 8.0 / interval.as_secs_f64()
}

/// The median of the intervals of a second.
fn usual(progress: &Progress, from: Instant) -> f64 {
    let intervals = (SECOND.as_millis() / INTERVAL.as_millis()) as u32;
    let mut all: Vec<f64> = (0..intervals)
        .map(|number| goodput(progress, from + INTERVAL * number, INTERVAL))
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn judged(progress: &Progress, begins: Instant, moved: Instant) -> Back {
    let before = usual(progress, begins - SECOND);
    let settled = usual(progress, moved + AFTER - SECOND);
    let step = INTERVAL / 10;
    let mut steps = (0..).map(|number| step * number).take_while(|at| *at + INTERVAL <= AFTER);
    let enough = BACK * before.min(settled);
    let after = steps.find(|at| goodput(progress, moved + *at, INTERVAL) >= enough);
    Back { after, before, settled }
}

/// Of the guest, which moves meanwhile.
pub fn from_guest(vm: &mut Vm, ground: &mut dyn Ground, image: &Image) -> Back {
    let listener = TcpListener::bind("192.0.2.2:5020").expect("an address");
    vm.begin("nc 192.0.2.2 5020 </dev/zero 2>/dev/null").expect("a guest");
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let is_over = &AtomicBool::new(false);
    let back = thread::scope(|scope| {
        let end = EndOnDrop(is_over);
        let reader = scope.spawn(move || {
            let (mut progress, mut part, mut bytes) = (Progress::new(), vec![0; PART_BYTES], 0);
            while !is_over.load(Ordering::Relaxed) {
                bytes += stream.read(&mut part).expect("a part") as u64;
                progress.push((Instant::now(), bytes));
            }
            progress
        });
        let (begins, moved) = moves(vm, ground, image);
        drop(end);
        judged(&reader.join().expect("a flood"), begins, moved)
    });
    vm.finish().expect("its end");
    back
}

/// Of the peer, to the guest.
pub fn to_guest(vm: &mut Vm, ground: &mut dyn Ground, image: &Image) -> Back {
    vm.begin("nc -l -p 5021 >/dev/null").expect("a guest that listens");
    let mut stream = loop {
        match std::net::TcpStream::connect("192.0.2.1:5021") {
            Ok(stream) => break stream,
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    };
    // What has been written has been acknowledged, but for this.
    socket2::SockRef::from(&stream).set_send_buffer_size(1 << 18).expect("a buffer");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let is_over = &AtomicBool::new(false);
    let back = thread::scope(|scope| {
        let end = EndOnDrop(is_over);
        let writer = scope.spawn(move || {
            let (mut progress, part, mut bytes) = (Progress::new(), vec![0; PART_BYTES], 0);
            while !is_over.load(Ordering::Relaxed) {
                match stream.write(&part) {
                    Ok(written) => bytes += written as u64,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
                }
                progress.push((Instant::now(), bytes));
            }
            progress
        });
        let (begins, moved) = moves(vm, ground, image);
        drop(end);
        judged(&writer.join().expect("a flood"), begins, moved)
    });
    vm.finish().expect("its end");
    back
}

fn moves(vm: &mut Vm, ground: &mut dyn Ground, image: &Image) -> (Instant, Instant) {
    thread::sleep(BEFORE);
    let begins = Instant::now();
    let moved = ground.migrate(vm, image);
    thread::sleep(AFTER);
    (begins, moved)
}

/// Prints what was measured, and checks that none crawls.
pub fn report(what: &str, all: &[Back]) {
    let mut afters: Vec<Duration> = all.iter().map(|back| back.after.unwrap_or(AFTER)).collect();
    afters.sort();
    let mut ratios: Vec<f64> = all.iter().map(|back| back.settled / back.before).collect();
    ratios.sort_by(f64::total_cmp);
    let within = afters.iter().filter(|after| **after <= SECOND).count();
    println!(
        "figure: {} migrations in a flood {what}: an interval of {} ms has {:.0} % of the goodput \
         that it settles at {:.0?} after the guest has gone on at the median, {:.0?} at most, within \
         a second {} times; that is {:.2} of the goodput before at the median, {:.2} at least",
        all.len(),
        INTERVAL.as_millis(),
        BACK * 100.0,
        afters[afters.len() / 2],
        afters[afters.len() - 1],
        within,
        ratios[ratios.len() / 2],
        ratios[0],
    );
    assert!(ratios[0] > 0.05, "one crawls: {all:?}");
}

/// Each way, in turns.
pub fn both(vm: &mut Vm, ground: &mut dyn Ground, image: &Image, what: &str) {
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for number in 0..super::moves() {
        match number % 4 < 2 {
            true => out.push(from_guest(vm, ground, image)),
            false => back.push(to_guest(vm, ground, image)),
        }
    }
    for (way, all) in [("from", out), ("to", back)] {
        if !all.is_empty() {
            report(&format!("{way} the guest {what}"), &all);
        }
    }
}
