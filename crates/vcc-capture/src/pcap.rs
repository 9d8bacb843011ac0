//! The format pcap: a header, and packets of one link type.

use pcap_parser::nom::IResult;
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};

use crate::link::Link;
use crate::packet::{PACKET_MAX_BYTES, Raw};
use crate::problem::{Problem, What};
use crate::source::{Inside, Source};

/// Of the only interface.
pub(crate) const NAME: &str = "0";
const NS_PER_S: u64 = 1_000_000_000;
/// The upper bits have the length of a frame check sequence.
const LINK_MASK: u32 = 0xffff;
const RECORD_BYTES: usize = 16;
/// Of the kernels that Alexey Kuznetsov's patch was in.
const MODIFIED_RECORD_BYTES: usize = 24;
const CAPTURED_AT: usize = 8;

type Parse = fn(&[u8]) -> IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

pub(crate) struct Pcap {
    link: Link,
    ns_per_unit: u64,
    is_big_endian: bool,
    record_bytes: usize,
    parse: Parse,
}

/// The byte orders and units of the format, by the first bytes.
pub(crate) fn is_magic(magic: u32) -> bool {
    matches!(magic, 0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34 | 0xd4c3_b2a1 | 0x4d3c_b2a1)
}

impl Pcap {
    /// Reads the rest of the header behind `magic`.
    pub(crate) fn begin(magic: u32, source: &mut Source) -> Result<Self, Problem> {
        const LINK_AT: u64 = 20;
        let mut bytes = magic.to_le_bytes().to_vec();
        let rest = PcapHeader::new().size() - bytes.len();
        source.append_rest(rest, &mut bytes, Inside { what: "the header", offset: 0 })?;
        let (_, header) = parse_pcap_header(&bytes).map_err(|_| What::Magic(magic).at(0))?;
        let number = header.network.0 as u32 & LINK_MASK;
        let unknown = || What::Link { interface: NAME.to_owned(), number }.at(LINK_AT);
        let link = Link::from_number(number).ok_or_else(unknown)?;
        let parse: Parse = match (header.is_modified_format(), header.is_bigendian()) {
            (true, _) => parse_pcap_frame_modified,
            (false, true) => parse_pcap_frame_be,
            (false, false) => parse_pcap_frame,
        };
        Ok(Self {
            link,
            ns_per_unit: if header.is_nanosecond_precision() { 1 } else { 1000 },
            is_big_endian: header.is_bigendian(),
            record_bytes: match header.is_modified_format() {
                true => MODIFIED_RECORD_BYTES,
                false => RECORD_BYTES,
            },
            parse,
        })
    }

    /// The next packet; None at the end. `bytes` receives its record.
    pub(crate) fn next(
        &self,
        source: &mut Source,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Raw>, Problem> {
        let offset = source.offset();
        let inside = Inside { what: "a packet", offset };
        bytes.clear();
        if !source.append(self.record_bytes, bytes, inside)? {
            return Ok(None);
        }
        let captured = bytes[CAPTURED_AT..].first_chunk().copied().unwrap_or_default();
        let captured = match self.is_big_endian {
            true => u32::from_be_bytes(captured),
            false => u32::from_le_bytes(captured),
        };
        let length = What::Length { what: inside.what, bytes: captured };
        if captured > PACKET_MAX_BYTES {
            return Err(length.at(offset));
        }
        source.append_rest(captured as usize, bytes, inside)?;
        let (_, packet) = (self.parse)(bytes).map_err(|_| length.at(offset))?;
        Ok(Some(Raw {
            offset,
            time_ns: u64::from(packet.ts_sec) * NS_PER_S
                + u64::from(packet.ts_usec) * self.ns_per_unit,
            interface: 0,
            from_guest: None,
            link: self.link,
            original_bytes: packet.origlen,
            place: self.record_bytes..self.record_bytes + packet.data.len(),
        }))
    }
}
