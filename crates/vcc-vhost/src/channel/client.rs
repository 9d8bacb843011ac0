//! A virtual machine's end of the channel, or another process on the socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use vcc_channel::{Bad, FLOWS_MAX, FromGuest, FromHost, MESSAGE_BYTES, Message, Stream, VERSION};
use vcc_domain::{Grant, Port};
use vcc_engine::sys;

use super::announcer::Announcer;
use crate::card::Card;

const LEASE_MS: u32 = 2000;
/// A lease is renewed at this interval.
const BEAT: Duration = Duration::from_millis(500);
/// A guest that has answered nothing for so long follows no more.
const SILENCE: Duration = Duration::from_millis(2 * LEASE_MS as u64);
/// After what was reported has become void, before it is reported again.
const PAUSE: Duration = Duration::from_secs(1);
/// Messages that wait for a guest. With more, what it knows is void.
const UNSENT_MAX_BYTES: usize = 2 * FLOWS_MAX * MESSAGE_BYTES;
/// Places of the port's table that are read in one go, while the datapath waits.
const PLACES: usize = 256;

/// Why there is no client any more.
#[derive(Debug)]
pub(super) enum Lost {
    Gone,
    /// It has sent what is no message.
    Bad(Bad),
}

pub(super) struct Client {
    stream: UnixStream,
    input: Stream<FromGuest>,
    unsent: Vec<u8>,
    /// How much of the first message of them is sent already.
    sent_bytes: usize,
    /// The guest follows.
    is_up: bool,
    /// By the last report, new connections are held.
    is_online: bool,
    heard_at: Instant,
    beat_at: Instant,
    /// Before, new connections are not reported as held.
    online_from: Instant,
    announcer: Announcer,
    /// New connections that the port has let pass, as of the begin.
    passed: u64,
}

impl AsRawFd for Client {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

impl Client {
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Client {
            stream,
            input: Stream::default(),
            unsent: Vec::new(),
            sent_bytes: 0,
            is_up: false,
            is_online: false,
            heard_at: now,
            beat_at: now,
            online_from: now,
            announcer: Announcer::default(),
            passed: 0,
        })
    }

    pub fn is_up(&self) -> bool {
        self.is_up
    }

    pub fn is_silent(&self) -> bool {
        self.heard_at.elapsed() > SILENCE
    }

    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Reads what the guest has sent, and answers.
    pub fn hear(&mut self, card: &Card) -> Result<(), Lost> {
        let mut bytes = [0; 16 * MESSAGE_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Err(Lost::Gone),
            Ok(read) => self.input.push(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let mut begins = false;
        while let Some(message) = self.input.take().map_err(Lost::Bad)? {
            self.heard_at = Instant::now();
            // Each version from 1 on is known to a guest of any later one.
            if let FromGuest::Hello { .. } = message {
                self.say(&FromHost::Hello { version: VERSION, lease_ms: LEASE_MS });
                begins = true;
            }
            // It was silent for a while, and may have missed something.
            begins |= !self.is_up;
        }
        if begins {
            self.is_up = true;
            self.begin(card.with_port(passed));
        }
        // It asks, and does not read the answers.
        if self.unsent.len() > UNSENT_MAX_BYTES {
            return Err(Lost::Gone);
        }
        self.flush()
    }

    /// Looks at the port, and reports what has changed.
    pub fn report_changes(&mut self, card: &Card) -> Result<(), Lost> {
        if self.is_up && self.is_silent() {
            self.is_up = false;
            self.void(Duration::ZERO);
        }
        if self.is_up {
            let (holds_new, passed) = card.with_port(|port| (port.holds_new(), passed(port)));
            if passed != self.passed {
                // Of these, nothing is known here, and the guest would flood there.
                self.void(PAUSE);
                self.passed = passed;
            }
            let is_online = holds_new && Instant::now() >= self.online_from;
            if self.is_online && !is_online {
                self.void(Duration::ZERO);
            }
            self.beat(is_online);
            if is_online {
                self.report_flows(card);
            }
        }
        self.flush()
    }

    /// The guest knows nothing.
    fn begin(&mut self, passed: u64) {
        self.announcer.begin();
        self.is_online = false;
        self.passed = passed;
        self.beat_at = Instant::now();
    }

    /// What the guest knows is void, and for a time nothing else is reported.
    fn void(&mut self, pause: Duration) {
        self.say(&FromHost::Offline);
        self.announcer.begin();
        self.is_online = false;
        self.online_from = Instant::now() + pause;
        self.beat_at = Instant::now() + BEAT;
    }

    fn beat(&mut self, is_online: bool) {
        if Instant::now() < self.beat_at && is_online == self.is_online {
            return;
        }
        self.is_online = is_online;
        self.beat_at = Instant::now() + BEAT;
        self.say(&match is_online {
            true => FromHost::Online { lease_ms: LEASE_MS },
            false => FromHost::Offline,
        });
    }

    fn report_flows(&mut self, card: &Card) {
        let mut grants: Vec<Grant> = Vec::new();
        let mut news = Vec::new();
        let mut from = Some(0);
        while let Some(place) = from {
            grants.clear();
            from = card.with_port(|port| port.grants(place, PLACES, &mut grants));
            let noted = grants.iter().try_for_each(|grant| self.announcer.note(grant, &mut news));
            if noted.is_err() {
                self.void(PAUSE);
                return;
            }
        }
        self.announcer.end_round();
        if self.unsent.len() + news.len() * MESSAGE_BYTES > UNSENT_MAX_BYTES {
            // All but the rest of a message that the guest has a part of.
            let rest_bytes = (MESSAGE_BYTES - self.sent_bytes) % MESSAGE_BYTES;
            self.unsent.truncate(rest_bytes);
            self.void(PAUSE);
            return;
        }
        news.iter().for_each(|message| self.say(message));
    }

    fn say(&mut self, message: &FromHost) {
        self.unsent.extend(message.to_bytes());
    }

    /// Writes as much as the guest takes now.
    pub fn flush(&mut self) -> Result<(), Lost> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(bytes) => {
                    self.unsent.drain(..bytes);
                    self.sent_bytes = (self.sent_bytes + bytes) % MESSAGE_BYTES;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// New connections that have passed without a flow, or whose flow gave way to others.
fn passed(port: &Port) -> u64 {
    let counters = port.counters();
    counters.get(sys::COUNT_TABLE_FULL) + counters.get(sys::COUNT_GAVE_WAY)
}
