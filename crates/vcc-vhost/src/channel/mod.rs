//! vFlood's channel to the guest's congestion control (Gamage and others, SoCC 2011, 3.2), behind a socket
//! to which the virtual machine monitor connects a virtio-serial port.
//!
//! It reports what the port does anyway, in a thread of its own. Nothing that the guest answers changes the
//! port, so a guest that lies gains nothing.

mod announcer;
mod client;

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use client::{Client, Lost};

use vcc_net::ready::ready;

use crate::card::Card;
use crate::channel_state::Shared;
use crate::event::Event;
use crate::listener::{Error, listen};

/// The port is asked at this interval.
const LOOK: Duration = Duration::from_millis(100);

/// The thread that serves it, which ends with this.
pub(crate) struct Channel {
    path: PathBuf,
    /// The thread ends when this does.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Channel {
    /// Serves a card's channel on `path`, in place of a socket that a process has left.
    pub(crate) fn open(path: &Path, card: &Card) -> Result<Self, Error> {
        let cannot = |error| Error::Listen { path: path.to_owned(), error };
        let listener = listen(path)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let (stop, stopped) = UnixStream::pair().map_err(cannot)?;
        let shared = Arc::new(Shared::default());
        let server = Server { card: card.clone(), shared: shared.clone(), listener, client: None };
        let thread = thread::Builder::new().name("channel".to_owned());
        let thread = thread.spawn(move || server.serve(&stopped)).map_err(cannot)?;
        // A card has one channel at most.
        let _ = card.channel_place().set(shared);
        Ok(Channel { path: path.to_owned(), stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that has failed has ended, too.
        let _ = self.thread.take().map(JoinHandle::join);
        // Otherwise, the next process removes it.
        let _ = std::fs::remove_file(&self.path);
    }
}

struct Server {
    card: Card,
    shared: Arc<Shared>,
    listener: UnixListener,
    client: Option<Client>,
}

impl Server {
    /// Until the other end of `stopped` closes.
    fn serve(mut self, stopped: &UnixStream) {
        let mut look_at = Instant::now();
        loop {
            let wait = look_at.saturating_duration_since(Instant::now());
            let [stops, comes, talks, takes] = self.wait(stopped, wait);
            if stops {
                self.shared.is_up.store(false, Ordering::Relaxed);
                return;
            }
            if comes {
                self.accept();
            }
            if talks {
                self.hear();
            }
            if Instant::now() >= look_at {
                look_at = Instant::now() + LOOK;
                self.report_changes();
            } else if takes {
                self.with_client(|client, _| client.flush());
            }
        }
    }

    /// Is the end due, does a client come, and may the client be read and written?
    fn wait(&self, stopped: &UnixStream, at_most: Duration) -> [bool; 4] {
        let client = self.client.as_ref();
        let events = match client {
            Some(client) if client.has_unsent() => libc::POLLIN | libc::POLLOUT,
            _ => libc::POLLIN,
        };
        let client = client.map_or(-1, |client| client.as_raw_fd());
        let places = [
            (stopped.as_raw_fd(), libc::POLLIN),
            (self.listener.as_raw_fd(), libc::POLLIN),
            (client, events),
        ];
        // Waits are in whole milliseconds, and end none too early.
        let at_most = at_most + Duration::from_millis(1);
        let Ok([stops, comes, client]) = ready(places, at_most) else { return [false; 4] };
        let [takes, talks] = [client & libc::POLLOUT, client & !libc::POLLOUT].map(|it| it != 0);
        [stops != 0, comes != 0, talks, takes]
    }

    /// One client at a time: another replaces it only if it has been silent.
    fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        if self.client.as_ref().is_some_and(|client| !client.is_silent()) {
            return;
        }
        self.leave();
        self.client = Client::new(stream).ok();
    }

    fn hear(&mut self) {
        self.with_client(|client, card| client.hear(card));
    }

    fn report_changes(&mut self) {
        self.with_client(|client, card| client.report_changes(card));
    }

    fn with_client(&mut self, act: impl FnOnce(&mut Client, &Card) -> Result<(), Lost>) {
        let Some(client) = &mut self.client else { return };
        let acted = act(client, &self.card);
        let is_up = acted.is_ok() && client.is_up();
        if self.shared.is_up.swap(is_up, Ordering::Relaxed) != is_up {
            self.card.report(if is_up { Event::ChannelUp } else { Event::ChannelDown });
        }
        match acted {
            Ok(()) => return,
            Err(Lost::Gone) => {}
            Err(Lost::Bad(bad)) => {
                self.shared.malformed.fetch_add(1, Ordering::Relaxed);
                self.card.report(Event::ChannelRefused(bad));
            }
        }
        self.client = None;
    }

    fn leave(&mut self) {
        self.with_client(|_, _| Err(Lost::Gone));
    }
}

/// A client that has ended its connection, or never does what it must.
impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Self {
        Lost::Gone
    }
}
