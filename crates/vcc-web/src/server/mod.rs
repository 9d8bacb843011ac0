//! The server: a thread of its own, and as little as it takes to be safe from whoever connects.
//!
//! There are bounds on connections, on the size of a request and on the time for it, so that nobody
//! who is slow or many keeps others out for long. Reading the maps happens on a second thread.

mod accept;
mod guard;
mod reply;
mod route;
mod tally;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::Source;
use crate::cache::Cache;
pub use tally::Tally;

/// Where it listens if nothing else is said: for this host alone.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9644);

/// What is under way when it is told to stop gets so long.
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
    /// Names by which others may ask for it, beside addresses where it is reached and `localhost`.
    pub host_names: Vec<String>,
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At a time; those beyond are refused.
    pub connections: usize,
    /// Of a request's header, the first line included.
    pub header_bytes: usize,
    /// For a request's header to come.
    pub header_within: Duration,
    /// For everything, from the connection's begin to the end of the answer.
    pub all_within: Duration,
    /// One reading of the ports serves all who ask in this time.
    pub fresh_for: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            header_bytes: 8 * 1024,
            header_within: Duration::from_secs(5),
            all_within: Duration::from_secs(20),
            fresh_for: Duration::from_secs(1),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: DEFAULT_LISTEN, host_names: Vec::new(), limits: Limits::default() }
    }
}

/// A server at work. Dropped, it stops.
pub struct Server {
    address: SocketAddr,
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
    let work = move || {
        runtime.block_on(accept::until(stopped, listener, options, cache));
        runtime.shutdown_timeout(STOP_WITHIN);
    };
    let thread = thread::Builder::new().name("vcc-web".into()).spawn(work);
    let thread = Some(thread.map_err(Error::Thread)?);
    Ok(Server { address, stop: Some(stop), thread })
}

impl Server {
    /// With the port that was found where none was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns when nobody listens any more.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It has ended if nobody hears.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic of its thread has been told there.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
