//! The sources that wake the worker.

use std::io;
use std::os::fd::RawFd;

use vmm_sys_util::epoll::{ControlOperation, Epoll, EpollEvent, EventSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A kick, which is reported once and never read.
    Ring(usize),
    Listener,
    FrontEnd,
    /// The pipe for the card's state.
    State,
    /// A frame waits; reported once until the wire is empty, for the guest may have no room.
    Wire,
    /// There is no wire any more.
    WireGone,
    Timer,
    Stop,
    /// The device that is served has gone.
    Gone,
}

/// Numbers of sources that are no rings.
const NAMED: [Source; 7] = [
    Source::Listener,
    Source::FrontEnd,
    Source::State,
    Source::Wire,
    Source::Timer,
    Source::Stop,
    Source::Gone,
];
const RINGS_FROM: usize = NAMED.len();
const EVENTS_MAX: usize = 32;

pub(crate) struct Watch {
    epoll: Epoll,
}

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Watch { epoll: Epoll::new()? })
    }

    pub(crate) fn add(&self, fd: RawFd, source: Source) -> io::Result<()> {
        self.add_for(EventSet::IN, fd, source)
    }

    /// Wakes us when more can be written there.
    pub(crate) fn add_written(&self, fd: RawFd, source: Source) -> io::Result<()> {
        self.add_for(EventSet::OUT, fd, source)
    }

    fn add_for(&self, events: EventSet, fd: RawFd, source: Source) -> io::Result<()> {
        let number = match source {
            Source::Ring(ring) => RINGS_FROM + ring,
            named => NAMED.iter().position(|other| *other == named).expect("it has a number"),
        };
        let edge = match source {
            Source::Wire | Source::Ring(_) => EventSet::EDGE_TRIGGERED,
            _ => EventSet::empty(),
        };
        let event = EpollEvent::new(events | edge, number as u64);
        self.epoll.ctl(ControlOperation::Add, fd, event)
    }

    pub(crate) fn remove(&self, fd: RawFd) {
        // It fails only if it is not watched.
        let _ = self.epoll.ctl(ControlOperation::Delete, fd, EpollEvent::default());
    }

    /// The sources that wake us. `is_busy`: only those that are ready by now.
    pub(crate) fn wait(&self, is_busy: bool) -> io::Result<Vec<Source>> {
        let mut events = [EpollEvent::default(); EVENTS_MAX];
        let patience_ms = if is_busy { 0 } else { -1 };
        let count = match self.epoll.wait(patience_ms, &mut events) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            result => result?,
        };
        let source = |event: &EpollEvent| {
            let number = event.data() as usize;
            let source = NAMED.get(number).copied();
            match source.unwrap_or_else(|| Source::Ring(number - RINGS_FROM)) {
                Source::Wire if event.events() & EventSet::ERROR.bits() != 0 => Source::WireGone,
                source => source,
            }
        };
        Ok(events[..count].iter().map(source).collect())
    }
}
