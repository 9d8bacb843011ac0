//! Duplicate SACKs (RFC 2883).

use vcc_frames::Packet;
use vcc_frames::options;
use vcc_net::seq::after;
use vcc_uml::Tampered;

use super::Segments;
use super::segment::{Connections, Read};

/// The most blocks besides timestamps (RFC 2018, 3).
const BLOCKS_MOST: usize = 3;

#[derive(Default)]
struct Repaired {
    /// The end of what has come.
    end: Option<u32>,
    /// Retransmissions that the next acknowledgements call needless.
    blocks: Vec<(u32, u32)>,
}

/// Reports each retransmission as needless, so that the sender undoes the reduction that came with
/// it (RFC 3708; RFC 8985, 7).
#[derive(Default)]
pub struct Undo(Connections<Repaired>);

impl Segments for Undo {
    fn sends(&mut self, mut segment: Packet, out: &mut Tampered) {
        let repaired = self.0.of_sent(&segment);
        if segment.is_pure_ack() && !repaired.blocks.is_empty() {
            // A D-SACK block is the first one, and below the acknowledgement or in the second.
            let false_block = repaired.blocks.remove(0);
            let others = segment.take_sack().unwrap_or_default();
            let edge = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| others[at + i]));
            let others = (0..others.len() / 8).map(|i| (edge(8 * i), edge(8 * i + 4)));
            let blocks: Vec<_> =
                [false_block].into_iter().chain(others).take(BLOCKS_MOST).collect();
            segment.add_option(&options::sack(&blocks));
        }
        out.sent.push(segment.frame());
    }

    fn receives(&mut self, segment: Packet, out: &mut Tampered) {
        let repaired = self.0.of_received(&segment);
        if !segment.payload.is_empty() {
            match repaired.end {
                Some(end) if !after(segment.end(), end) => {
                    repaired.blocks.push((segment.seq, segment.end()));
                }
                _ => repaired.end = Some(segment.end()),
            }
        }
        out.received.push(segment.frame());
    }
}
