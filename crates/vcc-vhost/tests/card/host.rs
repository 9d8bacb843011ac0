//! A card that is served, with a wire whose other end the test has.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use vcc_domain::Port;
use vcc_vhost::testing::PATIENCE;
use vcc_vhost::{Card, HEADER_BYTES, Offload, Server, Wire};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

/// A datagram for each frame.
pub struct Cable {
    end: UnixDatagram,
    offloads: Arc<AtomicUsize>,
}

impl Cable {
    /// The end that the test has, and the wire.
    pub fn pair() -> (UnixDatagram, Self) {
        let (ours, theirs) = UnixDatagram::pair().expect("a wire");
        theirs.set_nonblocking(true).expect("a wire that does not wait");
        ours.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        ours.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        (ours, Cable { end: theirs, offloads: Arc::default() })
    }
}

impl AsRawFd for Cable {
    fn as_raw_fd(&self) -> RawFd {
        self.end.as_raw_fd()
    }
}

impl Wire for Cable {
    fn receive(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        self.end.recv(frame)
    }

    fn send(&mut self, header: &[u8; HEADER_BYTES], frame: &[u8]) -> io::Result<()> {
        self.end.send(&[&header[..], frame].concat()).map(drop)
    }

    fn set_offload(&mut self, _offload: Offload) -> io::Result<()> {
        self.offloads.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

pub struct Host {
    _directory: TempDir,
    pub socket: PathBuf,
    pub card: Card,
    /// The end of the wire that is the host's.
    pub wire: UnixDatagram,
    /// How often the card has changed its offloads.
    offloads: Arc<AtomicUsize>,
    reported: Receiver<String>,
}

impl Host {
    pub fn with(port: Port) -> Self {
        Self::begin(port, false).0
    }

    /// With a channel of this path.
    pub fn with_channel(port: Port) -> (Self, PathBuf) {
        Self::begin(port, true)
    }

    fn begin(port: Port, has_channel: bool) -> (Self, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let (ours, cable) = Cable::pair();
        let (sender, reported) = channel();
        let on_event = move |event: vcc_vhost::Event| drop(sender.send(event.to_string()));
        let offloads = Arc::clone(&cable.offloads);
        let server = Server::new(&socket, port, Box::new(cable), Box::new(on_event));
        let mut server = server.expect("a server");
        let channel = directory.path().join("channel");
        if has_channel {
            server.open_channel(&channel).expect("a channel");
        }
        let card = server.card();
        // It ends with the tests.
        thread::spawn(move || {
            let never = EventFd::new(EFD_NONBLOCK).expect("an eventfd");
            server.run(&never).expect("served");
        });
        (Host { _directory: directory, socket, card, wire: ours, offloads, reported }, channel)
    }

    /// Waits for a line of the journal that contains this, and returns it.
    #[track_caller]
    pub fn reports(&self, text: &str) -> String {
        loop {
            let line = self
                .reported
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("not reported: {text}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    pub fn offloads(&self) -> usize {
        self.offloads.load(Ordering::SeqCst)
    }

    /// A line that was reported without a request.
    pub fn reported_more(&self) -> Option<String> {
        self.reported.try_recv().ok()
    }

    /// The next frame on the wire, behind its header.
    #[track_caller]
    pub fn sent(&self) -> Vec<u8> {
        let mut frame = vec![0; 1 << 17];
        let bytes = self.wire.recv(&mut frame).expect("a frame on the wire");
        frame.truncate(bytes);
        frame
    }

    /// A frame on the wire that has not been asked for.
    pub fn sent_more(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 1 << 17];
        self.wire.set_nonblocking(true).expect("a wire that does not wait");
        let sent = self.wire.recv(&mut frame);
        self.wire.set_nonblocking(false).expect("a wire that waits");
        frame.truncate(sent.ok()?);
        Some(frame)
    }
}

/// Waits for what another thread does.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = std::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < until, "never: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}
