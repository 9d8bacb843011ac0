//! The form that needs a lease, in this machine's kernel: the windows of connections on the loopback device
//! follow what a host says on a socket in the place of the virtual machine's port.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use socket2::{Domain, Socket, Type};
use vcc_channel::{Flow, FromGuest, FromHost, Message, VERSION};
use vcc_domain::Port;
use vcc_engine::{Params, sys};
use vcc_testing::{ip, tc};
use vcc_vhost::{HEADER_BYTES, Offload, Server, Wire};

use super::*;

const LEASE_MS: u32 = 2000;
const FLOOD_SEGS: u32 = 512;
/// Linux's initial window, and what a few acknowledged segments add.
const NEWRENO_SEGS: std::ops::Range<u32> = 10..60;

/// The host's end, each time that the guest opens the channel.
struct Opens {
    sender: Sender<UnixStream>,
}

impl Opens {
    fn open(&self) -> io::Result<File> {
        let (host, guest) = UnixStream::pair()?;
        guest.set_nonblocking(true)?;
        self.sender.send(host).map_err(|_| io::Error::from(ErrorKind::NotFound))?;
        Ok(OwnedFd::from(guest).into())
    }
}

/// A host that says what a test wants.
struct Host {
    opened: Receiver<UnixStream>,
    stream: UnixStream,
    said: Receiver<Heard>,
}

impl Host {
    fn say(&mut self, messages: &[FromHost]) {
        let bytes: Vec<u8> = messages.iter().flat_map(Message::to_bytes).collect();
        self.stream.write_all(&bytes).expect("written");
    }

    fn hears(&mut self) -> FromGuest {
        let mut bytes = [0; vcc_channel::MESSAGE_BYTES];
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        self.stream.read_exact(&mut bytes).expect("a message");
        FromGuest::from_bytes(&bytes).expect("of a guest")
    }

    /// Says it, and waits until the guest has read it.
    fn reports(&mut self, messages: &[FromHost]) {
        self.say(messages);
        self.say(&[ONLINE]);
        assert_eq!(self.hears(), FromGuest::Alive);
    }

    fn greets(&mut self) {
        assert_eq!(self.hears(), FromGuest::Hello { version: VERSION });
        self.say(&[FromHost::Hello { version: VERSION, lease_ms: LEASE_MS }]);
    }

    /// The guest opens the channel again.
    fn reopens(&mut self) {
        self.stream = self.opened.recv_timeout(PATIENCE).expect("opened");
    }

    #[track_caller]
    fn is_down(&self, because: &str, malformed_so_far: u64) {
        let heard = self.said.recv_timeout(PATIENCE).expect("a line");
        let Heard::Down { why, malformed, repaired_losses } = &heard else { panic!("{heard:?}") };
        assert!(why.contains(because), "{heard:?}");
        assert_eq!((*malformed, *repaired_losses), (malformed_so_far, 0));
    }
}

const ONLINE: FromHost = FromHost::Online { lease_ms: LEASE_MS };

/// A connection under the congestion control, and its other end.
struct Connection {
    socket: TcpStream,
    peer: TcpStream,
    flow: Flow,
}

impl Connection {
    fn new(name: &str, address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a listener");
        let to = listener.local_addr().expect("an address");
        let domain = if to.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::STREAM, None).expect("a socket");
        socket.set_tcp_congestion(name.as_bytes()).expect("registered");
        socket.set_tcp_mss(1000).expect("an MSS");
        socket.connect(&to.into()).expect("connected");
        let socket = TcpStream::from(socket);
        socket.set_nodelay(true).expect("no delay");
        let from: SocketAddr = socket.local_addr().expect("an address");
        let (peer, _) = listener.accept().expect("accepted");
        peer.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Connection { socket, peer, flow: Flow::new(from, to) }
    }

    fn info(&self) -> libc::tcp_info {
        // SAFETY: all-zero bytes are valid, and the call writes no more than there are.
        unsafe {
            let mut info: libc::tcp_info = std::mem::zeroed();
            let mut bytes = size_of_val(&info) as libc::socklen_t;
            let place = (&raw mut info).cast();
            let fd = self.socket.as_raw_fd();
            let got = libc::getsockopt(fd, libc::SOL_TCP, libc::TCP_INFO, place, &mut bytes);
            assert_eq!(got, 0, "TCP_INFO");
            info
        }
    }

    /// The window while a byte is on its way, and after it.
    fn window_segs(&mut self) -> u32 {
        self.socket.write_all(&[1]).expect("sent");
        self.peer.read_exact(&mut [0]).expect("received");
        self.info().tcpi_snd_cwnd
    }
}

/// Runs with a host and the name of the registered congestion control.
fn with_channel(letter: char, work: impl FnOnce(&mut Host, &str) + Send) {
    on_a_kernel(letter, |guest| {
        ip("link set lo up");
        let flood = &guest.flood;
        let installed = flood.install(Form::Leased, true).expect("installed");
        assert_eq!(installed.provider, Provider::Bpf(flood.pins.link()));
        let reports = Reports::open(&flood.pins.leases(), &flood.pins.flows()).expect("the maps");
        let (stops, stop) = UnixStream::pair().expect("a pair");
        let (sender, opened) = channel();
        let (says, said) = channel();
        thread::scope(|scope| {
            let opens = Opens { sender };
            let say = move |heard| drop(says.send(heard));
            let follows =
                scope.spawn(move || channel::follow(reports, || opens.open(), &stop, say));
            let stream = opened.recv_timeout(PATIENCE).expect("opened");
            let mut host = Host { opened, stream, said };
            host.greets();
            assert_eq!(host.said.recv_timeout(PATIENCE), Ok(Heard::Up));
            work(&mut host, &flood.name);
            drop(stops);
            follows.join().expect("no panic").expect("stopped");
        });
        flood.remove().expect("removed");
    });
}

#[test]
fn a_connection_that_begins_under_a_lease_floods_until_its_end() {
    with_channel('d', |host, name| {
        let mut old = Connection::new(name, "127.0.0.1");
        assert!(NEWRENO_SEGS.contains(&old.info().tcpi_snd_cwnd), "before the lease");
        host.reports(&[]);
        let begun_at = Instant::now();
        let mut new = [Connection::new(name, "127.0.0.1"), Connection::new(name, "::1")];
        for connection in &mut new {
            assert_eq!(connection.info().tcpi_snd_cwnd, FLOOD_SEGS);
            assert_eq!(connection.window_segs(), FLOOD_SEGS);
        }
        assert!(NEWRENO_SEGS.contains(&old.window_segs()), "the host may not know it");
        host.reports(&[FromHost::FlowOnline { flow: old.flow, grant_bytes: u32::MAX }]);
        assert_eq!(old.window_segs(), FLOOD_SEGS);

        // The law of the lease, without an end of the channel.
        let renewed_at = Instant::now();
        let lease = Duration::from_millis(LEASE_MS.into());
        while renewed_at.elapsed() < lease - Duration::from_millis(500) {
            assert_eq!(new[0].window_segs(), FLOOD_SEGS, "{:?}", begun_at.elapsed());
            thread::sleep(Duration::from_millis(100));
        }
        thread::sleep((lease + Duration::from_millis(20)).saturating_sub(renewed_at.elapsed()));
        for connection in new.iter_mut().chain([&mut old]) {
            let segs = connection.window_segs();
            assert!(NEWRENO_SEGS.contains(&segs), "after {:?}: {segs}", renewed_at.elapsed());
        }
        host.reports(&[]);
        assert_eq!(new[0].window_segs(), FLOOD_SEGS, "the lease is renewed");
    });
}

/// A burst after a pause is that of NewReno, although no ACK has come since the lease ended.
#[test]
fn an_idle_connection_does_not_flood_after_the_lease() {
    with_channel('e', |host, name| {
        host.say(&[FromHost::Online { lease_ms: 300 }]);
        assert_eq!(host.hears(), FromGuest::Alive);
        let connection = Connection::new(name, "127.0.0.1");
        assert_eq!(connection.info().tcpi_snd_cwnd, FLOOD_SEGS);
        thread::sleep(Duration::from_millis(320));
        // From now on, no ACK comes in time.
        tc("qdisc add dev lo root tbf rate 64kbit burst 2000 latency 60s");
        connection.socket.set_nonblocking(true).expect("not blocking");
        let bytes = (&connection.socket).write(&[0; 300_000]).expect("sent");
        assert!(bytes > 60_000, "{bytes}");
        let segs = connection.info().tcpi_unacked;
        assert!(NEWRENO_SEGS.contains(&segs), "{segs}");
    });
}

#[test]
fn grants_and_exceptions_are_obeyed_by_their_connection() {
    with_channel('f', |host, name| {
        host.reports(&[]);
        let mut four = Connection::new(name, "127.0.0.1");
        let mut six = Connection::new(name, "::1");
        let mss_bytes = four.info().tcpi_snd_mss;
        let grant = |flow, segs| FromHost::FlowOnline { flow, grant_bytes: segs * mss_bytes };
        host.reports(&[grant(four.flow, 100), FromHost::FlowOffline { flow: six.flow }]);
        assert_eq!(four.window_segs(), 100);
        let segs = six.window_segs();
        assert!(NEWRENO_SEGS.contains(&segs), "{segs}");
        host.reports(&[grant(four.flow, 3), grant(six.flow, 1)]);
        assert_eq!((four.window_segs(), six.window_segs()), (3, 2));
        host.reports(&[grant(four.flow, 5000), FromHost::FlowOffline { flow: six.flow }]);
        assert_eq!(four.window_segs(), FLOOD_SEGS);

        // Offline for all, and what was reported before is void.
        host.say(&[FromHost::Offline]);
        assert_eq!(host.hears(), FromGuest::Alive);
        assert!(NEWRENO_SEGS.contains(&four.window_segs()));
        host.reports(&[]);
        assert!(NEWRENO_SEGS.contains(&four.window_segs()), "begun before");
        assert_eq!(Connection::new(name, "127.0.0.1").info().tcpi_snd_cwnd, FLOOD_SEGS);
    });
}

#[test]
fn a_closed_channel_and_garbage_end_the_lease_at_once() {
    with_channel('g', |host, name| {
        for (because, malformed) in
            [("the host has closed it", 0), ("the host sent a message whose magic is", 1)]
        {
            host.reports(&[]);
            let mut connection = Connection::new(name, "127.0.0.1");
            assert_eq!(connection.window_segs(), FLOOD_SEGS);
            if malformed > 0 {
                host.stream.write_all(&[7; 64]).expect("written");
            } else {
                host.stream.shutdown(std::net::Shutdown::Both).expect("closed");
            }
            host.is_down(because, malformed);
            let segs = connection.window_segs();
            assert!(NEWRENO_SEGS.contains(&segs), "{because}: {segs}");
            if malformed == 0 {
                host.reopens();
                host.greets();
                assert_eq!(host.said.recv_timeout(PATIENCE), Ok(Heard::Up));
            }
        }
    });
}

#[test]
fn the_two_forms_do_not_mix() {
    on_a_kernel('h', |guest| {
        let flood = &guest.flood;
        for (form, other, unit) in [
            (Form::Leased, Form::Unconditional, "vcc-guest-channel"),
            (Form::Unconditional, Form::Leased, "vcc-guest"),
        ] {
            for was_registered in [false, true] {
                let installed = flood.install(form, false).expect("installed");
                assert_eq!(installed.was_registered, was_registered);
            }
            let error = flood.install(other, false).expect_err("another form").to_string();
            assert!(error.contains(&format!("`systemctl stop {unit}`")), "{error}");
            flood.remove().expect("removed");
        }
    });
}

/// As on kernels before 6.4: the maps are those of its programs there, too.
#[test]
fn kernels_without_links_have_a_lease_as_well() {
    on_a_kernel('i', |guest| {
        ip("link set lo up");
        let Flood { name, pins, .. } = &guest.flood;
        pins.create_directory().expect("a directory");
        let maps = [(LEASES, pins.leases()), (FLOWS, pins.flows())];
        let registered = LEASED_FLOOD.register_map_pinned(name, &pins.map(), &maps);
        assert!(registered.expect("registered"));
        assert!(pins.needs_lease());
        let mut reports = Reports::open(&pins.leases(), &pins.flows()).expect("the maps");
        let window_segs = || Connection::new(name, "127.0.0.1").info().tcpi_snd_cwnd;
        let channel = || guest.flood.status().expect("a status").channel;
        assert_eq!(channel(), Some(ChannelState::NotLeased));
        assert!(NEWRENO_SEGS.contains(&window_segs()));
        channel::Words::lease(&mut reports, 1, u64::MAX).expect("written");
        assert_eq!(channel(), Some(ChannelState::Leased));
        assert_eq!(window_segs(), FLOOD_SEGS);
        let removed = guest.flood.remove().expect("removed");
        assert_eq!(removed.unregistered, Unregistered::Done(Provider::Bpf(pins.map())));
    });
}

#[test]
fn the_module_and_others_have_no_channel() {
    let guest = Guest::new();
    let error = guest.flood.install(Form::Leased, false).expect_err("no BPF").to_string();
    assert!(error.contains("needs `flood` as BPF") && error.contains("has no BTF"), "{error}");
    assert_eq!(guest.default(), "cubic");
    assert!(!guest.flood.is_registered().expect("a list"), "the module is not loaded");
    guest.flood.install(Form::Unconditional, false).expect("the module");
    let error = guest.flood.install(Form::Leased, false).expect_err("the module").to_string();
    assert!(error.contains("needs `flood` as BPF") && error.contains("(module)"), "{error}");
}

#[test]
fn a_channel_that_does_not_exist_is_named() {
    on_a_kernel('j', |guest| {
        let flood = &guest.flood;
        flood.install(Form::Leased, true).expect("installed");
        let (_stops, stop) = UnixStream::pair().expect("a pair");
        let path = guest.path("org.vcc.flood");
        let error = flood.follow(&path, &stop, |_| {}).expect_err("no device").to_string();
        assert!(error.contains("org.vcc.flood") && error.contains("virtserialport"), "{error}");
        let before = Flood::require_channel(&path).expect_err("no device").to_string();
        assert_eq!(before, error);
        flood.remove().expect("removed");
    });
}

/// The host's half itself, in front of a card: the lease, and its end with the card.
#[test]
fn the_channel_of_a_card_gives_a_lease_until_the_card_ends() {
    on_a_kernel('k', |guest| {
        ip("link set lo up");
        let flood = &guest.flood;
        flood.install(Form::Leased, true).expect("installed");
        let path = guest.path("channel");
        let (_fabric, wire) = UnixDatagram::pair().expect("a wire");
        wire.set_nonblocking(true).expect("not blocking");
        let port = Port::new(Params::with(|params| params.act = sys::ACT_HOLD as u8), 64);
        let on_event = Box::new(|_| {});
        let mut card = Server::new(&guest.path("card"), port, Box::new(Unused(wire)), on_event)
            .expect("a card");
        card.open_channel(&path).expect("a channel");
        let reports = Reports::open(&flood.pins.leases(), &flood.pins.flows()).expect("the maps");
        let (stops, stop) = UnixStream::pair().expect("a pair");
        let (says, said) = channel();
        let open = || {
            let stream = UnixStream::connect(&path)?;
            stream.set_nonblocking(true)?;
            Ok(OwnedFd::from(stream).into())
        };
        thread::scope(|scope| {
            let say = move |heard| drop(says.send(heard));
            let follows = scope.spawn(|| channel::follow(reports, open, &stop, say));
            assert_eq!(said.recv_timeout(PATIENCE), Ok(Heard::Up));
            let segs = || Connection::new(&flood.name, "127.0.0.1").info().tcpi_snd_cwnd;
            let until = Instant::now() + PATIENCE;
            while segs() != FLOOD_SEGS {
                assert!(Instant::now() < until, "no lease");
            }
            let mut connection = Connection::new(&flood.name, "127.0.0.1");
            let begun_at = Instant::now();
            while begun_at.elapsed() < 2 * Duration::from_millis(LEASE_MS.into()) {
                assert_eq!(connection.window_segs(), FLOOD_SEGS, "the lease is renewed");
                thread::sleep(Duration::from_millis(100));
            }
            drop(card);
            assert!(matches!(said.recv_timeout(PATIENCE), Ok(Heard::Down { .. })));
            let segs = connection.window_segs();
            assert!((10..FLOOD_SEGS / 2).contains(&segs), "{segs}");
            drop(stops);
            follows.join().expect("no panic").expect("stopped");
        });
        flood.remove().expect("removed");
    });
}

/// The fabric's side of a card without traffic.
struct Unused(UnixDatagram);

impl AsRawFd for Unused {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Wire for Unused {
    fn receive(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        self.0.recv(frame)
    }

    fn send(&mut self, _: &[u8; HEADER_BYTES], frame: &[u8]) -> io::Result<()> {
        self.0.send(frame).map(drop)
    }

    fn set_offload(&mut self, _: Offload) -> io::Result<()> {
        Ok(())
    }
}
