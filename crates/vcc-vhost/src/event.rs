//! What a person is told.

use std::{fmt, io};

/// What happened to the card. Its text is a line for the journal.
#[derive(Debug)]
pub enum Event {
    /// A front end has connected.
    Connected,
    /// It has gone.
    Gone,
    /// The connection was ended because of what the front end sent.
    Refused(String),
    /// The guest's driver does not speak virtio 1.
    Legacy,
    RingStopped {
        ring: usize,
        error: virtio_queue::Error,
    },
    OffloadFailed(io::Error),
    /// Frames are dropped; told once for each reason and virtual machine.
    Dropped(&'static str),
}

/// Takes events.
pub type Tell = Box<dyn FnMut(Event) + Send + Sync>;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Connected => f.write_str("the virtual machine has connected"),
            Event::Gone => f.write_str("the virtual machine has gone; waiting for it to return"),
            Event::Refused(why) => {
                write!(f, "ended the connection, for what came over the socket: {why}")
            }
            Event::Legacy => f.write_str(
                "the guest's driver does not speak virtio 1, so its card stays off: configure it with \
                 disable-legacy=on, or use a newer driver",
            ),
            Event::RingStopped { ring, error } => write!(
                f,
                "stopped ring {ring} until the guest's driver resets the card, because the guest has \
                 broken it: {error}"
            ),
            Event::Dropped(why) => write!(f, "dropped a frame {why}; more are not reported"),
            Event::OffloadFailed(error) => {
                write!(f, "cannot tell the tap what the guest takes: {error}")
            }
        }
    }
}
