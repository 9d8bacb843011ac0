//! Connections: their number and duration, and the refusal of those above the limit.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::{task, time};
use vcc_view::READ_EVERY;

use super::guard::Guard;
use super::places::{Occupant, Places};
use super::route::Site;
use super::{Limits, Options};
use crate::cache::Cache;
use crate::tally::{Refusal, Tally};

/// The number of connections above the limit that are answered at a time; others are closed.
const REFUSALS_AT_A_TIME: usize = 16;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    content-length: 48\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
    Too many connections at a time; try again later\n";

/// Without free file descriptors the next attempt would fail as well.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(100);
const AFTER_FAILED_READING: Duration = Duration::from_secs(5);

/// Readings without a request take at most this fraction of a CPU.
const READING_SHARE: u32 = 50;

/// Shared by all connections.
pub(super) struct Shared {
    site: Site,
    guard: Guard,
    limits: Limits,
    pub(super) tally: Arc<Tally>,
}

impl Shared {
    pub(super) fn new(options: Options, cache: Arc<Cache>) -> Arc<Self> {
        let tally = Arc::<Tally>::default();
        Arc::new(Shared {
            site: Site::new(cache, tally.clone()),
            guard: Guard::new(options.host_names, options.limits.header_bytes),
            limits: options.limits,
            tally,
        })
    }
}

pub async fn until(
    stopped: oneshot::Receiver<()>,
    listener: TcpListener,
    options: Options,
    cache: Arc<Cache>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return eprintln!("vcc: the web server cannot listen: {error}"),
    };
    task::spawn(keep_reading(cache.clone()));
    task::spawn(accept(listener, Shared::new(options, cache)));
    // A dropped sender ends the wait as well.
    let _ = stopped.await;
}

/// Reads for the history, and so often that sequence numbers do not wrap unnoticed.
async fn keep_reading(cache: Arc<Cache>) {
    loop {
        let pause = match cache.get().await {
            Ok(taken) => (taken.worked * READING_SHARE).max(READ_EVERY),
            Err(_) => AFTER_FAILED_READING,
        };
        time::sleep(pause).await;
    }
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let places = Places::new(shared.limits.connections, shared.limits.answered_within);
    let refusals = Arc::new(Semaphore::new(REFUSALS_AT_A_TIME));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            time::sleep(AFTER_FAILED_ACCEPT).await;
            continue;
        };
        let (place, gave_way) = places.take();
        if gave_way || place.is_none() {
            shared.tally.refuse(Refusal::Connections);
        }
        if let Some(place) = place {
            let (shared, occupant) = (shared.clone(), place.occupant());
            let served = task::spawn(async move {
                if let Ok(reached_at) = stream.local_addr() {
                    converse(stream, reached_at.ip(), &shared, Some(&place.occupant())).await;
                }
                drop(place);
            });
            occupant.is_served_by(served.abort_handle());
            // Its request may be here: it is read before more connections come, to which it would
            // have to give way.
            task::yield_now().await;
            continue;
        }
        if let Ok(place) = refusals.clone().try_acquire_owned() {
            task::spawn(turn_away(stream, place));
        }
    }
}

/// Serves one request: the time limit of the connection is then that of the request, and no idle
/// connection counts against the limit. `reached_at` is the address of our end.
pub(super) async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    reached_at: IpAddr,
    shared: &Shared,
    occupant: Option<&Occupant>,
) {
    let _open = shared.tally.open();
    let service = service_fn(|request| async move {
        if let Some(occupant) = occupant {
            occupant.has_asked();
        }
        let admitted = shared.guard.admit(&request, reached_at);
        Ok::<_, std::convert::Infallible>(shared.site.answer(admitted, &request).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.header_within)
        // The guard refuses headers above the limit; only far larger ones are cut off here.
        .max_buf_size((shared.limits.header_bytes * 4).max(8192))
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let reason = match time::timeout(shared.limits.all_within, connection).await {
        Err(_) => Refusal::Time,
        Ok(Ok(())) => return,
        Ok(Err(error)) if error.is_timeout() => Refusal::Time,
        Ok(Err(error)) if error.is_parse_too_large() => Refusal::HeaderSize,
        Ok(Err(error)) if error.is_parse() => Refusal::Malformed,
        // The client disconnected.
        Ok(Err(_)) => return,
    };
    shared.tally.refuse(reason);
}

async fn turn_away(mut stream: TcpStream, _place: OwnedSemaphorePermit) {
    let refuse = async {
        stream.write_all(TOO_MANY).await?;
        stream.shutdown().await?;
        // A socket that is closed with unread data discards what it has sent.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    // A client that does not read gets no answer.
    let _ = time::timeout(REFUSAL_TIMEOUT, refuse).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let text = std::str::from_utf8(TOO_MANY).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}
