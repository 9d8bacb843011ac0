//! Guesses a guest's congestion control from the behaviour of its connections.
//!
//! A [`Watch`] observes a connection repeatedly, ideally at each acknowledgement, and divides it
//! into round trips and congestion epochs. Each epoch casts a vote by the fraction of the window
//! that its reduction kept, and by the growth until the next. A connection with too few or
//! contradictory signs is [`Class::Unknown`]; so is one that fills the window that it is shown,
//! because its behaviour is then that of the window.
//!
//! No I/O, no clock, no BPF: the same observations give the same guess.

mod cubic;
mod dips;
mod epochs;
mod filling;
mod guess;
mod judge;
mod median;
mod observation;
mod rounds;
mod steady;
mod votes;
mod watch;

pub use guess::{Class, Guess};
pub use observation::{Observation, rtt_between};
pub use watch::Watch;
