//! Messages in a stream of bytes, which may come in any pieces.

use std::marker::PhantomData;

use crate::bad::Bad;
use crate::fields::MESSAGE_BYTES;

/// A message of one direction.
pub trait Message: Sized {
    fn to_bytes(&self) -> [u8; MESSAGE_BYTES];

    /// # Errors
    /// It is no message of this direction: the first field that is wrong.
    fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> Result<Self, Bad>;
}

/// Splits what is read into messages.
#[derive(Debug)]
pub struct Stream<M> {
    pending: Vec<u8>,
    of: PhantomData<M>,
}

impl<M> Default for Stream<M> {
    fn default() -> Self {
        Stream { pending: Vec::new(), of: PhantomData }
    }
}

impl<M: Message> Stream<M> {
    /// Takes bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole message.
    ///
    /// # Errors
    /// It is none. It stays the next.
    pub fn take(&mut self) -> Result<Option<M>, Bad> {
        let Some(first) = self.pending.first_chunk::<MESSAGE_BYTES>() else { return Ok(None) };
        let message = M::from_bytes(first)?;
        self.pending.drain(..MESSAGE_BYTES);
        Ok(Some(message))
    }

    /// The next whole message at any place, for a reader that begins in the middle of a stream. All
    /// before it is discarded.
    pub fn find(&mut self) -> Option<M> {
        let at = |place: &usize| {
            self.pending[*place..].first_chunk().is_some_and(|it| M::from_bytes(it).is_ok())
        };
        let places = (self.pending.len() + 1).saturating_sub(MESSAGE_BYTES);
        let place = (0..places).find(at).unwrap_or(places);
        self.pending.drain(..place);
        self.take().ok().flatten()
    }
}
