//! Serves a guest's card on a socket, one front end after the other.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

use vcc_domain::{Port, Promise};
use vcc_net::vhost_user::End;

use crate::counts::CardCounts;
use crate::device::Device;
use crate::event::{Event, OnEvent};
use crate::memory::Memory;
use crate::peer;
use crate::session::Session;
use crate::turns::Turns;
use crate::wake::Timer;
use crate::watch::{Source, Watch};
use crate::wire::Wire;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {}: {error}", path.display())]
    Listen { path: PathBuf, error: io::Error },
    #[error("another process serves {}", .0.display())]
    Served(PathBuf),
    #[error("{} exists and is not a socket: remove it, or choose another path", .0.display())]
    NoSocket(PathBuf),
    #[error("the tap was deleted: create it again, and start this again")]
    WireGone,
    #[error("cannot wait for the tap and the virtual machine: {0}")]
    Watch(#[from] io::Error),
}

/// A guest's card behind a socket.
pub struct Server {
    listener: UnixListener,
    watch: Watch,
    timer: Timer,
    /// More was left of the last turn.
    is_busy: bool,
    session: Option<Session>,
    card: Card,
}

/// The card that a [`Server`] serves, for other threads.
#[derive(Clone)]
pub struct Card {
    device: Arc<Turns<Device>>,
    socket: Arc<Path>,
    /// By its id; 0: none.
    front_end: Arc<AtomicU32>,
}

impl Card {
    /// The socket to which the virtual machine monitor connects.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The process that the card is connected to; 0: none is.
    pub fn front_end(&self) -> u32 {
        self.front_end.load(Ordering::Relaxed)
    }

    /// Counts of the frames that the card has dropped.
    pub fn counts(&self) -> CardCounts {
        self.lock().counts()
    }

    /// Looks at the port, which does nothing else meanwhile.
    pub fn look<T>(&self, look: impl FnOnce(&Port) -> T) -> T {
        look(self.lock().port())
    }

    /// Changes the port, likewise.
    pub fn change<T>(&self, change: impl FnOnce(&mut Port) -> T) -> T {
        change(self.lock().port_mut())
    }

    fn lock(&self) -> MutexGuard<'_, Device> {
        self.device.lock()
    }
}

impl Server {
    /// Listens on `socket`, in place of a socket that a process has left.
    ///
    /// # Errors
    /// Something else is there, or another process listens.
    pub fn new(
        socket: &Path,
        port: Port,
        wire: Box<dyn Wire>,
        on_event: OnEvent,
    ) -> Result<Self, Error> {
        let listener = listen(socket)?;
        let cannot = |error| Error::Listen { path: socket.to_owned(), error };
        listener.set_nonblocking(true).map_err(cannot)?;
        let (watch, timer) = (Watch::new()?, Timer::new()?);
        watch.add(listener.as_raw_fd(), Source::Listener)?;
        watch.add(wire.as_raw_fd(), Source::Wire)?;
        watch.add(timer.as_raw_fd(), Source::Timer)?;
        let device = Arc::new(Turns::new(Device::new(port, wire, on_event)));
        Ok(Server {
            listener,
            watch,
            timer,
            is_busy: false,
            session: None,
            card: Card { device, socket: socket.into(), front_end: Arc::default() },
        })
    }

    pub fn card(&self) -> Card {
        self.card.clone()
    }

    /// Ends connections to which a process before this one has promised what it did not deliver.
    pub fn end_promises(&mut self, promises: Vec<Promise>) {
        self.card.lock().end_promises(promises);
    }

    /// Serves until `stop` is readable, and then ends the connections whose promises are not kept
    /// yet. Nothing that a front end or its guest does ends this.
    ///
    /// # Errors
    /// The wire was removed, or this host does not let us wait.
    pub fn run(&mut self, stop: &impl AsRawFd) -> Result<(), Error> {
        self.watch.add(stop.as_raw_fd(), Source::Stop)?;
        while self.step()? {}
        let card = self.card.clone();
        match &mut self.session {
            Some(Session { memory, rings, .. }) => card.lock().end(&memory.guest, rings),
            None => card.lock().end(&Memory::none().guest, &mut []),
        }
        Ok(())
    }

    /// Waits for work, and does a batch of it. False if it is to stop.
    fn step(&mut self) -> Result<bool, Error> {
        let sources = self.watch.wait(self.is_busy)?;
        if sources.contains(&Source::Stop) {
            return Ok(false);
        }
        self.work(sources)?;
        Ok(true)
    }

    /// Does a batch of the work that has come by now, as [`Server::run`] does. True if more is left.
    ///
    /// # Errors
    /// As of [`Server::run`].
    #[cfg(feature = "testing")]
    pub fn turn(&mut self) -> Result<bool, Error> {
        let sources = self.watch.wait(true)?;
        self.work(sources)?;
        Ok(self.is_busy)
    }

    fn work(&mut self, sources: Vec<Source>) -> Result<(), Error> {
        let card = self.card.clone();
        let mut device = card.lock();
        for source in sources {
            let served = match (source, &mut self.session) {
                (Source::Listener, None) => self.accept(&mut device),
                (Source::FrontEnd, Some(session)) => session.serve(&mut device, &self.watch),
                (Source::State, Some(session)) => {
                    session.carry(&mut device, &self.watch);
                    Ok(())
                }
                _ => Ok(()),
            };
            if let Err(end) = served {
                self.end(end, &mut device)?;
            }
        }
        self.is_busy = match &mut self.session {
            Some(Session { memory, rings, .. }) => device.turn(&memory.guest, rings),
            None => device.turn(&Memory::none().guest, &mut []),
        };
        if device.is_wire_gone() {
            return Err(Error::WireGone);
        }
        self.timer.set(device.next_deadline_ns())?;
        Ok(())
    }

    fn accept(&mut self, device: &mut Device) -> Result<(), End> {
        let accepted = self.listener.accept();
        let process = accepted.as_ref().map_or(0, |(stream, _)| peer::process(stream));
        let session = accepted.and_then(|(stream, _)| Session::new(stream, &self.watch));
        // It has gone already; or this host lacks descriptors, and it tries again.
        let Ok(session) = session else { return Ok(()) };
        self.card.front_end.store(process, Ordering::Relaxed);
        self.session = Some(session);
        // Others wait until it has gone.
        self.watch.remove(self.listener.as_raw_fd());
        device.report(Event::Connected);
        Ok(())
    }

    fn end(&mut self, end: End, device: &mut Device) -> io::Result<()> {
        let Some(mut session) = self.session.take() else { return Ok(()) };
        self.card.front_end.store(0, Ordering::Relaxed);
        session.leave(&self.watch);
        if session.is_logging() {
            device.is_left_behind();
        }
        device.leave();
        device.report(match end {
            End::Gone => Event::Gone,
            End::Refused(why) => Event::Refused(why),
        });
        self.watch.add(self.listener.as_raw_fd(), Source::Listener)
    }
}

/// In place of a socket that a process has left.
pub(crate) fn listen(path: &Path) -> Result<UnixListener, Error> {
    let cannot = |error| Error::Listen { path: path.to_owned(), error };
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(Error::NoSocket(path.to_owned()));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(Error::Served(path.to_owned())),
        Ok(_) => std::fs::remove_file(path).map_err(cannot)?,
    }
    UnixListener::bind(path).map_err(cannot)
}
