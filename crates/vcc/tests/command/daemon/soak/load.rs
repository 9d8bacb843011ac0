//! The constant load of a daemon. Each part works until the soak is over, and returns how often.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use socket2::SockRef;
use vcc_port::Netns;
use vcc_testing::ip;

use super::super::Place;
use crate::CommandOutput;
use crate::pty::Pty;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);
const TRIAL: &str = "trial.toml";

/// The policy at rest. What has ended is forgotten soon.
pub const AT_REST: &str = "[[ports]]\ndevice = \"port*\"\ntenant = \"acme\"\n\
                           [default]\nunderlay = \"dctcp\"\nidle_closed = \"1s\"\n";

/// Works again and again, with a pause between, until it is over.
pub fn until(is_over: &AtomicBool, pause_ms: u64, mut work: impl FnMut(u64)) -> u64 {
    let mut times = 0;
    while !is_over.load(Ordering::Relaxed) {
        work(times);
        times += 1;
        sleep(Duration::from_millis(pause_ms));
    }
    times
}

/// Connections of the guest, which end in each way that there is.
pub fn connections(guest: &Netns, is_over: &AtomicBool) -> u64 {
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let reset = |end: &TcpStream| {
        SockRef::from(end).set_linger(Some(Duration::ZERO)).expect("a socket");
    };
    let work = |number: u64| {
        let mut opened = TcpStream::connect(address).expect("a connection");
        let mut accepted = listener.accept().expect("a connection").0;
        for end in [&opened, &accepted] {
            end.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        }
        accepted.write_all(&[7; 20_000]).expect("sent");
        if number.is_multiple_of(8) {
            // One that is cut off: its data is still on its way.
            reset(&opened);
            return;
        }
        opened.read_exact(&mut [0; 20_000]).expect("received");
        match number % 4 {
            0 => reset(&accepted),
            1 => opened.shutdown(Shutdown::Write).expect("a FIN"),
            2 => drop(opened),
            _ => drop(accepted),
        }
    };
    guest.inside(|| until(is_over, 4, work)).expect("inside")
}

/// Devices that are ports for a moment, each by a name that there was not before.
pub fn devices(place: &Place, is_over: &AtomicBool) -> u64 {
    until(is_over, 50, |number| {
        let mut name = format!("port{number}");
        ip(&format!("link add {name} type veth peer name guest{number}"));
        if number.is_multiple_of(4) {
            // Perhaps before it was seen.
            ip(&format!("link delete {name}"));
            return;
        }
        sleep(Duration::from_millis(100));
        match number % 4 {
            1 => {
                let new = format!("port-{number}");
                ip(&format!("link set {name} name {new}"));
                name = new;
            }
            // It fails if the daemon has not seen it yet.
            2 => drop(place.vcc(&format!("detach {name} --now"))),
            _ => ip(&format!("link set {name} up")),
        }
        ip(&format!("link delete {name}"));
    })
}

/// One of several policies. The names of its rules and pools are new.
fn policy(number: u64) -> String {
    let tail = match number % 6 {
        0 => "window_cap = \"64K\"\n".to_owned(),
        1 => "mode = \"shadow\"\n".to_owned(),
        2 => "emit = true\n".to_owned(),
        3 => format!("pool = \"p{number}\"\n[[pools]]\nname = \"p{number}\"\nwindow = \"100K\"\n"),
        4 => (0..50)
            .map(|rule| {
                format!("[[rules]]\nname = \"r{number}-{rule}\"\npeer = \"10.0.{rule}.0/24\"\n")
            })
            .collect(),
        // Refused.
        _ => "underlya = \"cubic\"\n".to_owned(),
    };
    format!("{AT_REST}{tail}")
}

/// Policies, at each entry: the file with a signal, the file by a request, and a trial.
pub fn policies(place: &Place, pid: u32, is_over: &AtomicBool) -> u64 {
    until(is_over, 100, |number| {
        let policy = policy(number);
        let is_refused = policy.contains("underlya");
        match number % 3 {
            0 => {
                place.write(&policy);
                hang_up(pid);
                return;
            }
            1 => place.write(&policy),
            _ => fs::write(place.path(TRIAL), &policy).expect("a file"),
        }
        let trial = place.path(TRIAL);
        let file = if number % 3 == 1 { "" } else { trial.to_str().expect("UTF-8") };
        let printed = place.vcc(&format!("policy apply {file}"));
        let is_expected = printed.code == i32::from(is_refused) || is_rejected(&printed);
        assert!(is_expected, "{policy}: {}{}", printed.stdout, printed.stderr);
    })
}

/// A crowd of [`askers`] has taken all places at the control socket.
fn is_rejected(printed: &CommandOutput) -> bool {
    printed.code == 1 && printed.stderr.contains("too many connections")
}

/// Has a process read its policy again.
pub fn hang_up(pid: u32) {
    // SAFETY: the call takes no pointers; the process is waited for only after all load.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, libc::SIGHUP) }, 0);
}

/// Browsers and scrapers, of which some leave midway.
pub fn browsers(address: &str, is_over: &AtomicBool) -> u64 {
    const PATHS: [&str; 8] = [
        "/metrics",
        "/",
        "/api/snapshot.json",
        "/api/flows.json?top=50&sort=rate",
        "/healthz",
        "/api/history.json",
        "/api/columns.json",
        "/nothing",
    ];
    let mut crowd = Vec::new();
    until(is_over, 10, |number| {
        let path = PATHS[number as usize % PATHS.len()];
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        // A crowd may have taken all places, and a connection that is refused is reset.
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut answer = [0; 100];
        match number / 8 % 6 {
            // In the request, before the answer, in the answer, by a RST.
            0 => drop(stream.write_all(&request.as_bytes()[..20])),
            1 => drop(stream.write_all(request.as_bytes())),
            2 => {
                let _ = stream.write_all(request.as_bytes());
                let _ = stream.read(&mut answer);
            }
            3 => {
                let _ = stream.write_all(request.as_bytes());
                SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket");
            }
            _ => {
                let _ = stream.write_all(request.as_bytes());
                let _ = stream.read_to_end(&mut Vec::new());
            }
        }
        // Now and then more than there are places, which say nothing and leave.
        match number % 200 {
            100 => crowd = (0..80).map(|_| TcpStream::connect(address)).collect(),
            120 => crowd.clear(),
            _ => {}
        }
    })
}

/// At the control socket: who asks well, who asks nonsense, and who leaves midway.
pub fn askers(place: &Place, is_over: &AtomicBool) -> u64 {
    const STATUS: &[u8] = b"{\"request\":\"status\"}\n";
    let mut crowd = Vec::new();
    until(is_over, 10, |number| {
        let mut stream = place.connect();
        // It may be refused, for a crowd has taken all places.
        match number % 6 {
            0 => drop(stream.write_all(&STATUS[..10])),
            1 => drop(stream.write_all(STATUS)),
            2 => drop(stream.write_all(b"hello\n")),
            3 => drop(stream.shutdown(Shutdown::Write)),
            _ => {
                let _ = stream.write_all(STATUS);
                let _ = stream.read_to_end(&mut Vec::new());
            }
        }
        match number % 200 {
            100 => crowd = (0..20).map(|_| place.connect()).collect(),
            120 => crowd.clear(),
            _ => {}
        }
    })
}

/// Who reads the pinned maps.
pub fn readers(place: &Place, is_over: &AtomicBool) -> u64 {
    until(is_over, 50, |number| {
        let arguments = match number % 6 {
            0 => "flows --json --sort rate",
            1 => "ports --json",
            2 => "explain 192.0.2.1:40000 192.0.2.2:80 --device port",
            3 => "policy show",
            4 => {
                let mut child = begin(place, "flows --watch 0.1 --json");
                let mut output = child.stdout.take().expect("its output");
                let _ = output.read(&mut [0; 10]);
                drop(output);
                child.wait().expect("its end");
                return;
            }
            _ => {
                let mut command = place.command();
                command.args(["top", "--interval", "0.1"]);
                let mut top = Pty::start(command, (100, 30));
                top.eventually("the port", |text| text.contains("port"));
                top.press("q");
                let (code, text) = top.end_with_text();
                assert_eq!(code, 0, "top: {text}");
                return;
            }
        };
        let printed = place.vcc(arguments);
        assert!(printed.code == 0 || is_rejected(&printed), "{arguments}: {}", printed.stderr);
    })
}

/// Recordings: two that end by themselves, one whose reader leaves, and one that is killed.
pub fn traces(place: &Place, device: &str, is_over: &AtomicBool) -> u64 {
    let records = |arguments: String| {
        let printed = place.vcc(&arguments);
        assert_eq!(printed.code, 0, "{}", printed.stderr);
    };
    until(is_over, 50, |number| match number % 4 {
        0 => records(format!("trace --device {device} --duration 0.2")),
        1 => records(format!("guests {device} --seconds 0.2")),
        manner => {
            let mut child = begin(place, &format!("trace --device {device}"));
            let mut output = child.stdout.take().expect("its output");
            if output.read_exact(&mut [0; 10]).is_err() {
                let ended = child.wait_with_output().expect("its end");
                panic!("no header: {}", String::from_utf8_lossy(&ended.stderr));
            }
            if manner == 2 {
                drop(output);
                // If there is no ACK, it does not notice.
                sleep(Duration::from_millis(100));
            }
            child.kill().expect("killed");
            child.wait().expect("its end");
        }
    })
}

fn begin(place: &Place, arguments: &str) -> Child {
    let mut command = place.command();
    command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command")
}
