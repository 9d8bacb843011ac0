//! What the commands `vcc`, `vcc-lab` and `vcc-guest` have in common.

pub mod generate;
mod markup;
mod open_files;
mod operator;
pub mod output;
pub mod seconds;
pub mod signals;
pub mod table;
pub mod treatment;
mod underlay_file;
pub mod usage;
mod version;

pub use open_files::allow_most as allow_most_open_files;
pub use operator::{CANNOT_RUN_OPERATOR, operator};
pub use underlay_file::{read as read_underlay, use_here as use_underlay};
pub use version::version;
