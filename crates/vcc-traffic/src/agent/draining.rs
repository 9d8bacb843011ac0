//! The receiving half of a bulk flow: a thread that waits in the kernel for a large piece at a
//! time.
//!
//! A return from the kernel costs a guest more than a frame does, and the data of a fast flow
//! arrives in small parts. With MSG_WAITALL, tcp_recvmsg() still takes each part from the queue
//! when it arrives, so the windows and ACKs are those of a receiver that reads at once.

use socket2::Socket;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use vcc_traffic::payload::Stream;
use vcc_traffic::plan::FlowToReceive;
use vcc_traffic::report::ReceiverHalf;
use vcc_traffic::system::now_ns;
use vcc_traffic::{Doing, Error, Received, Result, TcpInfo};

const PIECE_BYTES: usize = 128 * 1024;
/// TCP_ESTABLISHED of net/tcp_states.h. A receiver leaves this state when it receives a FIN.
const ESTABLISHED: u8 = 1;

pub struct Draining {
    socket: Arc<Socket>,
    /// Further data is ignored.
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Drained>>>,
    half: ReceiverHalf,
}

/// The result of the thread.
struct Drained {
    payload_ok: bool,
    finished_at_ns: Option<u64>,
}

impl Draining {
    /// `socket` has just been accepted.
    pub fn start(socket: Socket, plan: &FlowToReceive) -> Result<Self> {
        let &FlowToReceive { flow, seed, .. } = plan;
        let has_ecn = info(&socket)?.has_ecn();
        let (socket, is_over) = (Arc::new(socket), Arc::new(AtomicBool::new(false)));
        let thread = thread::Builder::new()
            .spawn({
                let (socket, is_over) = (socket.clone(), is_over.clone());
                move || drain(&socket, Stream::new(seed, flow), &is_over, flow)
            })
            .doing(|| format!("start a thread for flow {flow}"))?;
        let half = ReceiverHalf { flow, has_ecn, payload_ok: true, ..ReceiverHalf::default() };
        Ok(Self { socket, is_over, thread: Some(thread), half })
    }

    /// Records the bytes received, at the start and the end of the window and between phases.
    pub fn note_bound(&mut self) -> Result<()> {
        self.half.received_bytes = self.received_bytes()?;
        self.half.received_at_bounds_bytes.push(self.half.received_bytes);
        Ok(())
    }

    /// Records 0 bytes for the bounds before it was connected.
    pub fn note_bounds_before(&mut self, count: usize) {
        self.half.received_at_bounds_bytes.resize(count, 0);
    }

    pub fn note_received(&mut self, at_us: u64) -> Result<()> {
        let bytes = self.received_bytes()?;
        self.half.received_over_time.push(Received { at_us, bytes });
        Ok(())
    }

    /// TCP's own count, because the thread counts whole pieces only.
    fn received_bytes(&self) -> Result<u64> {
        let info = info(&self.socket)?;
        // A FIN occupies a sequence number too (RFC 9293, 3.4).
        Ok(info.bytes_received - u64::from(info.state != ESTABLISHED))
    }

    /// Stops receiving. All data received so far has been checked.
    pub fn finish(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.is_over.store(true, Ordering::Relaxed);
        // It may be closed already.
        let _ = self.socket.shutdown(Shutdown::Read);
        let flow = self.half.flow;
        let panicked = |_| Err(Error::Flow { flow, problem: "its thread panicked".into() });
        let drained = thread.join().unwrap_or_else(panicked)?;
        self.half.payload_ok = drained.payload_ok;
        self.half.finished_at_ns = drained.finished_at_ns;
        Ok(())
    }

    pub fn into_half(self) -> ReceiverHalf {
        self.half
    }
}

fn info(socket: &Socket) -> Result<TcpInfo> {
    TcpInfo::read(socket).doing(|| "read TCP_INFO".into())
}

fn drain(socket: &Socket, stream: Stream, is_over: &AtomicBool, flow: usize) -> Result<Drained> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut drained = Drained { payload_ok: true, finished_at_ns: None };
    let mut position = 0;
    loop {
        let bytes = receive_all(socket, &mut piece).map_err(|error| Error::Flow {
            flow,
            problem: format!("the receiver's socket failed: {error}"),
        })?;
        if bytes == 0 {
            if !is_over.load(Ordering::Relaxed) {
                drained.finished_at_ns = Some(now_ns());
                // Closing its own direction shows the sender that all data has been received.
                socket.shutdown(Shutdown::Write).doing(|| "answer the end of a flow".into())?;
            }
            return Ok(drained);
        }
        drained.payload_ok &= stream.matches(position, &piece[..bytes]);
        position += bytes as u64;
    }
}

/// Fills the buffer, unless the flow ends first; 0 at its end.
fn receive_all(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the kernel writes no more than the buffer's length.
        let bytes = unsafe {
            let to = buffer.as_mut_ptr().cast();
            libc::recv(socket.as_raw_fd(), to, buffer.len(), libc::MSG_WAITALL)
        };
        match usize::try_from(bytes) {
            Ok(bytes) => return Ok(bytes),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
