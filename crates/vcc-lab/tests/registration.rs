//! Congestion controls are registered under unique names, and unregistered in any case.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use socket2::{Domain, Protocol, Socket, Type};
use vcc_lab::congestion_controls::{CongestionControls, Error, names};
use vcc_testing::can_attach;

/// All names that the kernel currently accepts for TCP_CONGESTION, of any process.
fn available() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let line = fs::read_to_string(path).expect("the kernel's list");
    line.split_whitespace().map(str::to_owned).collect()
}

fn load() -> CongestionControls {
    CongestionControls::load(names()).expect("registered")
}

fn kernel_names(controls: &CongestionControls) -> Vec<String> {
    names().iter().map(|name| controls.kernel_name(name).to_owned()).collect()
}

fn assert_registered(kernel_names: &[String]) {
    let available = available();
    for name in kernel_names {
        assert!(available.contains(name), "{name} in {available:?}");
    }
}

/// Waits: a child process that is just starting holds copies of all files until it execs.
fn assert_gone(kernel_names: &[String]) {
    let begun = Instant::now();
    while available().iter().any(|name| kernel_names.contains(name)) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{kernel_names:?} in {:?}", available());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nothing_stays_registered() {
    if !can_attach() {
        return;
    }
    for _ in 0..5 {
        let controls = load();
        let kernel_names = kernel_names(&controls);
        assert_registered(&kernel_names);
        drop(controls);
        assert_gone(&kernel_names);
    }
}

#[test]
fn one_process_may_have_several() {
    if !can_attach() {
        return;
    }
    let (one, other) = (load(), load());
    let (ones, others) = (kernel_names(&one), kernel_names(&other));
    assert!(ones.iter().all(|name| !others.contains(name)), "{ones:?} {others:?}");
    drop(one);
    assert_gone(&ones);
    assert_registered(&others);
}

#[test]
fn a_socket_keeps_its_congestion_control() {
    if !can_attach() {
        return;
    }
    let controls = load();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
    let name = controls.kernel_name("vegas").to_owned();
    socket.set_tcp_congestion(name.as_bytes()).expect("vegas");
    drop(controls);
    assert_gone(std::slice::from_ref(&name));
    let used = socket.tcp_congestion().expect("TCP_CONGESTION");
    assert!(used.starts_with(name.as_bytes()), "{used:?}");
}

#[test]
fn the_kernels_own_are_not_registered_again() {
    let controls = CongestionControls::load(&["reno"]).expect("nothing to register");
    assert_eq!(controls.kernel_name("reno"), "reno");
}

#[test]
fn an_unknown_name_is_reported_with_the_known_ones() {
    if !can_attach() {
        return;
    }
    let others = load();
    let Err(error) = CongestionControls::load(&["dctcp", "dctpc"]) else { panic!("dctpc") };
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("`dctpc`") && message.contains("reno"), "{message}");
    for name in names() {
        assert!(message.contains(name), "{message}");
    }
    for name in kernel_names(&others) {
        assert!(!message.contains(&name), "a registered name must not be offered: {message}");
    }
}

/// Set in the process that `holder` starts: `holds_until_it_ends` does nothing without it.
const HOLDS: &str = "VCC_GUEST_TEST_HOLDS";
const REGISTERED: &str = "registered as";

#[test]
fn holds_until_it_ends() {
    if env::var_os(HOLDS).is_none() {
        return;
    }
    let controls = load();
    println!("{REGISTERED} {}", kernel_names(&controls).join(" "));
    // Holds them until it is ended, at the latest until the parent is gone.
    let _ = io::stdin().read(&mut [0]);
}

/// A process that holds registrations, and their names.
fn holder() -> (Child, Vec<String>) {
    let mut child = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "holds_until_it_ends", "--nocapture"])
        .env(HOLDS, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    let names_of = |line: io::Result<String>| {
        let line = line.expect("a line");
        let (_, names) = line.split_once(REGISTERED)?;
        Some(names.split_whitespace().map(str::to_owned).collect())
    };
    let names = { lines }.find_map(names_of).expect("names");
    (child, names)
}

#[test]
fn two_processes_have_their_own_and_death_unregisters() {
    if !can_attach() {
        return;
    }
    let controls = load();
    let ours = kernel_names(&controls);
    let (mut child, theirs) = holder();
    assert_eq!(theirs.len(), names().len());
    assert!(theirs.iter().all(|name| !ours.contains(name)), "{ours:?} {theirs:?}");
    assert_registered(&ours);
    assert_registered(&theirs);
    child.kill().expect("killed");
    child.wait().expect("dead");
    assert_gone(&theirs);
    assert_registered(&ours);
}
