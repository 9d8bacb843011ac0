//! The data that a port has acknowledged in its peers' names, or stored for its guest, and not delivered
//! yet, in memory that outlives the port's process, so that another port can end those connections (law 16).

use vcc_engine::sys;

use crate::empty_segment::Bare;
use crate::frame::{Direction, Out};
use vcc_engine::FlowKey;

/// A connection of which the guest, or with stored data the peer, has been promised more than the other
/// end has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    pub key: FlowKey,
    pub guest_mac: [u8; 6],
    pub next_hop_mac: [u8; 6],
    /// The acknowledgements of the peer and of the port, and what has left.
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub promised: u32,
    /// The sequence number after the last data that has been given to the guest.
    pub rcv_nxt: u32,
}

/// Memory for a port's promises, one for each of [`Port::ledger_slots`](crate::Port::ledger_slots).
///
/// The port writes before it returns the acknowledgement that makes the promise. A reader must see a
/// slot as before a write or as after it.
pub trait Ledger: Send + Sync {
    fn write(&self, slot: usize, promise: Option<&Promise>);
}

impl Promise {
    /// Ends the connection at both ends. The peer may have received all that has left, nothing of it,
    /// or what is before one of `starts`; a RST with another sequence number than the next is answered
    /// (RFC 5961, 3.2).
    pub(crate) fn reset(&self, starts: impl IntoIterator<Item = u32>, out: &mut Out) {
        let neighbour =
            sys::vcc_neighbour { guest_mac: self.guest_mac, next_hop_mac: self.next_hop_mac };
        let frame = |bare: Bare| bare.frame(&self.key, &neighbour);
        let flags = sys::TCP_RST | sys::TCP_ACK;
        let to_guest = Bare::reset(Direction::ToGuest, self.rcv_nxt);
        out.to_guest.push(frame(Bare { ack: self.promised, flags, ..to_guest }));
        let ends = [self.snd_nxt, self.snd_una];
        let between = starts.into_iter().filter(|seq| !ends.contains(seq));
        for seq in ends.into_iter().take(if ends[0] == ends[1] { 1 } else { 2 }).chain(between) {
            // Without ACK: a peer that has not heard the answer to its SYN repeats that instead of giving
            // up (RFC 9293, 3.10.7.3).
            out.to_fabric.push(frame(Bare::reset(Direction::FromGuest, seq)));
        }
    }
}
