//! What congestion control a guest has, guessed from what one of its connections does.
//!
//! A [`Watch`] is told of a connection again and again, best at each acknowledgement, and cuts it into round
//! trips and congestion epochs. Each epoch has a vote: what a reduction kept of the window, and how the window
//! grew until the next. A connection of which too little was seen, or whose signs disagree, is
//! [`Class::Unknown`]; so is one that fills the window that it is shown, for then somebody else's law is seen.
//!
//! No I/O, no clock, no BPF: the same looks give the same guess.

mod cubic;
mod dips;
mod epochs;
mod filling;
mod guess;
mod judge;
mod look;
mod median;
mod rounds;
mod steady;
mod votes;
mod watch;

pub use guess::{Class, Guess};
pub use look::{Look, rtt_between};
pub use watch::Watch;
