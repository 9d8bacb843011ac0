//! Two files, read in step.

use std::io::BufRead;

use super::Comparison;
use super::face::{ByFace, Face};
use crate::capture::Capture;
use crate::packet::Packet;
use crate::problem::Problem;

/// A file with its next packet.
struct Reader<'a> {
    capture: Option<Capture<'a>>,
    next: Option<Packet>,
    /// To be filled again.
    spare: Packet,
}

impl<'a> Reader<'a> {
    fn open(reader: impl BufRead + 'a, complain: &mut dyn FnMut(Problem)) -> Self {
        let capture = Capture::open(reader).map_err(complain).ok();
        Self { capture, next: None, spare: Packet::default() }
    }

    /// Reads the next packet, unless there is one.
    fn advance(&mut self, complain: &mut dyn FnMut(Problem)) {
        while self.next.is_none() {
            let Some(capture) = &mut self.capture else { return };
            match capture.next(&mut self.spare) {
                Ok(true) => self.next = Some(std::mem::take(&mut self.spare)),
                Ok(false) => self.capture = None,
                Err(problem) => complain(problem),
            }
        }
    }
}

/// Passes the packets of both files to a comparison, in the order of their times. Problems of a file are
/// reported at once, and all that can be read is compared.
pub fn read_in_step<R: BufRead>(
    readers: ByFace<R>,
    comparison: &mut Comparison,
    complain: &mut dyn FnMut(Face, Problem),
) {
    let mut open = |face, reader| Reader::open(reader, &mut |problem| complain(face, problem));
    let mut files = ByFace {
        guest: open(Face::Guest, readers.guest),
        fabric: open(Face::Fabric, readers.fabric),
    };
    loop {
        for face in Face::BOTH {
            files[face].advance(&mut |problem| complain(face, problem));
            if files[face].next.is_none() {
                comparison.close(face);
            }
        }
        let time_ns = |face| files[face].next.as_ref().map(|packet| packet.time_ns);
        let times_ns = ByFace { guest: time_ns(Face::Guest), fabric: time_ns(Face::Fabric) };
        let Some(face) = comparison.next(times_ns) else { return };
        let file = &mut files[face];
        let Some(mut packet) = file.next.take() else { return };
        comparison.take(face, &mut packet);
        file.spare = packet;
    }
}
