//! Numbers with their units, as operators write them.

mod decimal;
pub mod duration;
pub mod fraction;
pub mod rate;
pub mod size;
