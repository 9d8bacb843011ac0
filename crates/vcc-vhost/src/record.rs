//! Sends another process what happens to flows, ACK by ACK.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

use vcc_domain::{Accepted, Recorded};
use vcc_engine::FlowKey;

use crate::card::Card;

/// The port is read at this interval.
const EVERY_MS: libc::c_int = 5;

/// Ends the recording, however its thread ends.
struct Ending(Card);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.change(|port| port.end_recording());
    }
}

impl Card {
    /// Records a flow, or all, until `reader` ends, in a thread of its own. One that does not read on
    /// loses ACKs, and delays nobody.
    pub(crate) fn record(&self, mut reader: UnixStream, flow: Option<FlowKey>) -> io::Result<()> {
        let accepted = Accepted(self.change(|port| port.begin_recording(flow)));
        let ending = accepted.0.then(|| Ending(self.clone()));
        reader.write_all(&accepted.to_bytes())?;
        let Some(ending) = ending else { return Ok(()) };
        reader.set_write_timeout(None)?;
        thread::Builder::new().name("record".to_owned()).spawn(move || ending.send(reader))?;
        Ok(())
    }
}

impl Ending {
    fn send(self, mut reader: UnixStream) {
        let mut recorded = Recorded::default();
        while !has_ended(&reader) {
            self.0.change(|port| port.take_recorded(&mut recorded));
            // The reader may end meanwhile.
            if !recorded.acks.is_empty() && reader.write_all(&recorded.to_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Has the other end closed the connection? Waits for that for a moment.
fn has_ended(stream: &UnixStream) -> bool {
    let mut polled = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: the call writes one pollfd, which `polled` is.
    unsafe { libc::poll(&mut polled, 1, EVERY_MS) };
    polled.revents != 0
}
