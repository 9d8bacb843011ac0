//! Two hosts, and a wire between them that is this process.
//!
//! One thread carries every segment, one at a time. The receiving TCP processes a segment in this
//! thread's context and is done when the write returns. Rounds therefore need no clock, the effect
//! of every ACK is visible, and nothing depends on the machine's load. It also keeps congestion
//! controls out of interrupts of other processes, in which a kernel may refuse to run BPF programs:
//! some do while they interrupt process 1, and the caller of ssthresh then gets an undefined value.

mod host;
mod segment;
mod sender_state;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::Socket;
use vcc_lab::congestion_controls::CongestionControls;
use vcc_port::Netns;

pub use host::congestion_control;
use host::{Host, set_congestion_control};
pub use segment::{ACK, CWR, ECE, ECN_CE, ECN_ECT0, SYN, Segment};
use sender_state::SenderState;
pub use sender_state::{CA_CWR, CA_LOSS, CA_OPEN, CA_RECOVERY, ECN_NEGOTIATED, State};

/// A kernel timer takes a second at most; a longer wait means a hang.
const STALLED: Duration = Duration::from_secs(30);

pub const MSS_BYTES: usize = 1448;
const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Fate of a segment on its way to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Passes,
    IsMarked,
    IsLost,
}

/// The link to the receiver and back.
#[derive(Clone, Copy, Default)]
pub struct Link {
    /// Round trip without queueing.
    pub delay: Duration,
    /// Transmission time of a data segment; others queue meanwhile.
    pub per_segment: Duration,
}

#[derive(Clone, Debug)]
pub enum Event {
    /// A segment to the receiver, and its fate.
    Forth(Segment, Fate),
    /// A segment that reached the sender, and the sender's state then.
    Back(Segment, Option<State>),
}

/// A segment that passed the sender's end of the wire, in order.
#[derive(Clone, Debug)]
pub enum AtSender {
    Sent(Segment),
    /// Received, with the sender's state then.
    Got(Segment, Option<State>),
}

/// The sender's state after each ACK that it received.
pub fn states(events: &[Event]) -> Vec<State> {
    let state = |event: &Event| match event {
        Event::Back(_, state) => *state,
        Event::Forth(..) => None,
    };
    events.iter().filter_map(state).collect()
}

pub struct Wire<'a> {
    controls: &'a CongestionControls,
    sender: Host,
    receiver: Host,
    receivers_netns: Netns,
    link: Link,
    forth: VecDeque<(Instant, Segment, Fate)>,
    back: VecDeque<(Instant, Segment)>,
    /// When the link is free again.
    free_at: Instant,
    events: Vec<Event>,
    at_sender: Vec<AtSender>,
}

/// The two ends of a connection.
pub struct Connection {
    pub sender: TcpStream,
    receiver: TcpStream,
    state: SenderState,
    /// Data segments sent by the sender, lost ones included.
    data_segments: u32,
}

impl Connection {
    /// The sender's state. Must be called in the sender's namespace.
    pub fn state(&self) -> State {
        self.state.state()
    }

    /// Changes the congestion control after the handshake.
    pub fn set_congestion_control(&self, wire: &Wire<'_>, name: &str) {
        let socket = Socket::from(self.sender.try_clone().expect("a descriptor"));
        set_congestion_control(&socket, wire.controls.kernel_name(name));
    }
}

impl<'a> Wire<'a> {
    /// The sender is in the calling thread's namespace.
    pub fn create(controls: &'a CongestionControls, link: Link) -> Self {
        let receivers_netns = Netns::create().expect("a namespace");
        let receiver = receivers_netns.inside(|| Host::create(RECEIVER)).expect("inside");
        Self {
            controls,
            sender: Host::create(SENDER),
            receiver,
            receivers_netns,
            link,
            forth: VecDeque::new(),
            back: VecDeque::new(),
            free_at: Instant::now(),
            events: Vec::new(),
            at_sender: Vec::new(),
        }
    }

    pub fn connect(&mut self, sender: &str, receiver: &str) -> Connection {
        let [sender, receiver] = [sender, receiver].map(|name| self.controls.kernel_name(name));
        let listener = self.receivers_netns.inside(|| self.receiver.listen(receiver));
        let listener = listener.expect("inside");
        let to = v4(listener.local_addr());
        let sender = host::start_to_connect(to, sender);
        let receiver = self.accept(&listener);
        let state = SenderState::at(v4(sender.local_addr()), to);
        Connection { sender, receiver, state, data_segments: 0 }
    }

    fn accept(&mut self, listener: &TcpListener) -> TcpStream {
        let began = Instant::now();
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true).expect("non-blocking");
                    return stream;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
            self.carry(None, |_, _| Fate::Passes);
            assert!(began.elapsed() < STALLED, "the handshake does not end");
        }
    }

    /// Sends that many bytes and waits for their arrival. `fate` is called for each data segment
    /// with its number on this connection, from 0.
    pub fn send(
        &mut self,
        connection: &mut Connection,
        bytes: usize,
        mut fate: impl FnMut(u32, &Segment) -> Fate,
    ) {
        let payload = vec![0; bytes];
        let mut unsent = &payload[..];
        let mut buffer = vec![0; 1 << 20];
        let mut arrived_bytes = 0;
        let mut began = Instant::now();
        loop {
            let written = while_possible((&connection.sender).write(unsent));
            unsent = &unsent[written..];
            let read = while_possible((&connection.receiver).read(&mut buffer));
            arrived_bytes += read;
            if arrived_bytes == bytes && self.forth.is_empty() && self.back.is_empty() {
                return;
            }
            if read > 0 {
                began = Instant::now();
            }
            assert!(began.elapsed() < STALLED, "stalled after {arrived_bytes} of {bytes} bytes");
            self.carry(Some(connection), &mut fate);
        }
    }

    /// Sends that many bytes back and waits for their arrival.
    pub fn answer(&mut self, connection: &mut Connection, bytes: usize) {
        let payload = vec![0; bytes];
        let mut unsent = &payload[..];
        let mut buffer = vec![0; 1 << 20];
        let mut arrived_bytes = 0;
        let mut began = Instant::now();
        while arrived_bytes < bytes || !self.forth.is_empty() || !self.back.is_empty() {
            let written = while_possible((&connection.receiver).write(unsent));
            unsent = &unsent[written..];
            let read = while_possible((&connection.sender).read(&mut buffer));
            arrived_bytes += read;
            if read > 0 {
                began = Instant::now();
            }
            assert!(began.elapsed() < STALLED, "stalled after {arrived_bytes} of {bytes} bytes");
            self.carry(Some(connection), |_, _| Fate::Passes);
        }
    }

    /// Sends nothing for that long; what the hosts send by themselves is carried.
    pub fn idle(&mut self, connection: &mut Connection, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            self.carry(Some(connection), |_, _| Fate::Passes);
        }
    }

    /// Collects the hosts' segments and delivers one at most; waits if there is none.
    fn carry(
        &mut self,
        mut connection: Option<&mut Connection>,
        mut fate: impl FnMut(u32, &Segment) -> Fate,
    ) {
        let now = Instant::now();
        while let Some(segment) = self.sender.sent() {
            self.at_sender.push(AtSender::Sent(segment.clone()));
            let mut becomes = Fate::Passes;
            if segment.payload_bytes() > 0 {
                let connection = connection.as_mut().expect("data of a connection");
                becomes = fate(connection.data_segments, &segment);
                connection.data_segments += 1;
                self.free_at = self.free_at.max(now) + self.link.per_segment;
            }
            let due = self.free_at.max(now) + self.link.delay / 2;
            self.forth.push_back((due, segment, becomes));
        }
        while let Some(segment) = self.receiver.sent() {
            self.back.push_back((now + self.link.delay / 2, segment));
        }

        let forth_due = self.forth.front().map(|&(due, ..)| due);
        let back_due = self.back.front().map(|&(due, _)| due);
        let next_due = forth_due.into_iter().chain(back_due).min();
        match next_due {
            Some(due) if due <= now => {
                // The older one first; of two with the same time, the one to the sender.
                if back_due == next_due {
                    let (_, segment) = self.back.pop_front().expect("the front");
                    self.sender.receive(&segment);
                    let state = connection.map(|connection| connection.state.state());
                    self.at_sender.push(AtSender::Got(segment.clone(), state));
                    self.events.push(Event::Back(segment, state));
                } else {
                    let (_, mut segment, becomes) = self.forth.pop_front().expect("the front");
                    if becomes == Fate::IsMarked {
                        segment.mark();
                    }
                    if becomes != Fate::IsLost {
                        self.receiver.receive(&segment);
                    }
                    self.events.push(Event::Forth(segment, becomes));
                }
            }
            Some(due) => host::wait([&self.sender, &self.receiver], due - now),
            None => host::wait([&self.sender, &self.receiver], Duration::from_millis(100)),
        }
    }

    /// Takes the segments seen by a port between the sender and the wire.
    pub fn take_at_sender(&mut self) -> Vec<AtSender> {
        std::mem::take(&mut self.at_sender)
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

/// The number of bytes transferred; 0 if the socket would block.
fn while_possible(result: io::Result<usize>) -> usize {
    match result {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => panic!("the connection: {error}"),
    }
}

fn v4(address: io::Result<SocketAddr>) -> SocketAddrV4 {
    match address.expect("an address") {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address}"),
    }
}
