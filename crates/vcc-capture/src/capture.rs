//! A file of captured packets.

use std::io::BufRead;

use crate::packet::{Interface, Packet};
use crate::pcap::{self, Pcap};
use crate::pcapng::Pcapng;
use crate::problem::{Problem, What};
use crate::source::{Inside, Source};

/// A file that is read packet by packet.
pub struct Capture<'a> {
    source: Source<'a>,
    /// None behind the last packet that can be read.
    format: Option<Format>,
    interfaces: Vec<Interface>,
    /// The record or block that was read last.
    bytes: Vec<u8>,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl<'a> Capture<'a> {
    /// Recognises the format.
    ///
    /// # Errors
    /// It is neither pcap nor pcapng, or its header is cut.
    pub fn open(reader: impl BufRead + 'a) -> Result<Self, Problem> {
        let mut source = Source::new(Box::new(reader));
        let mut bytes = Vec::new();
        if !source.append(4, &mut bytes, Inside { what: "the header", offset: 0 })? {
            return Err(What::Empty.at(0));
        }
        let magic = u32::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default());
        let mut interfaces = Vec::new();
        let format = if pcap::is_magic(magic) {
            interfaces.push(Interface { name: pcap::NAME.to_owned() });
            Format::Pcap(Pcap::begin(magic, &mut source)?)
        } else if magic == pcap_parser::SHB_MAGIC {
            Format::Pcapng(Pcapng::begin(bytes.clone()))
        } else {
            return Err(unknown(magic).at(0));
        };
        Ok(Self { source, format: Some(format), interfaces, bytes })
    }

    /// Those described so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Reads the next packet; false at the end.
    ///
    /// # Errors
    /// What cannot be read. The next call returns the packets behind it, if there may be any.
    pub fn next(&mut self, packet: &mut Packet) -> Result<bool, Problem> {
        let (source, bytes) = (&mut self.source, &mut self.bytes);
        let next = match &mut self.format {
            None => Ok(None),
            Some(Format::Pcap(pcap)) => pcap.next(source, bytes),
            Some(Format::Pcapng(pcapng)) => pcapng.next(source, bytes, &mut self.interfaces),
        };
        match next {
            Ok(Some(raw)) => {
                raw.write(bytes, packet);
                Ok(true)
            }
            Ok(None) => {
                self.format = None;
                Ok(false)
            }
            Err(problem) => {
                if problem.what.is_last() {
                    self.format = None;
                }
                Err(problem)
            }
        }
    }
}

fn unknown(magic: u32) -> What {
    match magic.to_le_bytes() {
        [0xfd, b'7', b'z', b'X'] => What::Compressed("xz"),
        [b'B', b'Z', b'h', _] => What::Compressed("bzip2"),
        _ => What::Magic(magic),
    }
}
