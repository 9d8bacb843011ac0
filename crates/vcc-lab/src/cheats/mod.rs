//! What a dishonest guest does to its segments, between its kernel and its port. The kernel itself
//! stays an honest Linux: it receives segments that make it send too much, or its own are changed.
//!
//! A cheat is a file, or a part of one, and a line in [`CHEATS`].

mod acks;
mod dsack;
mod escape;
mod marks;
mod reports;
mod segment;
mod window;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt;
use vcc_frames::Packet;
use vcc_uml::{Tamper, Tampered};

/// Which end of its connections cheats for the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
}

pub struct Cheat {
    pub name: &'static str,
    pub end: End,
    make: fn() -> Box<dyn Segments>,
}

/// Under the RFC or the paper that has it, or the rule that it breaks.
const CHEATS: &[Cheat] = &[
    // RFC 9293, 3.8.6: the window is the receiver's word on how much may be sent.
    sender("ignores-window", || Box::new(window::Ignored)),
    // RFC 3168, 6.1.2: a sender reduces its window at ECE.
    sender("ignores-ece", || Box::new(marks::EceIgnored)),
    // RFC 3168, 6.1.3: a receiver stops ECE at CWR.
    sender("sets-cwr", || Box::new(marks::CwrSet)),
    // RFC 9293, 3.7.1: windows are counted in segments whose size a sender chooses.
    sender("tiny-segments", || Box::new(escape::TinySegments::default())),
    // RFC 5961, 3 and 4: the peer does not believe these SYNs and RSTs.
    sender("own-syn-rst", || Box::new(escape::OwnSynRst::default())),
    // RFC 791, 3.2: only the first fragment has TCP's header.
    sender("fragments", || Box::new(escape::Fragments)),
    // RFC 2385: nobody may change a signed segment.
    sender("signed", || Box::new(escape::Signed::default())),
    // Savage et al., TCP Congestion Control with a Misbehaving Receiver (1999), 2.1 to 2.3.
    receiver("splits-acks", || Box::new(acks::Split::default())),
    receiver("spoofs-duplicates", || Box::new(acks::Duplicates)),
    receiver("optimistic-acks", || Box::new(acks::Optimistic::default())),
    // RFC 3540, 1: a receiver that conceals marks.
    receiver("hides-marks", || Box::new(marks::Hidden)),
    // RFC 9768, 3.2.3: a receiver's counters of marked bytes, which vcc reports in its place.
    receiver("forges-reports", || Box::new(reports::Forged::default())),
    // RFC 3708: a sender undoes what it did for needless retransmissions.
    receiver("dsack-undo", || Box::new(dsack::Undo::default())),
];

const fn sender(name: &'static str, make: fn() -> Box<dyn Segments>) -> Cheat {
    Cheat { name, end: End::Sender, make }
}

const fn receiver(name: &'static str, make: fn() -> Box<dyn Segments>) -> Cheat {
    Cheat { name, end: End::Receiver, make }
}

impl Cheat {
    /// For one host.
    pub fn tamper(&self) -> Box<dyn Tamper> {
        Box::new(Cheater((self.make)()))
    }
}

impl fmt::Debug for Cheat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<'de> Deserialize<'de> for &'static Cheat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        CHEATS.iter().find(|cheat| cheat.name == name).ok_or_else(|| {
            let known: Vec<&str> = CHEATS.iter().map(|cheat| cheat.name).collect();
            D::Error::custom(format!("there is no cheat '{name}': there are {}", known.join(", ")))
        })
    }
}

/// What becomes of TCP segments. One that a cheat has no interest in passes as it is.
trait Segments {
    /// A segment that the kernel sends.
    fn sends(&mut self, segment: Packet, out: &mut Tampered) {
        out.sent.push(segment.frame());
    }

    /// A segment for the kernel.
    fn receives(&mut self, segment: Packet, out: &mut Tampered) {
        out.received.push(segment.frame());
    }
}

struct Cheater(Box<dyn Segments>);

impl Tamper for Cheater {
    fn sends(&mut self, frame: Vec<u8>) -> Tampered {
        let mut out = Tampered::default();
        match Packet::read_ipv4(&frame) {
            Some(segment) => self.0.sends(segment, &mut out),
            None => out.sent.push(frame),
        }
        out
    }

    fn receives(&mut self, frame: Vec<u8>) -> Tampered {
        let mut out = Tampered::default();
        match Packet::read_ipv4(&frame) {
            Some(segment) => self.0.receives(segment, &mut out),
            None => out.received.push(frame),
        }
        out
    }
}

#[cfg(test)]
mod tests;
