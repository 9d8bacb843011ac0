//! The socket at which the daemon is asked. Who may write to it may ask: the kernel decides that.

pub(crate) mod client;
mod connection;
mod peer;
pub(crate) mod protocol;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use crate::event::Event;
use crate::{Error, Result, RuntimeDir, journal};
use connection::Connection;

const MODE: u32 = 0o660;
/// At a time.
const MOST_CONNECTIONS: usize = 16;

/// How many requests were none.
#[derive(Clone, Default)]
pub(crate) struct Abuse(Arc<AtomicU64>);

impl Abuse {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// From now on requests arrive as events.
pub(crate) fn listen(place: &RuntimeDir, events: Sender<Event>) -> Result<Abuse> {
    let path = place.control();
    let failed = |e| Error::system(format!("listen at {}", path.display()), e);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    // Until its mode is set, the directory keeps strangers out.
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, Permissions::from_mode(MODE)).map_err(failed)?;
    let abuse = Abuse::default();
    let counted = abuse.clone();
    let accept = move || accept_all(&listener, &events, &counted);
    thread::Builder::new().name("control".into()).spawn(accept).map_err(failed)?;
    Ok(abuse)
}

fn accept_all(listener: &UnixListener, events: &Sender<Event>, abuse: &Abuse) {
    /// Of an accept that failed because descriptors or memory ran out.
    const PAUSE: Duration = Duration::from_millis(100);
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        match listener.accept() {
            Ok((stream, _)) => serve(stream, &open, events, abuse),
            Err(error) => {
                journal::warning(&format!("cannot take a connection at the socket: {error}"));
                thread::sleep(PAUSE);
            }
        }
    }
}

fn serve(stream: UnixStream, open: &Arc<AtomicUsize>, events: &Sender<Event>, abuse: &Abuse) {
    let mut connection = Connection::new(stream, abuse.clone());
    let place = Place::take(open);
    if place.is_none() {
        connection.turn_away();
        return;
    }
    let events = events.clone();
    let work = move || {
        let _place = place;
        connection.serve(&events);
    };
    // Without a thread the connection is closed, which says enough.
    if let Err(error) = thread::Builder::new().name("request".into()).spawn(work) {
        journal::warning(&format!("cannot serve a connection at the socket: {error}"));
    }
}

/// One of the connections that there can be.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        // One thread takes; others only give back.
        if open.load(Ordering::Acquire) >= MOST_CONNECTIONS {
            return None;
        }
        open.fetch_add(1, Ordering::AcqRel);
        Some(Self(Arc::clone(open)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
