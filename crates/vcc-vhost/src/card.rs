//! What a process serves, for its other threads.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

use vcc_domain::{Port, Promise};

use crate::channel_state::{ChannelState, Place};
use crate::counts::CardCounts;
use crate::event::Event;
use crate::turns::Turns;

/// A port with what carries its frames.
pub(crate) trait Served: Send {
    fn port(&self) -> &Port;
    fn port_mut(&mut self) -> &mut Port;
    fn counts(&self) -> CardCounts;
    /// To the operator.
    fn report(&mut self, event: Event);
    /// Ends the connections of another process's ledger.
    fn end_promises(&mut self, promises: Vec<Promise>);
}

/// What a [`Server`](crate::Server) or a [`RelayServer`](crate::RelayServer) serves, for other threads.
#[derive(Clone)]
pub struct Card {
    served: Arc<Turns<dyn Served>>,
    socket: Arc<Path>,
    /// By its id; 0: none.
    front_end: Arc<AtomicU32>,
    channel: Place,
}

impl Card {
    pub(crate) fn new(served: Arc<Turns<dyn Served>>, socket: &Path) -> Self {
        Card { served, socket: socket.into(), front_end: Arc::default(), channel: Place::default() }
    }

    /// The socket to which the virtual machine monitor connects; empty in front of a device.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The process that the card is connected to; 0: none is.
    pub fn front_end(&self) -> u32 {
        self.front_end.load(Ordering::Relaxed)
    }

    pub(crate) fn set_front_end(&self, process: u32) {
        self.front_end.store(process, Ordering::Relaxed);
    }

    /// Counts of the frames that were dropped.
    pub fn counts(&self) -> CardCounts {
        self.lock().counts()
    }

    /// Looks at the port, which does nothing else meanwhile.
    pub fn with_port<T>(&self, read: impl FnOnce(&Port) -> T) -> T {
        read(self.lock().port())
    }

    /// Changes the port, likewise.
    pub fn change<T>(&self, change: impl FnOnce(&mut Port) -> T) -> T {
        change(self.lock().port_mut())
    }

    /// Ends connections to which a process before this one has promised what it did not deliver.
    pub fn end_promises(&self, promises: Vec<Promise>) {
        self.lock().end_promises(promises);
    }

    pub(crate) fn report(&self, event: Event) {
        self.lock().report(event);
    }

    /// The state of its channel; None without one.
    pub fn channel(&self) -> Option<ChannelState> {
        self.channel.get().map(|shared| shared.state())
    }

    pub(crate) fn channel_place(&self) -> &Place {
        &self.channel
    }

    fn lock(&self) -> MutexGuard<'_, dyn Served + 'static> {
        self.served.lock()
    }
}
