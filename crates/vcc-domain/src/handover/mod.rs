//! A port's state of its guest's connections, as bytes that move with the guest to another host:
//! their description ([`vcc_engine::export`]), the frames held, and the data promised.
//!
//! A line of JSON describes the rest: the format, who wrote it, how much there is, and the names of
//! the fields. Each connection is a line, and so is each that was ended. Behind the lines are the frames, as
//! they are, in the order in which the lines name them. The last line has the CRC-32 of all before it.
//! Everything has names, so another version of vcc reads what it knows; [`FORMAT`] changes when that
//! would not do.

mod refused;
mod rows;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vcc_engine::export::Fields;

use crate::frame::{Checksum, Frame};
pub use refused::CannotTakeOver;
pub(crate) use rows::{
    AcceptedRow, EndedRow, HoldRow, LatestRow, LinkRow, Macs, ROW_MAX_BYTES, SentRow, SnoopRow,
    SnoopedRow, Travelling,
};

pub(crate) const FORMAT: u32 = 1;

/// Limit of the first line: a hundred times its length.
const HEADER_MAX_BYTES: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
struct Header {
    vcc_domain: u32,
    /// For the person who reads it.
    written_by: String,
    connections: usize,
    ended: usize,
    frames_bytes: usize,
    fields: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Footer {
    crc32: u32,
}

/// The length of a frame, the payload of its full segments, and the state of its checksum.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct FrameRow(u32, u16, u8);

/// Frames, one after the other.
#[derive(Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    pub(crate) fn push(&mut self, frame: &Frame) -> FrameRow {
        self.0.extend_from_slice(&frame.bytes);
        let checksum = match frame.checksum {
            Checksum::Full => 0,
            Checksum::Verified => 1,
            Checksum::Partial => 2,
        };
        FrameRow(frame.bytes.len() as u32, frame.gso_size, checksum)
    }
}

/// Frames that are taken in the order in which they were pushed.
pub(crate) struct Taken<'bytes>(&'bytes [u8]);

impl Taken<'_> {
    /// None if the row is invalid.
    pub(crate) fn take(&mut self, FrameRow(bytes, gso_size, checksum): FrameRow) -> Option<Frame> {
        let (frame, rest) = self.0.split_at_checked(bytes as usize)?;
        self.0 = rest;
        let checksum = match checksum {
            0 => Checksum::Full,
            1 => Checksum::Verified,
            2 => Checksum::Partial,
            _ => return None,
        };
        Some(Frame { bytes: frame.to_vec(), gso_size, checksum })
    }
}

/// All of it, but for the frames' bytes.
pub(crate) struct State {
    pub connections: Vec<Travelling>,
    pub ended: Vec<EndedRow>,
    /// Frames that wait for the guest's buffers; whether each is from the fabric.
    pub waiting: Vec<(FrameRow, bool)>,
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("numbers and strings have a form in JSON");
    bytes.push(b'\n');
    bytes
}

impl State {
    pub(crate) fn to_bytes(&self, written_by: &str, frames: &Frames) -> Vec<u8> {
        let header = Header {
            vcc_domain: FORMAT,
            written_by: written_by.to_owned(),
            connections: self.connections.len(),
            ended: self.ended.len(),
            frames_bytes: frames.0.len(),
            fields: Fields::names(),
        };
        let mut bytes = line(&header);
        self.connections.iter().for_each(|row| bytes.extend(line(row)));
        self.ended.iter().for_each(|row| bytes.extend(line(row)));
        bytes.extend(line(&self.waiting));
        bytes.extend_from_slice(&frames.0);
        let footer = Footer { crc32: crc32fast::hash(&bytes) };
        bytes.extend(line(&footer));
        bytes
    }

    /// With the fields of its connections, and its frames. `max_flows`: a state of more connections is
    /// not read.
    pub(crate) fn of_bytes(
        bytes: &[u8],
        max_flows: usize,
    ) -> Result<(Self, Fields, Taken<'_>), CannotTakeOver> {
        let mut start = &bytes[..bytes.len().min(HEADER_MAX_BYTES)];
        let first = take_line(&mut start).ok_or(CannotTakeOver::NotOurs)?;
        let header: Header =
            serde_json::from_slice(first).map_err(|_| CannotTakeOver::of_header(first))?;
        if header.vcc_domain != FORMAT {
            return Err(CannotTakeOver::OtherFormat(header.vcc_domain));
        }
        // Before any of it is believed.
        let rows = bytes.get(first.len()..).unwrap_or_default();
        let lines = header.connections.saturating_add(header.ended).saturating_add(1);
        let mut rest = rows;
        for _ in 0..lines {
            take_line(&mut rest).ok_or(CannotTakeOver::CutShort)?;
        }
        let (frames, last) =
            rest.split_at_checked(header.frames_bytes).ok_or(CannotTakeOver::CutShort)?;
        let footer: Footer = serde_json::from_slice(last).map_err(|_| CannotTakeOver::CutShort)?;
        if crc32fast::hash(&bytes[..bytes.len() - last.len()]) != footer.crc32 {
            return Err(CannotTakeOver::Changed);
        }
        let (connections, max) = (header.connections, max_flows);
        if connections > max {
            return Err(CannotTakeOver::NoRoom { connections, max });
        }
        let fields = Fields::from_names(&header.fields).map_err(CannotTakeOver::Lacks)?;
        let mut rows = Rows { rest: rows, read: 0 };
        let state = State {
            connections: rows.take(connections)?,
            ended: rows.take(header.ended)?,
            waiting: rows.next()?,
        };
        Ok((state, fields, Taken(frames)))
    }
}

/// Lines of JSON.
struct Rows<'bytes> {
    rest: &'bytes [u8],
    read: usize,
}

impl Rows<'_> {
    fn next<T: DeserializeOwned>(&mut self) -> Result<T, CannotTakeOver> {
        let row = take_line(&mut self.rest).ok_or(CannotTakeOver::CutShort)?;
        self.read += 1;
        serde_json::from_slice(row).map_err(|_| CannotTakeOver::Row(self.read))
    }

    fn take<T: DeserializeOwned>(&mut self, count: usize) -> Result<Vec<T>, CannotTakeOver> {
        (0..count).map(|_| self.next()).collect()
    }
}

fn take_line<'bytes>(bytes: &mut &'bytes [u8]) -> Option<&'bytes [u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = bytes.split_at(end + 1);
    *bytes = rest;
    Some(line)
}
