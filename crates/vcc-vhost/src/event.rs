//! Events that are reported to the operator.

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
    /// The guest leaves this host, with what the card has of its connections.
    HandsOver {
        connections: usize,
        bytes: usize,
    },
    /// It stays: its rings have started here again.
    Stays,
    /// It has left.
    Left {
        connections: usize,
    },
    /// The guest comes from another host, likewise.
    TakesOver {
        connections: usize,
        bytes: usize,
    },
    /// The card's state cannot be handed over or taken over.
    StateRefused(String),
    /// The guest has left without the card's state.
    LeftBehind,
    /// Frames are dropped; reported once for each reason and virtual machine.
    Dropped(&'static str),
    /// The guest's congestion control follows the channel.
    ChannelUp,
    /// It does no more.
    ChannelDown,
    /// The channel was closed because of what came over it.
    ChannelRefused(vcc_channel::Bad),
    /// So many more events happened than are reported.
    LeftOut(u64),
}

/// Takes events.
pub type OnEvent = Box<dyn FnMut(Event) + Send + Sync>;

const NS_PER_MINUTE: u64 = 60_000_000_000;
/// Front ends decide how often something happens.
const PER_MINUTE: u64 = 200;

/// Reports to the operator as much as he may want to read.
pub(crate) struct Journal {
    on_event: OnEvent,
    since_ns: u64,
    happened: u64,
}

impl Journal {
    pub(crate) fn new(on_event: OnEvent) -> Self {
        Journal { on_event, since_ns: 0, happened: 0 }
    }

    pub(crate) fn report(&mut self, now_ns: u64, event: Event) {
        if now_ns - self.since_ns >= NS_PER_MINUTE {
            let happened = std::mem::take(&mut self.happened);
            self.since_ns = now_ns;
            if happened > PER_MINUTE {
                (self.on_event)(Event::LeftOut(happened - PER_MINUTE));
            }
        }
        self.happened += 1;
        if self.happened <= PER_MINUTE {
            (self.on_event)(event);
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Connected => f.write_str("the virtual machine has connected"),
            Event::Gone => f.write_str("the virtual machine has gone; waiting for it to return"),
            Event::Refused(why) => write!(
                f,
                "closed the vhost-user connection, because the front end sent {why}; see the log of the \
                 virtual machine monitor"
            ),
            Event::Legacy => f.write_str(
                "the guest's driver does not speak virtio 1, so its card stays off: configure it with \
                 disable-legacy=on, or use a newer driver",
            ),
            Event::RingStopped { ring, error } => write!(
                f,
                "stopped ring {ring} until the guest's driver resets the card, because the guest has \
                 written an invalid one: {error}"
            ),
            Event::Dropped(why) => {
                write!(f, "dropped a frame {why}; further ones are counted, not logged")
            }
            Event::ChannelUp => f.write_str("the guest's congestion control follows the channel"),
            Event::ChannelDown => f.write_str(
                "the guest's congestion control does not follow the channel any more; its window is NewReno's",
            ),
            Event::ChannelRefused(bad) => {
                write!(f, "closed the channel, because the guest sent {bad}")
            }
            Event::LeftOut(lines) => write!(f, "left out {lines} lines like the ones before"),
            Event::HandsOver { connections, bytes } => write!(
                f,
                "the guest moves: hands {connections} of its connections over, in {bytes} bytes"
            ),
            Event::Stays => f.write_str("the guest stays here: serving its connections again"),
            Event::Left { connections } => {
                write!(f, "the guest has left with {connections} of its connections")
            }
            Event::TakesOver { connections, bytes } => write!(
                f,
                "the guest comes from another host: takes {connections} of its connections over, in \
                 {bytes} bytes"
            ),
            Event::StateRefused(why) => {
                write!(f, "the guest cannot move with its connections, and stays: {why}")
            }
            Event::LeftBehind => f.write_str(
                "the guest has left without its connections: its virtual machine monitor does not \
                 move them (QEMU does from 10.0 on); ended those whose promises are not kept",
            ),
            Event::OffloadFailed(error) => {
                write!(f, "cannot set the tap to the guest's offloads: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn lines_are_limited_and_the_rest_is_counted() {
        let (sender, reported) = channel();
        let mut journal = Journal::new(Box::new(move |event| drop(sender.send(event.to_string()))));
        for _ in 0..PER_MINUTE + 5 {
            journal.report(7 * NS_PER_MINUTE, Event::Connected);
        }
        assert_eq!(reported.try_iter().count() as u64, PER_MINUTE);
        for _ in 0..2 {
            journal.report(8 * NS_PER_MINUTE, Event::Connected);
        }
        let lines: Vec<String> = reported.try_iter().collect();
        assert_eq!(lines[0], "left out 5 lines like the ones before");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}
