//! Traffic: flows between guests, all in one thread, with one common window.

mod flow;
mod generator;
mod route_cwnd;
mod senders;
pub mod socket;

pub use generator::run;
pub use senders::{SenderView, Senders};

use crate::base::error::Error;
use std::io;

/// In the lab's own words.
fn of_flow(error: vcc_traffic::Error) -> Error {
    use vcc_traffic::Error as Of;
    match error {
        Of::System { action, source } => Error::System { action, source },
        Of::Flow { flow, problem } => Error::Traffic { flow, problem },
        Of::Broken { flow, end, source } => {
            Error::Traffic { flow, problem: format!("{end}'s socket failed: {source}") }
        }
        Of::Plan(_) => {
            let action = "have a guest carry out its plan".into();
            Error::System { action, source: io::Error::other(error) }
        }
    }
}
