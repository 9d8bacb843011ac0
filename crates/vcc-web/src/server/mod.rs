//! The server, on a thread of its own.
//!
//! The number of connections, the size of a request and its time are limited, so that slow or many
//! clients do not keep others out for long. The maps are read on a second thread.

mod accept;
mod guard;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod in_memory;
mod places;
mod reply;
mod route;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;
use vcc_view::READ_EVERY;

use crate::Source;
use crate::cache::Cache;
use crate::readings::Readings;

/// The default address, for this host alone.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9644);

/// The time that a reading under way has when the server is stopped.
const STOP_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {source} (`--listen` chooses another address)")]
    Listen { address: SocketAddr, source: io::Error },

    #[error("cannot start the web server's thread: {0}")]
    Thread(io::Error),
}

#[derive(Clone, Debug)]
pub struct Options {
    pub listen: SocketAddr,
    /// Names that requests may give this host, besides `localhost` and its addresses.
    pub host_names: Vec<String>,
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At a time. Further ones have the place of the oldest that has not sent its request yet, or else of
    /// the oldest that has been there for `answered_within`; without either, they are refused.
    pub connections: usize,
    /// See `connections`.
    pub answered_within: Duration,
    /// The size of a request's header, the request line included.
    pub header_bytes: usize,
    /// The time for a request's header.
    pub header_within: Duration,
    /// The time from the begin of the connection to the end of the answer.
    pub all_within: Duration,
    /// One reading of the ports serves all requests within this time.
    pub fresh_for: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            answered_within: Duration::from_secs(2),
            header_bytes: 8 * 1024,
            header_within: Duration::from_secs(5),
            all_within: Duration::from_secs(20),
            fresh_for: READ_EVERY,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: DEFAULT_LISTEN, host_names: Vec::new(), limits: Limits::default() }
    }
}

/// A running server; it stops when it is dropped.
pub struct Server {
    address: SocketAddr,
    readings: Readings,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Serves at an address, in the calling thread's network namespace, until it is stopped.
pub fn serve(listen: SocketAddr, source: Arc<dyn Source>) -> Result<Server, Error> {
    serve_with(Options { listen, ..Options::default() }, source)
}

pub fn serve_with(options: Options, source: Arc<dyn Source>) -> Result<Server, Error> {
    let address = options.listen;
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .thread_name("vcc-web-read")
        .build()
        .map_err(Error::Thread)?;
    let (stop, stopped) = oneshot::channel();
    let cache = Cache::new(source, options.limits.fresh_for);
    let readings = Readings::new(cache.clone());
    let work = move || {
        runtime.block_on(accept::until(stopped, listener, options, cache));
        runtime.shutdown_timeout(STOP_WITHIN);
    };
    let thread = thread::Builder::new().name("vcc-web".into()).spawn(work);
    let thread = Some(thread.map_err(Error::Thread)?);
    Ok(Server { address, readings, stop: Some(stop), thread })
}

impl Server {
    /// With the port that was chosen if 0 was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its readings, for other parts of this process.
    pub fn readings(&self) -> Readings {
        self.readings.clone()
    }

    /// Returns when it listens no longer.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The receiver is gone if the thread has ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed there.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
