//! Many connections from one guest to the other. Each end makes its own, on its own thread.

use super::devices::Place;
use crate::backend::live::traffic::socket::{connect, listen};
use crate::base::error::{Doing, Error, Result};
use crate::base::interrupt;
use crate::base::system::check;
use socket2::Socket;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

pub const PORT: u16 = 5001;
/// The guests' congestion control.
const CONGESTION_CONTROL: &str = "reno";
/// Open files besides the sockets.
const OTHER_FILES: usize = 256;
/// Interval at which a waiting thread checks whether to stop.
const LOOK_UP: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(10);

/// A message from the accepting end to the connecting one: it listens, or has accepted a
/// connection.
pub struct Ready;

/// Makes connections one by one, each after the previous one was accepted, so that the accept queue
/// does not overflow.
pub fn connect_all(to: SocketAddr, flows: usize, ready: &Receiver<Ready>) -> Result<Vec<Socket>> {
    let mut sockets = Vec::with_capacity(flows);
    wait(ready)?;
    while sockets.len() < flows {
        let socket = connect(to, CONGESTION_CONTROL)?;
        // Closing ends the connection at once: thousands in TIME-WAIT would hold their ports.
        socket.set_linger(Some(Duration::ZERO)).doing(|| "set how a connection ends".into())?;
        sockets.push(socket);
        wait(ready)?;
    }
    Ok(sockets)
}

fn wait(ready: &Receiver<Ready>) -> Result<()> {
    // If the other end failed, its own error gives the reason; this is its effect here.
    ready.recv().map(drop).map_err(|_| match interrupt::is_pending() {
        true => Error::Interrupted,
        false => Error::Traffic { flow: 0, problem: "the receiver takes no connections".into() },
    })
}

/// Accepts connections in the receiver's guest. Returns early if the connecting end has stopped.
pub fn accept_all(
    flows: usize,
    ready: &Sender<Ready>,
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<Socket>> {
    let address = SocketAddr::new(Place::Receiver.address(), PORT);
    let listener = listen(address, CONGESTION_CONTROL)?;
    listener.set_read_timeout(Some(LOOK_UP)).doing(|| "set a timeout".into())?;
    let mut sockets = Vec::with_capacity(flows);
    // Sending fails if the other end has stopped; the loop below then ends.
    let _ = ready.send(Ready);
    let mut waited = Duration::ZERO;
    while sockets.len() < flows && !is_over() {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(true).doing(|| "set up a connection".into())?;
                sockets.push(socket);
                let _ = ready.send(Ready);
                waited = Duration::ZERO;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited < PATIENCE => {
                waited += LOOK_UP;
            }
            Err(error) => return Err(error).doing(|| "accept a connection".into()),
        }
        if interrupt::is_pending() {
            return Err(Error::Interrupted);
        }
    }
    Ok(sockets)
}

/// Gives the calling thread a file descriptor table of its own, because RLIMIT_NOFILE applies per
/// table and raising the hard limit needs privileges. Copies only the three standard descriptors:
/// a copy of a socket would keep it open.
pub fn own_file_table() -> Result<()> {
    const FIRST: libc::c_uint = libc::STDERR_FILENO as libc::c_uint + 1;
    let flags = libc::CLOSE_RANGE_UNSHARE as libc::c_int;
    // SAFETY: takes no pointers; the descriptors that it closes stay open in the table of the other
    // threads, which own them.
    check(unsafe { libc::close_range(FIRST, libc::c_uint::MAX, flags) })
        .map(drop)
        .doing(|| "give the receiver a table of files of its own".into())
}

/// Raises RLIMIT_NOFILE; restored on drop.
pub struct OpenFiles {
    before: libc::rlimit,
}

impl OpenFiles {
    pub fn allow(sockets: usize) -> Result<Self> {
        let doing = || format!("have {sockets} sockets open at a time (see `ulimit -n`)");
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `before` is valid for writes.
        check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut before) }).doing(doing)?;
        let files = (sockets + OTHER_FILES) as libc::rlim_t;
        let wanted = libc::rlimit {
            rlim_cur: before.rlim_cur.max(files),
            rlim_max: before.rlim_max.max(files),
        };
        set(&wanted).doing(doing)?;
        Ok(Self { before })
    }
}

fn set(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: `limit` is valid.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) }).map(drop)
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        // A limit that stays too high is harmless.
        let _ = set(&self.before);
    }
}
