//! Numbers with their units, as people write them.

mod beta;
mod bytes_per_ms;
mod decimal;
pub mod duration;
pub mod rate;
pub mod size;

pub use beta::Beta;
pub use bytes_per_ms::BytesPerMs;
