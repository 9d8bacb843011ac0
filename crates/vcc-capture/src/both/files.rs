//! Two files, read in step, or both sides of one recording.

use std::io::BufRead;

use super::Comparison;
use super::face::{ByFace, Face};
use crate::capture::Capture;
use crate::packet::Packet;
use crate::port_side::PortSide;
use crate::problem::Problem;

/// A file with its next packet.
struct Reader<'a> {
    capture: Option<Capture<'a>>,
    /// The name of the only interface of which packets are wanted.
    only: Option<String>,
    next: Option<Packet>,
    /// To be filled again.
    spare: Packet,
}

impl<'a> Reader<'a> {
    fn open(
        reader: impl BufRead + 'a,
        only: Option<String>,
        complain: &mut dyn FnMut(Problem),
    ) -> Self {
        let capture = Capture::open(reader).map_err(complain).ok();
        Self { capture, only, next: None, spare: Packet::default() }
    }

    /// Reads the next packet, unless there is one.
    fn advance(&mut self, complain: &mut dyn FnMut(Problem)) {
        while self.next.is_none() {
            let Some(capture) = &mut self.capture else { return };
            match capture.next(&mut self.spare) {
                Ok(true) => {
                    let interface = &capture.interfaces()[self.spare.interface].name;
                    if self.only.as_ref().is_none_or(|only| only == interface) {
                        self.next = Some(std::mem::take(&mut self.spare));
                    }
                }
                Ok(false) => self.capture = None,
                Err(problem) => complain(problem),
            }
        }
    }
}

/// Passes the packets of both files to a comparison, in the order of their times. Problems of a file are
/// reported at once, and all that can be read is compared. `device`: of recordings, only this port's.
pub fn read_in_step<R: BufRead>(
    readers: ByFace<R>,
    device: Option<&str>,
    comparison: &mut Comparison,
    complain: &mut dyn FnMut(Face, Problem),
) {
    let mut open = |face, reader| {
        let only = device.map(|device| PortSide { device, face }.name());
        Reader::open(reader, only, &mut |problem| complain(face, problem))
    };
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

/// The devices of the ports that a recording is of, by the interfaces that it describes before its first
/// packet; none if it is no recording, or is of one side.
pub fn recorded_devices(reader: impl BufRead) -> Result<Vec<String>, Problem> {
    let mut capture = Capture::open(reader)?;
    // What cannot be read of a packet is reported when the packets are read.
    let _ = capture.next(&mut Packet::default());
    let interfaces = capture.interfaces();
    let names = || interfaces.iter().map(|it| &*it.name);
    let has_both = |device| {
        let mut sides = Face::BOTH.into_iter().map(|face| PortSide { device, face }.name());
        sides.all(|side| names().any(|name| name == side))
    };
    let guest_side = names().filter_map(PortSide::from_name).filter(|it| it.face == Face::Guest);
    let devices = guest_side.map(|side| side.device).filter(|device| has_both(device));
    Ok(devices.map(str::to_owned).collect())
}
