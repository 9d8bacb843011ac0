//! A file of captured packets in the format pcapng, written packet by packet.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_parser::pcapng::{
    EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode,
    PcapNGOption, SectionHeaderBlock,
};
use pcap_parser::{Linktype, ToVec};

/// Times are in ns: 10 to the power of minus this (if_tsresol).
const NS: u8 = 9;
/// Of a packet (epb_flags).
pub(crate) const EPB_FLAGS: OptionCode = OptionCode(2);
/// The packet's direction in its flags.
pub(crate) const WAY_MASK: u32 = 3;
/// A section of unknown length.
const UNKNOWN: i64 = -1;

/// The direction of a packet, as seen from its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In = 1,
    Out = 2,
}

/// A packet to be written: an Ethernet frame.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// Of [`Writer::interface`].
    pub interface: u32,
    /// Since 1970.
    pub time: Duration,
    pub way: Way,
    /// The size of the frame when it was captured.
    pub frame_bytes: u32,
    /// What was kept of it.
    pub frame: &'a [u8],
}

/// What a recording has counted at an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub received: u64,
    /// Received, but not written.
    pub lost: u64,
}

pub struct Writer<W> {
    to: W,
    interfaces: u32,
}

impl<W: Write> Writer<W> {
    /// Begins a section. `application` is the program that writes it.
    pub fn begin(mut to: W, application: &str) -> io::Result<Self> {
        let options = vec![option(OptionCode::ShbUserAppl, application.as_bytes())];
        let (block_type, block_len1, block_len2, bom) = Default::default();
        let (major_version, minor_version, section_len) = (1, 0, UNKNOWN);
        let block = SectionHeaderBlock {
            block_type,
            block_len1,
            bom,
            major_version,
            minor_version,
            section_len,
            options,
            block_len2,
        };
        write(&mut to, block)?;
        Ok(Self { to, interfaces: 0 })
    }

    /// Describes an Ethernet interface, of whose packets at most `kept_max_bytes` are kept, and returns its
    /// number.
    pub fn interface(
        &mut self,
        name: &str,
        description: &str,
        kept_max_bytes: u32,
    ) -> io::Result<u32> {
        let options = vec![
            option(OptionCode::IfName, name.as_bytes()),
            option(OptionCode::IfDescription, description.as_bytes()),
            option(OptionCode::IfTsresol, &[NS]),
            option(OptionCode::IfTsoffset, &[0; 8]),
        ];
        let (block_type, block_len1, block_len2, reserved, if_tsoffset) = Default::default();
        let block = InterfaceDescriptionBlock {
            block_type,
            block_len1,
            linktype: Linktype::ETHERNET,
            reserved,
            snaplen: kept_max_bytes,
            options,
            block_len2,
            if_tsresol: NS,
            if_tsoffset,
        };
        write(&mut self.to, block)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    pub fn packet(&mut self, packet: Written) -> io::Result<()> {
        let (ts_high, ts_low) = timestamp(packet.time);
        let flags = (packet.way as u32).to_le_bytes();
        let (block_type, block_len1, block_len2) = Default::default();
        let block = EnhancedPacketBlock {
            block_type,
            block_len1,
            if_id: packet.interface,
            ts_high,
            ts_low,
            caplen: packet.frame.len() as u32,
            origlen: packet.frame_bytes,
            data: packet.frame,
            options: vec![option(EPB_FLAGS, &flags)],
            block_len2,
        };
        write(&mut self.to, block)
    }

    pub fn statistics(
        &mut self,
        interface: u32,
        time: Duration,
        statistics: Statistics,
    ) -> io::Result<()> {
        let (ts_high, ts_low) = timestamp(time);
        let (received, lost) = (statistics.received.to_le_bytes(), statistics.lost.to_le_bytes());
        let (block_type, block_len1, block_len2) = Default::default();
        let block = InterfaceStatisticsBlock {
            block_type,
            block_len1,
            if_id: interface,
            ts_high,
            ts_low,
            options: vec![
                option(OptionCode::IsbIfRecv, &received),
                option(OptionCode::IsbIfDrop, &lost),
            ],
            block_len2,
        };
        write(&mut self.to, block)
    }

    pub fn get_ref(&self) -> &W {
        &self.to
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn option(code: OptionCode, value: &[u8]) -> PcapNGOption<'_> {
    PcapNGOption { code, len: value.len() as u16, value: Cow::Borrowed(value) }
}

/// The upper and the lower half of a time in ns.
fn timestamp(time: Duration) -> (u32, u32) {
    let ns = time.as_nanos() as u64;
    ((ns >> 32) as u32, ns as u32)
}

/// The library completes the block: its type, its lengths, and the end of its options.
fn write(to: &mut impl Write, mut block: impl ToVec) -> io::Result<()> {
    to.write_all(&block.to_vec().map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use crate::{Capture, Packet};

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut file = Vec::new();
        let mut writer = Writer::begin(&mut file, "vcc 1").expect("a file");
        let frames: Vec<Vec<u8>> = (60..64).map(|bytes| vec![bytes; bytes.into()]).collect();
        for name in ["tap1 (guest side)", "tap1 (fabric side)"] {
            writer.interface(name, "a port", 1500).expect("written");
        }
        let time = |at: usize| Duration::new(1_700_000_000 + at as u64, 123_456_789);
        for (at, frame) in frames.iter().enumerate() {
            let interface = at as u32 % 2;
            let way = if interface == 0 { Way::In } else { Way::Out };
            let packet = Written { interface, time: time(at), way, frame_bytes: 1000, frame };
            writer.packet(packet).expect("written");
        }
        let statistics = Statistics { received: 5, lost: 1 };
        writer.statistics(1, time(9), statistics).expect("written");
        writer.flush().expect("written");
        let mut capture = Capture::open(&file[..]).expect("a capture");
        let mut packet = Packet::default();
        for (at, frame) in frames.iter().enumerate() {
            assert!(capture.next(&mut packet).expect("a packet"));
            assert_eq!(u128::from(packet.time_ns), time(at).as_nanos());
            assert_eq!((packet.interface, packet.frame_bytes), (at % 2, 1000));
            assert_eq!(&packet.frame, frame);
        }
        assert!(!capture.next(&mut packet).expect("the end"));
        let names: Vec<&str> = capture.interfaces().iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["tap1 (guest side)", "tap1 (fabric side)"]);
    }
}
