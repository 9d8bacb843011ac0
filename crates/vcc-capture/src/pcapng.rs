//! The format pcapng: sections of blocks, in either byte order, with packets of several interfaces.

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    BOM_MAGIC, Block, EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, SHB_MAGIC,
    parse_block_be, parse_block_le,
};

use crate::link::Link;
use crate::packet::{Interface, PACKET_MAX_BYTES, Raw};
use crate::port_side::PortSide;
use crate::problem::{Problem, What};
use crate::resolution::Resolution;
use crate::source::{Inside, Source};
use crate::writer::{EPB_FLAGS, WAY_MASK, Way};

/// As much as other programs accept.
const BLOCK_MAX_BYTES: u32 = 16 << 20;
/// Type and length in front, and the length again behind.
const BLOCK_LEAST_BYTES: u32 = 12;
const SECTION_LEAST_BYTES: u32 = 28;
/// Offsets in a block.
const LENGTH_AT: usize = 4;
const ORDER_AT: usize = 8;
const PACKET_AT: usize = 28;
const OBSOLETE_PACKET: u32 = 2;
/// A name is printed in each row.
const NAME_MAX_CHARS: usize = 64;
const INTERFACES_MAX: usize = 1024;
/// Problems that leave the rest of a file readable are reported once each, and so many.
const REPORTED_MAX: usize = 64;

pub(crate) struct Pcapng {
    /// The beginning of the first block, which was read to recognise the format.
    begun: Vec<u8>,
    is_big_endian: bool,
    /// The interfaces of the section, by their numbers; None for one that is left out.
    section: Vec<Option<Described>>,
    /// The name in the file, and the link, of each interface in the list of the file.
    known: Vec<(String, Link)>,
    reported: Vec<What>,
}

#[derive(Clone, Copy)]
struct Described {
    /// In the list of the file.
    interface: usize,
    /// It is a side of a port (`vcc record`).
    is_of_port: bool,
    link: Link,
    resolution: Resolution,
}

/// A block, or what it is good for.
enum Found {
    Packet(Raw),
    Nothing,
}

impl Pcapng {
    pub(crate) fn begin(begun: Vec<u8>) -> Self {
        let (section, known, reported) = Default::default();
        Self { begun, is_big_endian: false, section, known, reported }
    }

    /// The next packet; None at the end. `bytes` receives its block.
    pub(crate) fn next(
        &mut self,
        source: &mut Source,
        bytes: &mut Vec<u8>,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<Raw>, Problem> {
        loop {
            let Some(offset) = self.read_block(source, bytes)? else { return Ok(None) };
            match self.judge(bytes, interfaces) {
                Ok(Found::Packet(raw)) => return Ok(Some(Raw { offset, ..raw })),
                Ok(Found::Nothing) => {}
                Err(what) => {
                    let is_new = !self.reported.contains(&what);
                    if what.is_last() || is_new && self.reported.len() < REPORTED_MAX {
                        self.reported.push(what.clone());
                        return Err(what.at(offset));
                    }
                }
            }
        }
    }

    /// Reads a whole block; None at the end. Returns its offset.
    fn read_block(
        &mut self,
        source: &mut Source,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<u64>, Problem> {
        let offset = source.offset() - self.begun.len() as u64;
        let inside = Inside { what: "a block", offset };
        bytes.clear();
        bytes.append(&mut self.begun);
        if bytes.is_empty() {
            if !source.append(ORDER_AT, bytes, inside)? {
                return Ok(None);
            }
        } else {
            source.append_rest(ORDER_AT - bytes.len(), bytes, inside)?;
        }
        let kind = self.number(bytes, 0);
        let mut least_bytes = BLOCK_LEAST_BYTES;
        if kind == SHB_MAGIC {
            source.append_rest(4, bytes, inside)?;
            self.is_big_endian = false;
            let order = self.number(bytes, ORDER_AT);
            self.is_big_endian = order == BOM_MAGIC.swap_bytes();
            if order != BOM_MAGIC && !self.is_big_endian {
                return Err(What::Damaged(kind).at(offset));
            }
            least_bytes = SECTION_LEAST_BYTES;
        }
        let length = self.number(bytes, LENGTH_AT);
        if length % 4 != 0 || !(least_bytes..=BLOCK_MAX_BYTES).contains(&length) {
            return Err(What::Length { what: "a block", bytes: length }.at(offset));
        }
        source.append_rest(length as usize - bytes.len(), bytes, inside)?;
        Ok(Some(offset))
    }

    /// In the section's byte order.
    fn number(&self, block: &[u8], at: usize) -> u32 {
        let bytes = block[at..].first_chunk().copied().unwrap_or_default();
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn judge(&mut self, bytes: &[u8], interfaces: &mut Vec<Interface>) -> Result<Found, What> {
        let parse = if self.is_big_endian { parse_block_be } else { parse_block_le };
        // A block is whole: one whose parts need more bytes contradicts its length, too.
        let (_, block) = parse(bytes).map_err(|_| What::Damaged(self.number(bytes, 0)))?;
        match block {
            Block::SectionHeader(_) => self.section.clear(),
            Block::InterfaceDescription(block) => {
                if self.section.len() >= INTERFACES_MAX {
                    return Err(What::Interfaces(INTERFACES_MAX));
                }
                let described = self.describe(&block, interfaces);
                self.section.push(described.as_ref().ok().copied());
                described?;
            }
            Block::EnhancedPacket(block) => return self.packet(&block),
            Block::SimplePacket(_) => return Err(What::Untimed),
            Block::Unknown(block) if block.block_type == OBSOLETE_PACKET => {
                return Err(What::Obsolete);
            }
            _ => {}
        }
        Ok(Found::Nothing)
    }

    /// An interface that an earlier section has under the same name is the same. Two of one section are
    /// two devices, perhaps of different network namespaces; but the sides of ports are found by their
    /// names, which repeat where recordings were joined.
    fn describe(
        &mut self,
        block: &InterfaceDescriptionBlock,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Described, What> {
        let number = self.section.len().to_string();
        let name = block.if_name().and_then(Result::ok).filter(|name| !name.is_empty());
        let interface: String = name.unwrap_or(&number).chars().take(NAME_MAX_CHARS).collect();
        let link_number = block.linktype.0 as u32;
        let link = Link::from_number(link_number)
            .ok_or_else(|| What::Link { interface: interface.clone(), number: link_number })?;
        let raw = block.if_tsresol;
        let resolution = Resolution::new(raw, self.offset_s(block))
            .ok_or_else(|| What::Resolution { interface: interface.clone(), raw })?;
        let is_of_port = PortSide::from_name(&interface).is_some();
        let is_here =
            |index| self.section.iter().flatten().any(|described| described.interface == index);
        let known = self.known.iter().enumerate().position(|(index, (name, of))| {
            *name == interface && *of == link && (is_of_port || !is_here(index))
        });
        let index = match known {
            Some(index) => index,
            None if interfaces.len() >= INTERFACES_MAX => {
                return Err(What::Interfaces(INTERFACES_MAX));
            }
            None => {
                let repeats = self.known.iter().any(|(name, _)| *name == interface);
                // Otherwise the rows of both would look the same.
                let name =
                    if repeats { format!("{interface} ({number})") } else { interface.clone() };
                interfaces.push(Interface { name });
                self.known.push((interface, link));
                interfaces.len() - 1
            }
        };
        Ok(Described { interface: index, is_of_port, link, resolution })
    }

    /// The library reads if_tsoffset as little-endian in sections of either byte order.
    fn offset_s(&self, block: &InterfaceDescriptionBlock) -> i64 {
        let option = block.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
        let bytes = option.and_then(|option| option.value.first_chunk().copied());
        let bytes = bytes.unwrap_or_default();
        if self.is_big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) }
    }

    /// Whether the packet came in at its interface; None if the file does not say it.
    fn comes_in(&self, block: &EnhancedPacketBlock) -> Option<bool> {
        let option = block.options.iter().find(|option| option.code == EPB_FLAGS)?;
        option.value.first_chunk::<4>()?;
        match self.number(&option.value, 0) & WAY_MASK {
            way if way == Way::In as u32 => Some(true),
            way if way == Way::Out as u32 => Some(false),
            _ => None,
        }
    }

    fn packet(&self, block: &EnhancedPacketBlock) -> Result<Found, What> {
        let described = self.section.get(block.if_id as usize);
        let Some(described) = described.ok_or(What::Interface(block.if_id))? else {
            return Ok(Found::Nothing);
        };
        if block.caplen > PACKET_MAX_BYTES {
            return Err(What::Length { what: "a packet", bytes: block.caplen });
        }
        let units = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
        Ok(Found::Packet(Raw {
            offset: 0,
            time_ns: described.resolution.ns(units),
            interface: described.interface,
            from_guest: described.is_of_port.then(|| self.comes_in(block)).flatten(),
            link: described.link,
            original_bytes: block.origlen,
            place: PACKET_AT..PACKET_AT + block.packet_data().len(),
        }))
    }
}
