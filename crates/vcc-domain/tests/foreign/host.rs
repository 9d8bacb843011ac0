//! smoltcp with one connection, and a network device made of two queues of frames.

use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};

use crate::common::watch::pattern;
use crate::path::Side;

const ETHERNET_BYTES: usize = 14;
/// Of either direction, unless a setup sets another one.
pub const BUFFER_BYTES: usize = 1 << 20;
const PORT: u16 = 5001;

/// Received frames, and frames to send.
struct Card {
    ip_mtu: usize,
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, work: F) -> R {
        work(&self.0)
    }
}

struct ToSend<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, work: F) -> R {
        let mut frame = vec![0; bytes];
        let result = work(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, ToSend<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Received(frame), ToSend(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<ToSend<'_>> {
        Some(ToSend(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = ETHERNET_BYTES + self.ip_mtu;
        capabilities
    }
}

/// The options of a stack.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub ip_mtu: usize,
    /// Timestamps: an opener offers them, a listener accepts them (RFC 7323).
    pub timestamps: bool,
    /// Nagle's algorithm. Without it, the stack sends all that fits into its window.
    pub nagle: bool,
    /// The receive buffer, and so the largest window.
    pub receive_bytes: usize,
}

pub struct Host {
    side: Side,
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// Length of the stream to send, and how much of it the socket has taken.
    stream_bytes: u64,
    written_bytes: u64,
    /// Does it close behind the stream?
    closes: bool,
    /// Does the application read what arrives?
    pub reads: bool,
    pub received_bytes: u64,
}

fn socket(Setup { timestamps, nagle, receive_bytes, .. }: Setup) -> tcp::Socket<'static> {
    let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
    let mut socket = tcp::Socket::new(buffer(receive_bytes), buffer(BUFFER_BYTES));
    // No delayed ACKs, as in the yardstick's receiver.
    socket.set_ack_delay(None);
    socket.set_nagle_enabled(nagle);
    socket.set_tsval_generator(timestamps.then_some(|| 1));
    socket
}

fn address(side: Side) -> IpAddress {
    IpAddress::v4(192, 0, 2, if side == Side::Guest { 1 } else { 2 })
}

impl Host {
    pub fn new(side: Side, setup: Setup) -> Self {
        let ip_mtu = setup.ip_mtu;
        let mut card = Card { ip_mtu, received: VecDeque::new(), sent: VecDeque::new() };
        let mac = EthernetAddress([2, 0, 0, 0, 0, side as u8 + 1]);
        let mut interface = Interface::new(Config::new(mac.into()), &mut card, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address(side), 24)).expect("room for one address");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket(setup));
        Host {
            side,
            card,
            interface,
            sockets,
            socket,
            stream_bytes: 0,
            written_bytes: 0,
            closes: false,
            reads: true,
            received_bytes: 0,
        }
    }

    /// Another connection, of a host that knows its neighbour. What has arrived is lost.
    pub fn renew(&mut self, setup: Setup) {
        self.card.received.clear();
        self.sockets.remove(self.socket);
        self.socket = self.sockets.add(socket(setup));
        (self.stream_bytes, self.written_bytes, self.received_bytes) = (0, 0, 0);
        self.closes = false;
    }

    fn connection(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    pub fn listen(&mut self) {
        self.connection().listen(PORT).expect("it is closed");
    }

    pub fn open(&mut self) {
        self.open_from(PORT + 1);
    }

    pub fn open_from(&mut self, port: u16) {
        let peer = (address(self.side.other()), PORT);
        let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);
        socket.connect(self.interface.context(), peer, port).expect("it is closed");
    }

    /// Ends the connection by a RST.
    pub fn abort(&mut self) {
        self.connection().abort();
    }

    /// Starts to send a stream.
    pub fn send(&mut self, stream_bytes: u64) {
        self.stream_bytes = stream_bytes;
    }

    /// Starts to send a stream, and closes behind it. smoltcp never gets rid of a FIN that arrives
    /// before data does, so this is for paths that neither lose nor reorder.
    pub fn send_and_close(&mut self, stream_bytes: u64) {
        self.stream_bytes = stream_bytes;
        self.closes = stream_bytes > 0;
    }

    /// Has the peer acknowledged the stream, and the FIN behind it?
    pub fn has_sent(&mut self) -> bool {
        let written = self.written_bytes == self.stream_bytes;
        let closes = self.closes;
        let connection = self.connection();
        let closed = [tcp::State::FinWait2, tcp::State::TimeWait, tcp::State::Closed];
        written && connection.send_queue() == 0 && (!closes || closed.contains(&connection.state()))
    }

    /// Has the peer acknowledged the stream?
    pub fn has_sent_stream(&mut self) -> bool {
        let written = self.written_bytes == self.stream_bytes;
        // The queue has no place for a FIN.
        written && self.connection().send_queue() == 0
    }

    pub fn state(&mut self) -> tcp::State {
        self.connection().state()
    }

    /// Frames in its ring that it has not read.
    pub fn unread_frames(&self) -> usize {
        self.card.received.len()
    }

    pub fn receive(&mut self, frame: Vec<u8>) {
        self.card.received.push_back(frame);
    }

    /// Polls the stack and its application; returns the frames that they sent.
    pub fn work(&mut self, now_us: u64) -> VecDeque<Vec<u8>> {
        let now = Instant::from_micros(now_us as i64);
        self.serve_application();
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        if self.serve_application() {
            self.interface.poll(now, &mut self.card, &mut self.sockets);
        }
        std::mem::take(&mut self.card.sent)
    }

    /// Reads and writes until the socket would block; returns whether any data moved. What is read
    /// must be the peer's stream.
    fn serve_application(&mut self) -> bool {
        let (own, others) = (self.side.salt(), self.side.other().salt());
        let Host { sockets, socket, reads, stream_bytes, closes, .. } = self;
        let (received_bytes, written_bytes) = (&mut self.received_bytes, &mut self.written_bytes);
        let connection = sockets.get_mut::<tcp::Socket>(*socket);
        let before = (*received_bytes, *written_bytes);
        while *reads && connection.can_recv() {
            let read = connection.recv(|data| {
                for (at, &byte) in (*received_bytes..).zip(&*data) {
                    assert_eq!(byte, pattern(others, at), "a wrong byte at offset {at}");
                }
                (data.len(), data.len())
            });
            *received_bytes += read.expect("data") as u64;
        }
        while *written_bytes < *stream_bytes && connection.can_send() {
            let written = connection.send(|room| {
                let bytes = (*stream_bytes - *written_bytes).min(room.len() as u64) as usize;
                for (at, byte) in (*written_bytes..).zip(&mut room[..bytes]) {
                    *byte = pattern(own, at);
                }
                (bytes, bytes)
            });
            *written_bytes += written.expect("an open connection") as u64;
            if *closes && *written_bytes == *stream_bytes {
                connection.close();
            }
        }
        before != (*received_bytes, *written_bytes)
    }

    /// When the stack must be polled again if no frame arrives.
    pub fn next_work_us(&mut self, now_us: u64) -> Option<u64> {
        let now = Instant::from_micros(now_us as i64);
        let at = self.interface.poll_at(now, &self.sockets)?;
        Some(at.total_micros().max(0) as u64)
    }
}
