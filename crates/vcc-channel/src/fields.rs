//! The layout of all messages, little-endian.

use crate::bad::{Bad, Field};
use crate::bytes::part;
use crate::flow::Flow;
use crate::{LEASE_MAX_MS, VERSION};

/// Each message has this size.
pub const MESSAGE_BYTES: usize = 64;

/// "vccF"
const MAGIC: u32 = u32::from_le_bytes(*b"vccF");

/// The fields of a message. Those that a kind does not have are 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields {
    /// Of a Hello, the highest that the sender knows; the form of a Hello is the same in all.
    pub version: u16,
    pub kind: u16,
    pub flow: Flow,
    pub grant_bytes: u32,
    pub lease_ms: u32,
    pub reserved: [u8; 12],
}

impl Fields {
    pub fn of_kind(kind: u16) -> Self {
        Fields { version: VERSION, kind, ..Self::default() }
    }

    pub fn about(kind: u16, flow: &Flow) -> Self {
        Fields { flow: *flow, ..Self::of_kind(kind) }
    }

    pub fn to_bytes(self) -> [u8; MESSAGE_BYTES] {
        let Fields { version, kind, flow, grant_bytes, lease_ms, reserved } = self;
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&version.to_le_bytes());
        bytes[6..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..44].copy_from_slice(&flow.to_bytes());
        bytes[44..48].copy_from_slice(&grant_bytes.to_le_bytes());
        bytes[48..52].copy_from_slice(&lease_ms.to_le_bytes());
        bytes[52..].copy_from_slice(&reserved);
        bytes
    }

    /// # Errors
    /// It has not the magic of a message.
    pub fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> Result<Self, Bad> {
        let magic = u32::from_le_bytes(part(bytes, 0));
        if magic != MAGIC {
            return Err(Bad::new(Field::Magic, magic));
        }
        Ok(Fields {
            version: u16::from_le_bytes(part(bytes, 4)),
            kind: u16::from_le_bytes(part(bytes, 6)),
            flow: Flow::from_bytes(&part(bytes, 8)),
            grant_bytes: u32::from_le_bytes(part(bytes, 44)),
            lease_ms: u32::from_le_bytes(part(bytes, 48)),
            reserved: part(bytes, 52),
        })
    }

    /// Of a Hello.
    pub fn announced_version(&self) -> Result<u16, Bad> {
        match self.version {
            0 => Err(Bad::new(Field::Version, 0u16)),
            version => Ok(version),
        }
    }

    /// Of any other message: that on which both have agreed.
    pub fn check_version(&self) -> Result<(), Bad> {
        match self.version {
            VERSION => Ok(()),
            version => Err(Bad::new(Field::Version, version)),
        }
    }

    pub fn check_no_flow(&self) -> Result<(), Bad> {
        self.check_zero(Field::Flow, &self.flow.to_bytes())
    }

    pub fn check_no_grant(&self) -> Result<(), Bad> {
        match self.grant_bytes {
            0 => Ok(()),
            bytes => Err(Bad::new(Field::Grant, bytes)),
        }
    }

    pub fn check_no_lease(&self) -> Result<(), Bad> {
        match self.lease_ms {
            0 => Ok(()),
            ms => Err(Bad::new(Field::Lease, ms)),
        }
    }

    pub fn checked_lease_ms(&self) -> Result<u32, Bad> {
        match self.lease_ms {
            ms @ 1..=LEASE_MAX_MS => Ok(ms),
            ms => Err(Bad::new(Field::Lease, ms)),
        }
    }

    pub fn check_reserved(&self) -> Result<(), Bad> {
        self.check_zero(Field::Reserved, &self.reserved)
    }

    fn check_zero(&self, field: Field, bytes: &[u8]) -> Result<(), Bad> {
        match bytes.iter().find(|byte| **byte != 0) {
            None => Ok(()),
            Some(byte) => Err(Bad::new(field, *byte)),
        }
    }
}
