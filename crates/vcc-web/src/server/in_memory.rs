//! The server without a socket, for tests.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Options;
use super::accept::{Shared, converse};
use crate::Source;
use crate::cache::Cache;

/// Serves one connection after the other, in the caller's runtime.
pub struct InMemory {
    shared: Arc<Shared>,
}

impl InMemory {
    /// `options.listen` is not used.
    pub fn new(options: Options, source: Arc<dyn Source>) -> Self {
        let cache = Cache::new(source, options.limits.fresh_for);
        InMemory { shared: Shared::new(options, cache) }
    }

    /// Returns when the server has closed the connection, which has reached it at this address.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin, reached_at: IpAddr) {
        converse(stream, reached_at, &self.shared, None).await;
    }

    /// Requests that were answered.
    pub fn answered(&self) -> u64 {
        self.shared.tally.answered()
    }

    /// Requests that were refused, by reason.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.shared.tally.refused()
    }
}
