//! The driver domain in front of a live virtual machine.
//!
//! A [`Server`] is the network card of one guest: its virtual machine monitor connects by vhost-user
//! and shares the guest's memory, and one worker carries frames between the guest's rings and a
//! [`Wire`], such as a [`Tap`], through a [`vcc_domain::Port`]. Nothing blocks, and nothing that
//! guest or front end write makes it fail or work without bounds. The worker keeps no descriptor of
//! the guest's beyond a frame, so a process that begins anew continues at the used index.
//!
//! Beside the card, a channel may report to the guest's congestion control ([`Server::open_channel`]).
//!
//! A [`RelayServer`] carries frames between two wires instead: the detour in front of an existing
//! device.

mod answer;
mod card;
mod channel;
mod channel_state;
mod counts;
mod device;
mod dirty;
mod event;
mod features;
mod header;
mod ledger;
mod listener;
mod memory;
mod offload;
mod rarp;
mod record;
mod relay;
mod relay_server;
mod ring;
mod rings;
mod server;
mod session;
mod steering;
mod tap;
#[cfg(feature = "testing")]
pub mod testing;
mod transfer;
mod turns;
mod wake;
mod watch;
mod wire;

pub use answer::PolicyFile;
pub use card::Card;
pub use channel_state::ChannelState;
pub use counts::CardCounts;
pub use event::{Event, OnEvent};
pub use header::HEADER_BYTES;
pub use ledger::FileLedger;
pub use listener::Error;
pub use offload::Offload;
pub use relay_server::RelayServer;
pub use server::Server;
pub use tap::{Tap, TapError};
pub use wire::Wire;
