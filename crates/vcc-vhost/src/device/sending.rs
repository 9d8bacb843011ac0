//! From the guest to the wire.

use vcc_domain::{Out, Verdict};
use vcc_net::clock::now_ns;

use super::{BATCH, Device, Rings};
use crate::rings::{self, Taken};

impl Device {
    /// From the guest to the wire.
    pub(super) fn send(&mut self, rings: &mut Rings) -> bool {
        let mut more = false;
        for ring in rings.sending().collect::<Vec<_>>() {
            more |= match rings.is_up(ring) {
                true => self.send_of(ring, rings),
                false => self.discard(ring, rings),
            };
        }
        more
    }

    fn send_of(&mut self, ring: usize, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            let memory = rings.memory;
            let mut bytes = std::mem::take(&mut self.from_guest);
            let header = match rings::take(&mut rings.all[ring].queue, memory, &mut bytes) {
                Ok(Taken::Nothing) => {
                    self.from_guest = bytes;
                    return false;
                }
                Ok(Taken::Frame(header)) => Some(header.of_guest()),
                Ok(Taken::Bad) => None,
                Err(error) => return self.stop(ring, rings, error),
            };
            let features = self.features;
            let header = header.filter(|header| header.check(bytes.len(), features).is_ok());
            let Some(header) = header else {
                self.counts.bad_from_guest += 1;
                self.from_guest = bytes;
                continue;
            };
            if rings.receiving_pairs() > 1 {
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

    /// Frames of a guest on a ring that is started and disabled are discarded (vhost-user, "Ring
    /// states").
    fn discard(&mut self, ring: usize, rings: &mut Rings) -> bool {
        for _ in 0..BATCH {
            let memory = rings.memory;
            match rings::take(&mut rings.all[ring].queue, memory, &mut self.from_guest) {
                Ok(Taken::Nothing) => return false,
                Ok(Taken::Frame(_) | Taken::Bad) => {}
                Err(error) => return self.stop(ring, rings, error),
            }
        }
        true
    }
}
