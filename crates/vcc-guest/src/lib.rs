//! What runs in guests: the congestion controls of `guest/` as BPF struct_ops, for the lab's guests and for
//! tenants' own, and what the command `vcc-guest` does with that of vFlood.

mod channel;
mod connections;
mod default;
mod error;
mod flood;
mod kernel;
mod list;
mod module;
mod pins;
mod registration;

pub use channel::Heard;
pub use connections::Connections;
pub use default::Restored;
pub use error::Error;
pub use flood::{ChannelState, Flood, Form, Installed, Provider, Removed, Status, Unregistered};
pub use kernel::available;
pub use list::{CongestionControl, find, names};

pub type Result<T> = std::result::Result<T, Error>;
