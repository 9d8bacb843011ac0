//! What underlays at ports in shadow mode would change, of connections that are read repeatedly:
//! what is in flight, against the window that the underlay would have shown.

mod sums;
mod tally;

pub use sums::{Sums, percent};
pub use tally::{Tally, Watch};
