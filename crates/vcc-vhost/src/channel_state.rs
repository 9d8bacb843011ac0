//! The state of a card's channel, which others see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What others see of a card's channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelState {
    /// A guest follows it.
    pub is_up: bool,
    /// Messages of guests that were none.
    pub malformed: u64,
}

/// The same, as its thread writes it.
#[derive(Default)]
pub(crate) struct Shared {
    pub is_up: AtomicBool,
    pub malformed: AtomicU64,
}

impl Shared {
    pub fn state(&self) -> ChannelState {
        ChannelState {
            is_up: self.is_up.load(Ordering::Relaxed),
            malformed: self.malformed.load(Ordering::Relaxed),
        }
    }
}

/// Of a card; empty without a channel.
pub(crate) type Place = Arc<OnceLock<Arc<Shared>>>;
