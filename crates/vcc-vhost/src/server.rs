//! Serves a guest's card on a socket, one front end after the other.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use vcc_domain::Port;
use vcc_net::peer;
use vcc_net::vhost_user::End;

use crate::card::Card;
use crate::channel::Channel;
use crate::device::Device;
use crate::event::{Event, OnEvent};
use crate::listener::{Error, listen};
use crate::memory::Memory;
use crate::session::Session;
use crate::turns::Turns;
use crate::wake::Timer;
use crate::watch::{Source, Watch};
use crate::wire::Wire;

/// A guest's card behind a socket.
pub struct Server {
    listener: UnixListener,
    watch: Watch,
    timer: Timer,
    /// More was left of the last turn, or there was none.
    is_busy: bool,
    session: Option<Session>,
    device: Arc<Turns<Device>>,
    card: Card,
    channel: Option<Channel>,
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
            // The port may have deadlines already.
            is_busy: true,
            session: None,
            card: Card::new(device.clone(), socket),
            channel: None,
            device,
        })
    }

    pub fn card(&self) -> Card {
        self.card.clone()
    }

    /// Reports to the guest's congestion control on a socket of this path, until this ends.
    ///
    /// # Errors
    /// As of [`Server::new`].
    pub fn open_channel(&mut self, path: &Path) -> Result<(), Error> {
        self.channel = Some(Channel::open(path, &self.card)?);
        Ok(())
    }

    /// Serves until `stop` is readable, and then ends the connections whose promises are not kept
    /// yet. Nothing that a front end or its guest does ends this.
    ///
    /// # Errors
    /// The wire was removed, or this host does not let us wait.
    pub fn run(&mut self, stop: &impl AsRawFd) -> Result<(), Error> {
        self.watch.add(stop.as_raw_fd(), Source::Stop)?;
        while self.step()? {}
        // What it has reported is not true any more.
        self.channel = None;
        let mut device = self.device.lock();
        match &mut self.session {
            Some(session) => {
                let (memory, rings) = session.served();
                device.end(memory, rings);
            }
            None => device.end(&Memory::none().guest, &mut []),
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
        let device = self.device.clone();
        let mut device = device.lock();
        // Without a guest, nothing is read.
        if sources.contains(&Source::WireGone) {
            return Err(Error::WireGone);
        }
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
            Some(session) => {
                let (memory, rings) = session.served();
                device.turn(memory, rings)
            }
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
        let process = accepted.as_ref().ok().and_then(|(stream, _)| peer::credentials(stream));
        let process = process.and_then(|it| u32::try_from(it.pid).ok()).unwrap_or(0);
        let session = accepted.and_then(|(stream, _)| Session::new(stream, &self.watch));
        // It has gone already; or this host lacks descriptors, and it tries again.
        let Ok(session) = session else { return Ok(()) };
        self.card.set_front_end(process);
        self.session = Some(session);
        // Others wait until it has gone.
        self.watch.remove(self.listener.as_raw_fd());
        device.report(Event::Connected);
        Ok(())
    }

    fn end(&mut self, end: End, device: &mut Device) -> io::Result<()> {
        let Some(mut session) = self.session.take() else { return Ok(()) };
        self.card.set_front_end(0);
        let has_moved = session.has_moved();
        session.leave(&self.watch);
        if has_moved {
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
