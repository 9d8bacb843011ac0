//! Messages from the guest to the host.

use crate::bad::{Bad, Field};
use crate::fields::{Fields, MESSAGE_BYTES};
use crate::stream::Message;

const HELLO: u16 = 0x101;
const ALIVE: u16 = 0x102;

/// A message from the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromGuest {
    /// The guest asks for reports. Names the highest version that it knows.
    Hello { version: u16 },
    /// The answer to [`FromHost::Online`](crate::FromHost::Online) and
    /// [`FromHost::Offline`](crate::FromHost::Offline).
    Alive,
}

impl Message for FromGuest {
    fn to_bytes(&self) -> [u8; MESSAGE_BYTES] {
        let fields = match self {
            Self::Hello { version } => Fields { version: *version, ..Fields::of_kind(HELLO) },
            Self::Alive => Fields::of_kind(ALIVE),
        };
        fields.to_bytes()
    }

    fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> Result<Self, Bad> {
        let fields = Fields::from_bytes(bytes)?;
        let message = match fields.kind {
            HELLO => Self::Hello { version: fields.announced_version()? },
            ALIVE => {
                fields.check_version()?;
                Self::Alive
            }
            kind => return Err(Bad::new(Field::Kind, kind)),
        };
        fields.check_no_flow()?;
        fields.check_no_grant()?;
        fields.check_no_lease()?;
        fields.check_reserved()?;
        Ok(message)
    }
}
