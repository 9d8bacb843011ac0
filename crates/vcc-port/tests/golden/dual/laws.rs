//! Invariants of every frame, after any decision of the engine.

use vcc_engine::Mode;
use vcc_frames::checksum;

use super::DualRun;
use crate::direction::Direction;
use crate::segment::Parsed;

impl DualRun {
    /// Whether the port never changes a frame.
    pub fn changes_nothing(&self) -> bool {
        self.mode() == Mode::Shadow || !self.underlay().controls()
    }

    /// Checksums stay right or wrong, and only the fields change that the datapath may change.
    pub(super) fn assert_laws(
        &self,
        from: Direction,
        parsed: &Parsed,
        gso_size: u32,
        frame: &[u8],
        out: &[u8],
    ) {
        let place = self.place(from);
        let after = Parsed::parse(out, gso_size).unwrap_or_else(|counter| panic!("{counter:?}"));
        assert_eq!(
            checksum::verify(frame, &parsed.at),
            checksum::verify(out, &after.at),
            "{place}: checksums"
        );
        let [before, after] = match parsed.header_bytes() == after.header_bytes()
            && parsed.segment.options == after.segment.options
        {
            true => [parsed.fixed_part(frame), after.fixed_part(out)],
            false => {
                [parsed.fixed_part_without_options(frame), after.fixed_part_without_options(out)]
            }
        };
        assert_eq!(before, after, "{place}: what must stay");
        if self.changes_nothing() {
            self.assert_frame(from, out, frame);
        }
    }
}
