//! Messages from the host to the guest.

use crate::bad::{Bad, Field};
use crate::fields::{Fields, MESSAGE_BYTES};
use crate::flow::Flow;
use crate::stream::Message;

const HELLO: u16 = 1;
const ONLINE: u16 = 2;
const OFFLINE: u16 = 3;
const FLOW_ONLINE: u16 = 4;
const FLOW_OFFLINE: u16 = 5;
const FLOW_REPAIRED: u16 = 6;

/// A message from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromHost {
    /// The host begins to report; what it reported before is void. Names the highest version that it knows.
    Hello { version: u16, lease_ms: u32 },
    /// The host holds the connections that begin from now on, unless a message about one says otherwise.
    /// That ends after `lease_ms` without another such message.
    Online { lease_ms: u32 },
    /// The host holds no connection; what it reported of any is void.
    Offline,
    /// The host holds the connection, and has room for a window of so many bytes.
    FlowOnline { flow: Flow, grant_bytes: u32 },
    /// The host does not hold the connection.
    FlowOffline { flow: Flow },
    /// The host has repaired a loss of the connection.
    FlowRepaired { flow: Flow },
}

impl Message for FromHost {
    fn to_bytes(&self) -> [u8; MESSAGE_BYTES] {
        let fields = match self {
            Self::Hello { version, lease_ms } => {
                Fields { version: *version, lease_ms: *lease_ms, ..Fields::of_kind(HELLO) }
            }
            Self::Online { lease_ms } => Fields { lease_ms: *lease_ms, ..Fields::of_kind(ONLINE) },
            Self::Offline => Fields::of_kind(OFFLINE),
            Self::FlowOnline { flow, grant_bytes } => {
                Fields { grant_bytes: *grant_bytes, ..Fields::about(FLOW_ONLINE, flow) }
            }
            Self::FlowOffline { flow } => Fields::about(FLOW_OFFLINE, flow),
            Self::FlowRepaired { flow } => Fields::about(FLOW_REPAIRED, flow),
        };
        fields.to_bytes()
    }

    fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> Result<Self, Bad> {
        let fields = Fields::from_bytes(bytes)?;
        let message = match fields.kind {
            HELLO => Self::Hello {
                version: fields.announced_version()?,
                lease_ms: fields.checked_lease_ms()?,
            },
            ONLINE => Self::Online { lease_ms: fields.checked_lease_ms()? },
            OFFLINE => Self::Offline,
            FLOW_ONLINE => Self::FlowOnline { flow: fields.flow, grant_bytes: fields.grant_bytes },
            FLOW_OFFLINE => Self::FlowOffline { flow: fields.flow },
            FLOW_REPAIRED => Self::FlowRepaired { flow: fields.flow },
            kind => return Err(Bad::new(Field::Kind, kind)),
        };
        if fields.kind != HELLO {
            fields.check_version()?;
        }
        if fields.kind < FLOW_ONLINE {
            fields.check_no_flow()?;
        }
        if fields.kind != FLOW_ONLINE {
            fields.check_no_grant()?;
        }
        if fields.kind > ONLINE {
            fields.check_no_lease()?;
        }
        fields.check_reserved()?;
        Ok(message)
    }
}
