//! vFlood's channel in the guest: reads what the host reports, and writes it where the congestion control
//! looks (guest/flood_channel.h).

mod device;
mod follower;
mod reports;

pub use device::Heard;
pub(crate) use device::{FollowError, follow};
#[cfg(test)]
pub(crate) use reports::Words;
pub(crate) use reports::{FLOWS, LEASES, Reports};
