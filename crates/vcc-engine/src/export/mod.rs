//! The connections of a guest that moves to another host, as text: what `vcc export` writes and
//! `vcc import` reads.
//!
//! A line of JSON says what follows: the format, who wrote it and the names of the fields. Each
//! connection is a line: its ends, its VLAN, the underlay that its window is of, and its fields. The
//! last line has the CRC-32 of all before it. Fields have names, not places, so another version of
//! vcc reads what it knows; [`FORMAT`] changes when that would not do.

mod row;
mod unreadable;

use serde::{Deserialize, Serialize};

pub use row::{Connection, Fields, Row};
pub use unreadable::Unreadable;

pub const FORMAT: u32 = 1;

/// The longest text that is read: a million connections have some 300 MB.
pub const LONGEST_BYTES: u64 = 1 << 29;

#[derive(Serialize, Deserialize)]
struct Header {
    vcc_export: u32,
    /// For the person who reads it.
    written_by: String,
    device: String,
    connections: usize,
    fields: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Footer {
    crc32: u32,
}

/// Of the connections, those that [can travel](crate::FlowState::can_travel). `written_by`:
/// this program and its version.
pub fn write(written_by: &str, device: &str, all: &[Connection]) -> String {
    let travel: Vec<&Connection> = all.iter().filter(|it| it.state.can_travel()).collect();
    let header = Header {
        vcc_export: FORMAT,
        written_by: written_by.to_owned(),
        device: device.to_owned(),
        connections: travel.len(),
        fields: Fields::names(),
    };
    let mut text = line(&header);
    for it in travel {
        text += &line(&Row::from_connection(it));
    }
    let footer = Footer { crc32: crc32fast::hash(text.as_bytes()) };
    text + &line(&footer)
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and strings have a form in JSON") + "\n"
}

/// The connections, in the order of the text.
pub fn read(text: &str) -> Result<Vec<Connection>, Unreadable> {
    let (first, _) = text.split_once('\n').ok_or(Unreadable::NotOurs)?;
    let header: Header = serde_json::from_str(first).map_err(|_| Unreadable::of_header(first))?;
    if header.vcc_export != FORMAT {
        return Err(Unreadable::OtherFormat(header.vcc_export));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let [_, rows @ .., last] = &lines[..] else { return Err(Unreadable::CutShort) };
    let footer: Footer = serde_json::from_str(last).map_err(|_| Unreadable::CutShort)?;
    if rows.len() != header.connections {
        return Err(Unreadable::CutShort);
    }
    if crc32fast::hash(&text.as_bytes()[..text.len() - last.len()]) != footer.crc32 {
        return Err(Unreadable::Changed);
    }
    let fields = Fields::from_names(&header.fields).map_err(Unreadable::Lacks)?;
    let connection = |(text, number): (&&str, usize)| {
        let row: Option<Row> = serde_json::from_str(text).ok();
        row.and_then(|row| row.connection(&fields)).ok_or(Unreadable::Row(number))
    };
    rows.iter().zip(2..).map(connection).collect()
}

#[cfg(test)]
mod tests;
