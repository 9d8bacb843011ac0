//! A guest behind an existing device, in front of which its TCP makes a detour.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use vcc_port::Netns;
use vcc_testing::{eventually, guest, ip, on_a_host};

use super::{Domain, assert_seen, at, boot_at, from_guest, on_a_host_with_a_tap, to_guest};
use crate::CommandOutput;

const GUEST: &str = "192.0.2.1";
const HOST: &str = "192.0.2.2";
const BYTES: usize = 20_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// A container, whose veth is `port` in a bridge of the host, and a runtime directory.
struct Bed {
    guest: Netns,
    directory: TempDir,
}

impl Bed {
    fn new() -> Self {
        let guest = guest();
        ip("address flush dev port");
        ip("link add br0 type bridge");
        ip("link set port master br0");
        ip("address add 192.0.2.2/24 dev br0");
        ip("link set br0 up");
        Bed { guest, directory: tempfile::tempdir().expect("a directory") }
    }

    /// Beside the runtime directory.
    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn serve(&self, options: &str) -> Domain {
        Domain::in_front_of("port", &self.socket(), options)
    }

    fn vcc(&self, arguments: &str) -> CommandOutput {
        let arguments = arguments.split_whitespace();
        at(&self.socket()).args(arguments).output().expect("the command").into()
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.vcc(arguments).well()).expect("JSON")
    }

    /// A connection that the guest has opened: its end and the host's.
    fn open(&self) -> [TcpStream; 2] {
        let listener = TcpListener::bind((HOST, 0)).expect("a listener");
        let to = listener.local_addr().expect("an address");
        let dial = || TcpStream::connect_timeout(&to, PATIENCE).expect("connected");
        [self.guest.inside(dial).expect("inside"), listener.accept().expect("accepted").0]
    }

    /// A connection that the host has opened, likewise.
    fn accept(&self) -> [TcpStream; 2] {
        let listen = || TcpListener::bind((GUEST, 0)).expect("a listener");
        let listener = self.guest.inside(listen).expect("inside");
        let to = listener.local_addr().expect("an address");
        let host = TcpStream::connect_timeout(&to, PATIENCE).expect("connected");
        [listener.accept().expect("accepted").0, host]
    }
}

fn payload() -> Vec<u8> {
    (0..BYTES as u32 / 4).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// All that is sent arrives. `midway` is called once a part has.
fn transfer(mut from: TcpStream, mut to: TcpStream, midway: &mut dyn FnMut()) {
    let sent = payload();
    let mut received = vec![0; BYTES / 4];
    to.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    thread::scope(|scope| {
        scope.spawn(|| {
            from.write_all(&sent).expect("sent");
            from.shutdown(Shutdown::Write).expect("an end");
        });
        to.read_exact(&mut received).expect("the first part");
        midway();
        to.read_to_end(&mut received).expect("the rest");
    });
    assert!(received == sent, "what arrived is not what was sent");
}

#[test]
fn transfers_arrive_whole_with_each_act() {
    on_a_host(|| {
        let bed = Bed::new();
        for options in ["--act window", "--act hold --retransmit", "--act split"] {
            let mut domain = bed.serve(options);
            for [guest, host] in [bed.open(), bed.accept()] {
                let port = host.local_addr().expect("an address").port();
                let peers = format!("flows port --json --peer :{port}");
                let back = [&host, &guest].map(|end| end.try_clone().expect("a copy"));
                transfer(guest, host, &mut || {
                    let flows = bed.json(&peers);
                    assert_eq!(flows[0]["stage"], "established", "{options}: {flows}");
                    assert!(flows[0]["cwnd_segs"].as_u64() > Some(0), "{options}: {flows}");
                });
                let [host, guest] = back;
                transfer(host, guest, &mut || ());
            }
            let ports = bed.json("ports --json");
            assert_eq!((&ports[0]["port"], &ports[0]["mode"]), (&"port".into(), &"enforce".into()));
            domain.stop();
        }
    });
}

/// Its card is an ordinary tap's.
#[test]
fn transfers_of_a_virtual_machine_arrive_whole_with_each_act_and_through_a_crash() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut domain = Domain::in_front_of("tap0", &socket, "--act hold");
        let network =
            ["-netdev", "tap,id=net,ifname=tap0,script=no,downscript=no"].map(str::to_owned);
        let mut vm = boot_at(image, &network);
        from_guest(&mut vm, &mut || assert_seen(&socket, 5001));
        to_guest(&mut vm, &mut || ());
        from_guest(&mut vm, &mut || {
            domain.kill();
            domain = Domain::in_front_of("tap0", &socket, "--act split");
        });
        from_guest(&mut vm, &mut || ());
        to_guest(&mut vm, &mut || ());
    });
}

/// What is held is unacknowledged, so the guest sends it again.
#[test]
fn a_transfer_outlives_the_process_that_holds() {
    on_a_host(|| {
        let bed = Bed::new();
        let mut domain = bed.serve("--act hold");
        let [guest, host] = bed.open();
        transfer(guest, host, &mut || domain.kill());
        let [guest, host] = bed.accept();
        transfer(host, guest, &mut || ());
        let mut domain = bed.serve("--act hold");
        let [guest, host] = bed.accept();
        transfer(host, guest, &mut || domain.kill());
    });
}

/// Its data is acknowledged, and nobody has it any more. Meanwhile, traffic passes directly.
#[test]
fn the_next_process_breaks_the_promises_of_one_that_was_killed() {
    on_a_host(|| {
        let bed = Bed::new();
        let mut domain = bed.serve("--act split");
        let [mut guest, mut host] = bed.open();
        socket2::SockRef::from(&host).set_recv_buffer_size(1 << 16).expect("a small buffer");
        guest.set_nonblocking(true).expect("a socket");
        eventually("promises are held", || {
            let _ = (&guest).write(&[0; 1 << 16]);
            bed.json("ports --json")[0]["held_bytes"].as_u64() > Some(200_000)
        });
        domain.kill();
        let [other_guest, other_host] = bed.open();
        transfer(other_guest, other_host, &mut || ());
        let _domain = bed.serve("--act split");
        host.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let end = host.read_to_end(&mut Vec::new()).expect_err("not all has come");
        assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
        guest.set_nonblocking(false).expect("a socket");
        guest.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let end = guest.read(&mut [0]).expect_err("a reset");
        assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
    });
}

/// It would serialise all of a host's DNS, and gains nothing.
#[test]
fn datagrams_do_not_pass_the_process() {
    on_a_host(|| {
        let bed = Bed::new();
        let domain = bed.serve("--act hold");
        let host = UdpSocket::bind((HOST, 0)).expect("a socket");
        host.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let to = host.local_addr().expect("an address");
        domain.signal(libc::SIGSTOP);
        let send = || {
            let guest = UdpSocket::bind((GUEST, 0)).expect("a socket");
            guest.send_to(b"datagram", to).expect("sent");
        };
        bed.guest.inside(send).expect("inside");
        let mut datagram = [0; 16];
        assert_eq!(host.recv(&mut datagram).expect("a datagram"), 8);
        domain.signal(libc::SIGCONT);
    });
}

#[test]
fn a_device_that_goes_ends_the_process() {
    on_a_host(|| {
        let bed = Bed::new();
        let mut domain = bed.serve("--act hold");
        ip("link delete port");
        assert_eq!(domain.0.wait().expect("its end").code(), Some(1));
    });
}

/// The capabilities that packaging/vcc-domain-device@.service grants suffice.
#[test]
fn it_needs_what_its_unit_grants() {
    on_a_host(|| {
        let bed = Bed::new();
        let vcc = at(&bed.socket());
        let mut setpriv = std::process::Command::new("setpriv");
        setpriv.args(["--bounding-set=-all,+bpf,+net_admin,+perfmon", "--inh-caps=-all"]);
        setpriv.arg(vcc.get_program()).args(["domain", "--device", "port", "--act", "hold"]);
        setpriv.envs(vcc.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let _domain = Domain::spawn(&mut setpriv);
        let [guest, host] = bed.open();
        transfer(guest, host, &mut || ());
    });
}

fn refused(bed: &Bed, options: &str, code: i32) -> String {
    bed.vcc(&format!("domain {options}")).complaint(code)
}

#[test]
fn what_cannot_be_served_is_refused() {
    on_a_host(|| {
        let bed = Bed::new();
        let missing = refused(&bed, "--device absent0", 1);
        assert!(missing.contains("absent0"), "{missing}");
        let loopback = refused(&bed, "--device lo", 1);
        assert!(loopback.contains("the loopback device"), "{loopback}");
        let ring = refused(&bed, "--device port --receive ring", 1);
        assert!(
            ring.starts_with("--receive needs the guest's receive ring")
                && ring.ends_with("--socket and --tap instead of --device"),
            "{ring}"
        );
        let channel = refused(&bed, "--device port --channel /run/c", 1);
        assert!(channel.starts_with("--channel needs a virtual machine"), "{channel}");
        for both in ["--device port --socket /run/a --tap b", "--device port --tap b"] {
            let printed = bed.vcc(&format!("domain {both}"));
            assert_eq!(printed.code, 2, "{}", printed.stderr);
        }
        bed.vcc("attach port").well();
        let attached = refused(&bed, "--device port", 1);
        assert!(attached.contains("`vcc detach port`"), "{attached}");
        bed.vcc("detach port").well();
        let _domain = bed.serve("--act hold");
        let again = refused(&bed, "--device port", 1);
        assert!(again.contains("a running process, such as `vcc domain`"), "{again}");
        let attach = bed.vcc("attach port").complaint(1);
        assert!(attach.starts_with("`vcc domain` serves port"), "{attach}");
        let ports = bed.vcc("doctor --device port");
        assert!(ports.stdout.contains("the detour of `vcc domain"), "{}", ports.stdout);
    });
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
}

#[test]
fn a_policy_names_the_device() {
    on_a_host(|| {
        let bed = Bed::new();
        let file = bed.directory.path().join("policy.toml");
        let policy = format!("--policy {}", file.display());
        let port = "[[ports]]\ndevice = \"po*\"\ntenant = \"deep\"\n";
        write(&file, port);
        let complaint = refused(&bed, &format!("--device port {policy}"), 1);
        assert!(complaint.contains("like device = \"port\" with buffer = \"4M\""), "{complaint}");
        let rule = "[[rules]]\nname = \"deep\"\ntenant = \"deep\"\nact = \"split\"\n";
        write(&file, &format!("{port}buffer = \"1M\"\n{rule}"));
        let _domain = bed.serve(&policy);
        let [guest, host] = bed.open();
        let explained = format!(
            "explain {} {} --device port --file {}",
            guest.local_addr().expect("an address"),
            host.local_addr().expect("an address"),
            file.display()
        );
        transfer(guest, host, &mut || {
            assert_eq!(bed.json("flows port --json")[0]["rule"], "deep");
            let explained = bed.vcc(&explained).well();
            assert!(explained.starts_with("rule 1 `deep` matches (tenant deep"), "{explained}");
        });
    });
}
