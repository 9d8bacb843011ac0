//! Which packets are recorded.

use vcc_capture::{Packet, Segment};
use vcc_port::RecordedPacket;
use vcc_view::End;

/// Ends of connections; an empty list stands for any.
pub struct Wanted<'a> {
    pub guests: &'a [End],
    pub peers: &'a [End],
}

impl Wanted<'_> {
    /// With a list, only TCP has ends. Of a packet in fragments, the first has them.
    pub fn admits(&self, packet: &mut RecordedPacket) -> bool {
        if self.guests.is_empty() && self.peers.is_empty() {
            return true;
        }
        let Some(segment) = segment(packet) else { return false };
        let (guest, peer) = match packet.is_from_guest {
            true => (segment.from, segment.to),
            false => (segment.to, segment.from),
        };
        let is_any =
            |ends: &[End], end| ends.is_empty() || ends.iter().any(|named| named.matches(end));
        is_any(self.guests, guest) && is_any(self.peers, peer)
    }
}

fn segment(packet: &mut RecordedPacket) -> Option<Segment> {
    let frame = std::mem::take(&mut packet.frame);
    let frame_bytes = packet.frame_bytes as usize;
    let mut captured = Packet { frame_bytes, frame, ..Packet::default() };
    let segment = captured.segment();
    packet.frame = captured.frame;
    segment
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vcc_port::RecordedSide;

    use super::*;

    fn packet(is_from_guest: bool) -> RecordedPacket {
        let [guest, peer] =
            ["10.0.0.1:40000", "192.0.2.9:80"].map(|end| end.parse().expect("an end"));
        let (from, to) = if is_from_guest { (guest, peer) } else { (peer, guest) };
        let frame = vcc_frames::Packet::new(from, to).frame();
        RecordedPacket {
            time: Duration::ZERO,
            port: 0,
            side: RecordedSide::Guest,
            is_from_guest,
            frame_bytes: frame.len() as u32,
            frame,
        }
    }

    #[test]
    fn packets_are_chosen_by_the_ends_of_their_connection() {
        let ends = |text: &str| -> Vec<End> {
            text.split_whitespace().map(|end| end.parse().expect("an end")).collect()
        };
        for (guests, peers, is_admitted) in [
            ("", "", true),
            ("10.0.0.0/8", "", true),
            ("", ":80 :443", true),
            ("10.0.0.1:40000", "192.0.2.9", true),
            ("192.0.2.9", "", false),
            ("10.0.0.1", ":443", false),
        ] {
            let wanted = Wanted { guests: &ends(guests), peers: &ends(peers) };
            for is_from_guest in [true, false] {
                let mut packet = packet(is_from_guest);
                let before = packet.clone();
                assert_eq!(wanted.admits(&mut packet), is_admitted, "{guests}, {peers}");
                assert_eq!(packet, before);
                packet.frame.truncate(40);
                assert_eq!(wanted.admits(&mut packet), guests.is_empty() && peers.is_empty());
            }
        }
    }
}
