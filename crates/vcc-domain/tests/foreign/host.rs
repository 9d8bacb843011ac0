//! smoltcp with one connection, and a network device made of two queues of frames.

use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};

use crate::path::Side;

const ETHERNET_BYTES: usize = 14;
const BUFFER_BYTES: usize = 1 << 20;
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
    /// Nagle's algorithm. Without it, the stack sends whatever fits into its window.
    pub nagle: bool,
}

pub struct Host {
    side: Side,
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    sends: bool,
    pub received_bytes: u64,
}

fn address(side: Side) -> IpAddress {
    IpAddress::v4(192, 0, 2, if side == Side::Guest { 1 } else { 2 })
}

impl Host {
    pub fn new(side: Side, Setup { ip_mtu, timestamps, nagle }: Setup) -> Self {
        let mut card = Card { ip_mtu, received: VecDeque::new(), sent: VecDeque::new() };
        let mac = EthernetAddress([2, 0, 0, 0, 0, side as u8 + 1]);
        let mut interface = Interface::new(Config::new(mac.into()), &mut card, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address(side), 24)).expect("room for one address");
        });
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut connection = tcp::Socket::new(buffer(), buffer());
        // No delayed ACKs, as in the yardstick's receiver.
        connection.set_ack_delay(None);
        connection.set_nagle_enabled(nagle);
        connection.set_tsval_generator(timestamps.then_some(|| 1));
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(connection);
        Host { side, card, interface, sockets, socket, sends: false, received_bytes: 0 }
    }

    fn connection(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    pub fn listen(&mut self) {
        self.connection().listen(PORT).expect("it is closed");
    }

    pub fn open(&mut self) {
        let peer = (address(self.side.other()), PORT);
        let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);
        socket.connect(self.interface.context(), peer, PORT + 1).expect("it is closed");
    }

    /// Starts to send endlessly.
    pub fn send(&mut self) {
        self.sends = true;
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

    /// Reads and writes until the socket would block; returns whether any data moved.
    fn serve_application(&mut self) -> bool {
        static CHUNK: [u8; 1 << 16] = [b'x'; 1 << 16];
        let sends = self.sends;
        let connection = self.connection();
        let mut read_bytes = 0;
        while connection.can_recv() {
            read_bytes += connection.recv(|data| (data.len(), data.len())).expect("data");
        }
        let mut written_bytes = 0;
        while sends && connection.can_send() {
            written_bytes += connection.send_slice(&CHUNK).expect("an open connection");
        }
        self.received_bytes += read_bytes as u64;
        read_bytes + written_bytes > 0
    }

    /// When the stack has to be polled again if no frame arrives.
    pub fn next_work_us(&mut self, now_us: u64) -> Option<u64> {
        let now = Instant::from_micros(now_us as i64);
        let at = self.interface.poll_at(now, &self.sockets)?;
        Some(at.total_micros().max(0) as u64)
    }
}
