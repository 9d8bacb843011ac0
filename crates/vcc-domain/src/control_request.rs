//! Requests of another process to a port, as bytes.

use vcc_engine::sys;

use crate::bytes::{self, BadBytes, HEAD};
use vcc_engine::FlowKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A [`crate::Status`], with all flows or this one.
    Status(Option<FlowKey>),
    /// To read its policy again; the answer is [`Reloaded`].
    Reload,
    /// To record all flows or this one, as long as the connection lasts. The answer is an [`Accepted`],
    /// and [`crate::Recorded`] again and again.
    Record(Option<FlowKey>),
}

const STATUS: u32 = 1;
const RELOAD: u32 = 2;
const RECORD: u32 = 3;

impl Ask {
    pub const BYTES: usize = size_of_val(&HEAD) + size_of::<u32>() + size_of::<sys::vcc_key>();

    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, flow) = match self {
            Self::Status(flow) => (STATUS, *flow),
            Self::Reload => (RELOAD, None),
            Self::Record(flow) => (RECORD, *flow),
        };
        let mut bytes = bytes::begin();
        bytes::write(&kind, &mut bytes);
        bytes::write(&flow.map_or_else(sys::vcc_key::default, |it| *it.as_raw()), &mut bytes);
        bytes
    }

    /// # Errors
    /// Another version of vcc wrote them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let rest = &mut &*bytes;
        bytes::read_head(rest)?;
        let kind = bytes::read::<u32>(rest)?;
        let flow = FlowKey::from_raw(bytes::read(rest)?);
        let flow = Some(flow).filter(|it| *it != FlowKey::from_raw(sys::vcc_key::default()));
        let ask = match kind {
            STATUS => Self::Status(flow),
            RELOAD => Self::Reload,
            RECORD => Self::Record(flow),
            _ => return Err(BadBytes),
        };
        bytes::at_end(rest, ask)
    }
}

/// What is in force after a reload, or why the policy before it stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded(pub Result<String, String>);

impl Reloaded {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = bytes::begin();
        bytes::write(&u32::from(self.0.is_ok()), &mut bytes);
        let (Ok(text) | Err(text)) = &self.0;
        bytes::write_text(text, &mut bytes);
        bytes
    }

    /// # Errors
    /// Another version of vcc wrote them, or they are not all there.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, BadBytes> {
        let rest = &mut bytes;
        bytes::read_head(rest)?;
        let is_ok = bytes::read::<u32>(rest)? != 0;
        let text = bytes::read_text(rest)?;
        bytes::at_end(rest, Self(if is_ok { Ok(text) } else { Err(text) }))
    }
}

/// Whether a recording begins: there is one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted(pub bool);

impl Accepted {
    pub const BYTES: usize = size_of_val(&HEAD) + size_of::<u32>();

    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = bytes::begin();
        bytes::write(&u32::from(self.0), &mut bytes);
        bytes
    }

    /// # Errors
    /// Another version of vcc wrote them.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, BadBytes> {
        let rest = &mut bytes;
        bytes::read_head(rest)?;
        let accepted = Self(bytes::read::<u32>(rest)? != 0);
        bytes::at_end(rest, accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Talk;

    #[test]
    fn what_is_asked_is_read_and_nothing_else() {
        let key = Talk::v4().key();
        let asks = [Ask::Status(None), Ask::Status(Some(key)), Ask::Reload];
        for ask in asks.into_iter().chain([None, Some(key)].map(Ask::Record)) {
            let bytes = ask.to_bytes();
            assert_eq!((bytes.len(), Ask::from_bytes(&bytes)), (Ask::BYTES, Ok(ask)));
            assert_eq!(Ask::from_bytes(&bytes[1..]), Err(BadBytes));
            assert_eq!(Ask::from_bytes(&[&bytes[..], &[0]].concat()), Err(BadBytes));
        }
        for answer in [Ok("obeys".to_owned()), Err("no port".to_owned())].map(Reloaded) {
            let bytes = answer.to_bytes();
            assert_eq!(Reloaded::from_bytes(&bytes), Ok(answer));
            assert_eq!(Reloaded::from_bytes(&bytes[..bytes.len() - 1]), Err(BadBytes));
        }
        for answer in [true, false].map(Accepted) {
            let bytes = answer.to_bytes();
            assert_eq!((bytes.len(), Accepted::from_bytes(&bytes)), (Accepted::BYTES, Ok(answer)));
            assert_eq!(Accepted::from_bytes(&bytes[1..]), Err(BadBytes));
        }
    }
}
