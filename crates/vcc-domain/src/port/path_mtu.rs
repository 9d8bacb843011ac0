//! ICMP messages about packets that the path does not carry (`engine/pmtu.h`).

use vcc_engine::TooBig;

use super::Port;
use super::repairing::Repair;
use crate::frame::{Frame, Out};
use crate::icmp;
use crate::table::Entry;

impl Port {
    /// A frame to the guest that is no segment. If it is such a message about a connection whose
    /// segments the port holds, they leave in smaller ones from now on, and what is lost leaves
    /// again.
    pub(super) fn hear_too_big(&mut self, frame: &mut Frame, out: &mut Out) {
        let Some(quote) = icmp::too_big(frame) else { return };
        let id = self.core.table.find(&quote.key).filter(|id| self.settle_rule(*id));
        let Some(id) = id else { return };
        Repair::judge(&mut self.core, id);
        let message = TooBig { now_us: self.core.now_us(), ..quote.message };
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
        if !held.shrink_path(flow, self.core.treatments.params_of(flow), &message) {
            return;
        }
        // A guest ignores a message about what has been acknowledged (Linux: tcp_v4_err).
        let seq = held.hold.split_ack(message.seq);
        if seq != message.seq {
            quote.set_seq(frame, seq);
        }
        self.send_waiting(id, out);
        self.split.record(&mut self.core, id);
    }
}
