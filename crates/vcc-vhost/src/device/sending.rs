//! From the guest to the wire.

use vcc_domain::{Out, Verdict};

use super::{BATCH, Device, Rings};
use crate::rings::{self, Taken};
use crate::wake::now_ns;

impl Device {
    /// From the guest to the wire, as long as the port takes frames.
    pub(super) fn send(&mut self, rings: &mut Rings) -> bool {
        let mut more = false;
        let mut all: Vec<usize> = rings.sending().collect();
        // The ring behind the one that has filled the port comes first.
        let next = all.iter().position(|ring| *ring > self.filled_by).unwrap_or(0);
        all.rotate_left(next);
        for ring in all {
            if !self.port.wants_frames() {
                break;
            }
            more |= self.send_of(ring, rings);
            if !self.port.wants_frames() {
                self.filled_by = ring;
            }
        }
        more
    }

    fn send_of(&mut self, ring: usize, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            if !self.port.wants_frames() {
                return false;
            }
            let memory = rings.memory;
            let mut bytes = std::mem::take(&mut self.from_guest);
            let taken = rings::take(&mut rings.all[ring].queue, memory, &mut bytes);
            let (head, header) = match taken {
                Ok(Taken::Nothing) => {
                    self.from_guest = bytes;
                    return false;
                }
                Ok(Taken::Frame(head, header)) => (head, Some(header)),
                Ok(Taken::Bad(head)) => (head, None),
                Err(error) => return self.stop(ring, rings, error),
            };
            // The frame is in our memory, so its descriptors are the guest's again.
            if let Err(error) = rings::give_back(&mut rings.all[ring].queue, memory, head) {
                return self.stop(ring, rings, error);
            }
            let features = self.features;
            let header = header.filter(|header| header.check(bytes.len(), features).is_ok());
            let Some(header) = header else {
                self.counts.bad_from_guest += 1;
                self.from_guest = bytes;
                continue;
            };
            if rings.sending().nth(1).is_some() {
                self.steering.note(&bytes, ring / 2);
            }
            let mut frame = header.frame(bytes);
            let mut out = Out::default();
            let verdict = self.port.from_guest(now_ns(), &mut frame, &mut out);
            if verdict == Verdict::Pass {
                self.put_on_wire(header.passed(&frame), &frame);
            }
            self.forward(out, rings);
            self.from_guest = frame.bytes;
        }
        true
    }
}
