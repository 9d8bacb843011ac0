//! Sending duplicate ACKs and window updates to the guests of ports, on one thread for all.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use vcc_port::{Emitter, Port};

use crate::{Error, Result, journal};

/// Starts the thread for the first port that needs it.
fn thread() -> io::Result<&'static Runtime> {
    static THREAD: Mutex<Option<&Runtime>> = Mutex::new(None);
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = *thread {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("emitting").enable_all().build()?;
    Ok(thread.insert(Box::leak(Box::new(runtime))))
}

/// Ends when it is dropped.
pub(crate) struct Emitting {
    runtime: &'static Runtime,
    task: JoinHandle<()>,
}

impl Emitting {
    pub(crate) fn begin(port: &Port) -> Result<Self> {
        let failed = |e| Error::system("start the thread that sends to guests", e);
        let runtime = thread().map_err(failed)?;
        let device = port.device().to_owned();
        let emitter = port.emitter()?;
        let events = emitter.poll_fd().try_clone_to_owned().map_err(failed)?;
        let _inside = runtime.enter();
        // SAFETY: the descriptor is owned, and open until the value is dropped.
        let events = unsafe { AsyncFd::register(events) }.map_err(|e| failed(e.into()))?;
        let task = runtime.spawn(async move {
            let Err(error) = serve(events, emitter).await;
            journal::warning!(port = &device, "{device}: sending to the guest ended: {error}");
        });
        Ok(Self { runtime, task })
    }

    /// False after a failure.
    pub(crate) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }
}

impl Drop for Emitting {
    fn drop(&mut self) {
        // The next emitter of this port needs what this one holds. A panic was reported when it
        // happened, and affects no other port.
        self.task.abort();
        let _ = self.runtime.block_on(&mut self.task);
    }
}

async fn serve(events: AsyncFd<OwnedFd>, mut emitter: Emitter) -> Result<Infallible> {
    loop {
        let next_look = emitter.next_look();
        let ready = tokio::select! {
            ready = events.readable() => {
                Some(ready.map_err(|e| Error::system("wait for a port's events", e))?)
            }
            () = after(next_look) => None,
        };
        let more = emitter.serve_some()?;
        match ready {
            Some(mut ready) if !more => ready.clear_ready(),
            // Another port's turn.
            _ => tokio::task::yield_now().await,
        }
    }
}

/// Without a time, never.
async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => pending().await,
    }
}
