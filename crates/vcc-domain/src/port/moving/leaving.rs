//! The guest leaves.

use vcc_engine::export::{Connection, Row};

use super::super::Port;
use super::travels;
use crate::frame::{Frame, Out};
use crate::handover::{EndedRow, FrameRow, Frames, HoldRow, Macs, SentRow, State, Travelling};
use crate::table::Entry;

impl Port {
    /// Before [`Port::hand_over`]: no frames wait in the port for a busy guest, because the guest
    /// that continues elsewhere is not busy. Accepted connections that the peer has not acknowledged yet
    /// cannot move, and end.
    pub fn end_waits(&mut self, now_ns: u64, out: &mut Out) {
        self.core.note_time(now_ns);
        let place = out.to_guest.len();
        self.break_handshakes(out);
        self.send_acks(out);
        self.thinning.end(&mut self.core, &mut out.to_guest);
        self.ack_pacing.end(&mut out.to_guest);
        self.show(place, out);
    }

    /// The port's state of the guest's connections, for [`Port::take_over`] of another; and their
    /// number. `waiting`: frames for the guest that have passed the port, and whether they are from
    /// the fabric.
    pub fn hand_over<'frame>(
        &self,
        written_by: &str,
        waiting: impl Iterator<Item = (&'frame Frame, bool)>,
    ) -> (usize, Vec<u8>) {
        let mut frames = Frames::default();
        let all = self.core.table.iter().filter(|entry| travels(entry));
        let connections: Vec<Travelling> =
            all.map(|entry| self.travelling(entry, &mut frames)).collect();
        let waiting: Vec<(FrameRow, bool)> =
            waiting.map(|(frame, is_from_fabric)| (frames.push(frame), is_from_fabric)).collect();
        let ended = self.split.ended().map(EndedRow::from_promise).collect();
        let state = State { connections, ended, waiting };
        (state.connections.len(), state.to_bytes(written_by, &frames))
    }

    fn travelling(&self, entry: &Entry, frames: &mut Frames) -> Travelling {
        let Entry { key, state, held, snooped, .. } = entry;
        let connection = Connection {
            guest: key.guest(),
            peer: key.peer(),
            vlan: key.vlan(),
            // Ports of user space look into no tunnel.
            inside: false,
            state: *state,
        };
        let sent = held.sent.iter().map(|kept| SentRow {
            frame: frames.push(&kept.waiting.frame),
            sacked: kept.facts.sacked != 0,
        });
        let sent = sent.collect();
        Travelling {
            flow: Row::from_connection(&connection),
            macs: self.emitter.neighbours.find(key).map(Macs::from_neighbour),
            latest: held.latest.row(),
            hold: (held.hold.0.begun != 0).then(|| HoldRow::from_raw(&held.hold.0)),
            sent,
            held: held.queue.iter().map(|waiting| frames.push(&waiting.frame)).collect(),
            peer_tsval: held.peer_tsval,
            is_ack_due: held.is_ack_due,
            snooped: snooped.row(frames),
        }
    }

    /// Another port has the promises now: whoever reads the ledger must not end them.
    pub fn suspend_ledger(&mut self) {
        for id in self.core.table.ids() {
            if let Some(entry) = self.core.table.get_mut(id) {
                self.split.clear(&mut entry.held.slot);
            }
        }
        self.split.suspend();
    }

    /// The guest runs elsewhere, with its connections: the port forgets all of them. Nothing is ended.
    pub fn has_gone(&mut self) {
        for id in self.core.table.ids() {
            self.forget(id);
        }
        self.split.has_gone();
    }
}
