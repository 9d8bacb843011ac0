//! A difference that vcc does not make.

use std::net::SocketAddr;

use super::face::{ByFace, Direction};
use super::field::Field;

/// As many are kept; the others are counted.
pub(crate) const DIFFERENCES_MAX: usize = 20;

/// A field in which two segments differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub direction: Direction,
    /// Of the segment in front of the port.
    pub seq: u32,
    pub field: Field,
    pub values: ByFace<String>,
    /// Of the packets' records, from the beginning of each file.
    pub offsets: ByFace<u64>,
}

impl Difference {
    /// In one line, with the names of the files.
    pub fn line(&self, files: ByFace<&str>) -> String {
        let Self { from, to, seq, field, values, offsets, .. } = self;
        format!(
            "{from} > {to}, segment {seq}, {field}: {} in {} at byte {}, {} in {} at byte {}",
            values.guest, files.guest, offsets.guest, values.fabric, files.fabric, offsets.fabric
        )
    }
}
