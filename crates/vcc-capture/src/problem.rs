//! What is wrong with a file, and where.

use thiserror::Error;

use crate::link::READ;

/// A problem at an offset from the file's start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {offset}: {what}")]
pub struct Problem {
    pub offset: u64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum What {
    #[error("cannot read on: {0}")]
    Unreadable(String),
    #[error("the file is empty")]
    Empty,
    #[error("the file ends within {0}: it was cut, or its writer still runs")]
    Truncated(&'static str),
    #[error(
        "the file begins with {0:#010x}, and is neither pcap nor pcapng: `editcap -F pcapng` converts \
         other formats"
    )]
    Magic(u32),
    #[error("the file is compressed: `{0} -dc FILE | vcc read -` reads it")]
    Compressed(&'static str),
    #[error("{what} cannot be {bytes} bytes long: the file is damaged from here")]
    Length { what: &'static str, bytes: u32 },
    #[error("a block of type {0:#x} contradicts its length: the file is damaged from here")]
    Damaged(u32),
    #[error("interface {interface} has link type {number}; {READ}")]
    Link { interface: String, number: u32 },
    #[error(
        "interface {interface} has times in units that vcc does not know (if_tsresol {raw:#04x})"
    )]
    Resolution { interface: String, raw: u8 },
    #[error("a packet of interface {0}, which the section has not described")]
    Interface(u32),
    #[error("more than {0} interfaces: the packets of further ones are left out")]
    Interfaces(usize),
    #[error(
        "packets of more than {0} places (interfaces, devices and tunnels): those of further ones are left out"
    )]
    Places(usize),
    #[error("a packet without a time (a simple packet block): packets without times are left out")]
    Untimed,
    #[error(
        "a packet in an obsolete block (type 2), which is not read: `editcap -F pcapng` converts it"
    )]
    Obsolete,
    #[error("the time runs back by {back_us} us: the packets are taken in the file's order")]
    Backwards { back_us: u64 },
}

impl What {
    pub(crate) fn at(self, offset: u64) -> Problem {
        Problem { offset, what: self }
    }

    /// Is nothing behind it readable?
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Self::Unreadable(_)
            | Self::Empty
            | Self::Truncated(_)
            | Self::Magic(_)
            | Self::Compressed(_)
            | Self::Length { .. }
            | Self::Damaged(_) => true,
            Self::Link { .. }
            | Self::Resolution { .. }
            | Self::Interface(_)
            | Self::Interfaces(_)
            | Self::Places(_)
            | Self::Untimed
            | Self::Obsolete
            | Self::Backwards { .. } => false,
        }
    }
}
