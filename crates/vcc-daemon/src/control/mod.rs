//! The control socket. Its file permissions decide who may send requests.

pub(crate) mod client;
mod connection;
mod peer;
pub(crate) mod protocol;
mod reading;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use crate::{Error, Result, RuntimeDir, journal};
use connection::Connection;
use protocol::{Answer, Request};

const MODE: u32 = 0o660;
/// Connections at a time.
const MOST_CONNECTIONS: usize = 16;

/// Hands a request to the daemon, with the channel for its answer. False if the daemon is
/// ending.
type Ask = dyn Fn(Request, Sender<Answer>) -> bool + Send + Sync;

/// Counts rejected requests.
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

/// Calls `ask` for each request from now on, on threads of its own.
pub(crate) fn listen(
    place: &RuntimeDir,
    ask: impl Fn(Request, Sender<Answer>) -> bool + Send + Sync + 'static,
) -> Result<Abuse> {
    let path = place.control();
    let failed = |e| Error::system(format!("listen at {}", path.display()), e);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    // The mode of the directory protects the socket until the socket's own mode is set.
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, Permissions::from_mode(MODE)).map_err(failed)?;
    let abuse = Abuse::default();
    let counted = abuse.clone();
    let ask: Arc<Ask> = Arc::new(ask);
    let accept = move || accept_all(&listener, &ask, &counted);
    thread::Builder::new().name("control".into()).spawn(accept).map_err(failed)?;
    Ok(abuse)
}

fn accept_all(listener: &UnixListener, ask: &Arc<Ask>, abuse: &Abuse) {
    /// After an accept that failed because there were no descriptors or no memory left.
    const PAUSE: Duration = Duration::from_millis(100);
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        match listener.accept() {
            Ok((stream, _)) => serve(stream, &open, ask, abuse),
            Err(error) => {
                journal::warning!("cannot accept a connection at the control socket: {error}");
                thread::sleep(PAUSE);
            }
        }
    }
}

fn serve(stream: UnixStream, open: &Arc<AtomicUsize>, ask: &Arc<Ask>, abuse: &Abuse) {
    let mut connection = Connection::new(stream, abuse.clone());
    let place = Place::take(open);
    if place.is_none() {
        connection.turn_away();
        return;
    }
    let ask = Arc::clone(ask);
    let work = move || {
        let _place = place;
        connection.serve(&*ask);
    };
    // Without a thread the connection is closed.
    if let Err(error) = thread::Builder::new().name("request".into()).spawn(work) {
        journal::warning!("cannot serve a connection at the control socket: {error}");
    }
}

/// One of [`MOST_CONNECTIONS`].
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        // Only the accepting thread takes places; others give them back.
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
