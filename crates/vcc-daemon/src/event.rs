//! What the daemon's one deciding thread hears, from the threads that wait.

use std::sync::mpsc::Sender;

use crate::control::protocol::{Answer, Request};
use crate::links::LinkNews;

pub(crate) enum Event {
    Link(LinkNews),
    Reload,
    End,
    Asked {
        request: Request,
        answer: Sender<Answer>,
    },
    /// A thread that others rely on cannot go on.
    Lost(String),
}
