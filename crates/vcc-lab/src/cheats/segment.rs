//! What cheats ask of a segment.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use vcc_frames::Packet;
use vcc_frames::wire::{ACK, FIN, OPTION_END, OPTION_NOP, OPTION_SACK, RST, SYN};

/// The most bytes of options that a TCP header has room for.
const OPTIONS_MOST_BYTES: usize = 40;

pub trait Read {
    /// An acknowledgement and nothing else.
    fn is_pure_ack(&self) -> bool;
    fn end(&self) -> u32;
    /// Adds an option, if there is room for it.
    fn add_option(&mut self, option: &[u8]) -> bool;
    /// Removes the SACK option, if there is one, and returns it without kind and length.
    fn take_sack(&mut self) -> Option<Vec<u8>>;
}

impl Read for Packet {
    fn is_pure_ack(&self) -> bool {
        self.payload.is_empty() && self.flags & (SYN | FIN | RST | ACK) == ACK
    }

    fn end(&self) -> u32 {
        self.seq.wrapping_add(self.payload.len() as u32)
    }

    fn add_option(&mut self, option: &[u8]) -> bool {
        let padded_bytes = option.len().next_multiple_of(4);
        if self.options.len() + padded_bytes > OPTIONS_MOST_BYTES {
            return false;
        }
        self.options.extend(vec![OPTION_NOP; padded_bytes - option.len()]);
        self.options.extend(option);
        true
    }

    fn take_sack(&mut self) -> Option<Vec<u8>> {
        let mut at = 0;
        while let Some(&kind) = self.options.get(at).filter(|kind| **kind != OPTION_END) {
            let bytes = match kind {
                OPTION_NOP => 1,
                _ => usize::from(*self.options.get(at + 1)?).max(2),
            };
            if kind == OPTION_SACK {
                let option = self.options.get(at..at + bytes)?.to_vec();
                self.options.drain(at..at + bytes);
                self.options.resize(self.options.len().next_multiple_of(4), OPTION_NOP);
                return Some(option[2..].to_vec());
            }
            at += bytes;
        }
        None
    }
}

/// What a cheat remembers of each connection, known by the kernel's end and the peer's.
#[derive(Default)]
pub struct Connections<T>(BTreeMap<(SocketAddr, SocketAddr), T>);

impl<T: Default> Connections<T> {
    pub fn of_sent(&mut self, segment: &Packet) -> &mut T {
        self.0.entry((segment.from, segment.to)).or_default()
    }

    pub fn of_received(&mut self, segment: &Packet) -> &mut T {
        self.0.entry((segment.to, segment.from)).or_default()
    }
}
