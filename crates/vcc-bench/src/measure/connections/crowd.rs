//! A host with many connections.

use std::sync::Arc;

use vcc_engine::sys;
use vcc_frames::Packet;
use vcc_frames::wire::RST;
use vcc_port::{Error, Host, Program, Result, counters};

use super::super::connection::{
    GUEST, GUEST_ISN, PAYLOAD_BYTES, PEER, PEER_ISN, WINDOW, ack, data, handshake,
};
use super::vary::{CONNECTIONS_A_PORT, Cursor, Next, Vary};

/// Handshakes at a time: fewer than the half-open connections that a port has room for.
const HANDSHAKES: u32 = 5_000;

pub(super) struct Crowd {
    host: Arc<Host>,
    vary: Vary,
    pub connections: u32,
    /// The segments of the next round of all connections.
    from_guest: Cursor,
    to_guest: Cursor,
}

/// Nanoseconds per run.
#[derive(Clone, Copy, Default)]
pub(super) struct Took {
    pub harness_ns: f64,
    pub gross_ns: f64,
}

impl Crowd {
    /// As many connections, at a host of the size of a real one, whose wheels rest.
    pub(super) fn alone(connections: u32) -> Result<Self> {
        Self::establish(Arc::new(Host::unpinned(ports_of(connections))?), connections)
    }

    /// As many connections, at the first ports of a host.
    pub(super) fn establish(host: Arc<Host>, connections: u32) -> Result<Self> {
        let vary = Vary::load(&host, &shuffled(connections))?;
        let after_handshake = Cursor {
            seq: GUEST_ISN + 1,
            ack: PEER_ISN + 1,
            seq_step: PAYLOAD_BYTES,
            ack_step: 0,
            begin: 0,
            end: connections,
            window: WINDOW,
            shuffled: true,
        };
        let crowd = Self {
            from_guest: after_handshake,
            to_guest: Cursor {
                seq: PEER_ISN + 1,
                ack: GUEST_ISN + 1 + PAYLOAD_BYTES,
                seq_step: 0,
                ack_step: PAYLOAD_BYTES,
                ..after_handshake
            },
            host,
            vary,
            connections,
        };
        crowd.shake_hands()?;
        crowd.require(|flow| u32::from(flow.stage) == sys::STAGE_ESTABLISHED)?;
        Ok(crowd)
    }

    fn shake_hands(&self) -> Result<()> {
        let programs = [Program::FromGuest, Program::ToGuest, Program::FromGuest];
        for begin in (0..self.connections).step_by(HANDSHAKES as usize) {
            let end = self.connections.min(begin + HANDSHAKES);
            for (program, packet) in programs.into_iter().zip(handshake(PEER)) {
                let Packet { seq, ack, window, .. } = packet;
                let cursor = Cursor {
                    seq,
                    ack,
                    seq_step: 0,
                    ack_step: 0,
                    begin,
                    end,
                    window,
                    shuffled: false,
                };
                let frame = packet.frame();
                self.vary.run(program, &frame, cursor, Next::Translate, end - begin)?;
            }
        }
        Ok(())
    }

    /// Makes the entries that [`Self::touch`] touches.
    pub(super) fn prepare_yardstick(&self) -> Result<()> {
        let all = Cursor { shuffled: false, ..self.from_guest };
        let frame = data(PEER).frame();
        self.vary.run(Program::FromGuest, &frame, all, Next::Enter, self.connections).map(drop)
    }

    /// Guests reset all connections, over which no data was sent.
    pub(super) fn reset(&self) -> Result<()> {
        let frame = Packet { flags: RST, ..ack(GUEST, PEER) }.frame();
        let (all, next) = (self.from_guest, Next::Translate);
        self.vary.run(Program::FromGuest, &frame, all, next, self.connections).map(drop)
    }

    /// ACKs of the guests, over some connections.
    pub(super) fn probe(&self, segments: u32) -> Result<()> {
        let cursor = Cursor { seq_step: 0, ..self.from_guest };
        let frame = ack(GUEST, PEER).frame();
        self.vary.run(Program::FromGuest, &frame, cursor, Next::Translate, segments).map(drop)
    }

    /// New data of each connection, `rounds` times.
    pub(super) fn send_data(&mut self, rounds: u32) -> Result<Took> {
        let took = self.took(Program::FromGuest, self.from_guest, Next::Translate, rounds)?;
        self.from_guest.advance(rounds);
        Ok(took)
    }

    /// ACKs of them.
    pub(super) fn send_acks(&mut self, rounds: u32) -> Result<Took> {
        let took = self.took(Program::ToGuest, self.to_guest, Next::Translate, rounds)?;
        self.to_guest.advance(rounds);
        Ok(took)
    }

    /// The memory's share: as many entries of a map of the same size, looked up and touched.
    pub(super) fn touch(&self, rounds: u32) -> Result<Took> {
        self.took(Program::FromGuest, self.from_guest, Next::Touch, rounds)
    }

    fn took(&self, program: Program, cursor: Cursor, next: Next, rounds: u32) -> Result<Took> {
        let packet = if program == Program::ToGuest { ack(PEER, GUEST) } else { data(PEER) };
        let (frame, runs) = (packet.frame(), self.connections * rounds);
        let run = |next| self.vary.run(program, &frame, cursor, next, runs);
        let harness_ns = run(Next::None)?.as_nanos() as f64;
        Ok(Took { harness_ns, gross_ns: run(next)?.as_nanos() as f64 })
    }

    /// An error unless every segment was taken as what it is.
    pub(super) fn require_valid(&self) -> Result<()> {
        let acked = self.to_guest.ack - PAYLOAD_BYTES;
        self.require(|flow| flow.snd_una == acked && flow.snd_nxt == acked)?;
        for index in 0..ports_of(self.connections) {
            let counted = self.host.counters(index)?;
            for counter in [counters::CONTENDED, counters::DROPPED, counters::UNKNOWN] {
                let times = counted.get(counter);
                if times > 0 {
                    return Err(wrong(format!("{times} segments were `{}`", counter.meaning)));
                }
            }
        }
        Ok(())
    }

    /// An error unless all connections are there, and are so.
    fn require(&self, is_so: impl Fn(&sys::vcc_flow) -> bool) -> Result<()> {
        let count = self.host.count_flows(is_so)?;
        if count == self.connections {
            return Ok(());
        }
        Err(wrong(format!("{count} of {} connections are as expected", self.connections)))
    }
}

/// The number of ports of as many connections.
pub(super) fn ports_of(connections: u32) -> u32 {
    connections.div_ceil(CONNECTIONS_A_PORT)
}

pub(super) fn wrong(why: String) -> Error {
    Error::System { doing: "measure many connections".into(), why }
}

/// The numbers below `count` in random order (Fisher and Yates, by Marsaglia's xorshift).
fn shuffled(count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for last in (1..numbers.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        numbers.swap(last, (random % (last as u64 + 1)) as usize);
    }
    numbers
}
