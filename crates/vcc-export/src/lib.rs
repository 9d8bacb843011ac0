//! The connections of a guest that moves to another host, as text: what `vcc export` writes and
//! `vcc import` reads.
//!
//! A line of JSON says what follows: the format, who wrote it and the names of the fields. Each
//! connection is a line: its ends, its VLAN, the underlay that its window is of, and its fields. The
//! last line has the CRC-32 of all before it. Fields have names, not places, so another version of
//! vcc reads what it knows; [`FORMAT`] changes when that would not do.

mod unreadable;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use vcc_engine::{Field, FlowState, Underlay, sys};
use vcc_port::Flow;

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

/// Guest, peer, VLAN, underlay, and the numbers of the header's fields.
#[derive(Serialize, Deserialize)]
struct Row(SocketAddr, SocketAddr, Option<u16>, String, Vec<u32>);

#[derive(Serialize, Deserialize)]
struct Footer {
    crc32: u32,
}

/// Of `flows`, those that [can travel](FlowState::can_travel). `written_by`: this program and
/// its version.
pub fn write(written_by: &str, device: &str, flows: &[Flow]) -> String {
    let travel: Vec<&Flow> = flows.iter().filter(|it| it.state.can_travel()).collect();
    let header = Header {
        vcc_export: FORMAT,
        written_by: written_by.to_owned(),
        device: device.to_owned(),
        connections: travel.len(),
        fields: Field::ALL.iter().map(|field| field.name.to_owned()).collect(),
    };
    let mut text = line(&header);
    for it in travel {
        // One that only the process which loaded it can name has no name elsewhere either.
        let underlay = Underlay::from_number(it.state.underlay).map_or("", Underlay::name);
        let numbers = Field::ALL.iter().map(|field| field.of(&it.state)).collect();
        text += &line(&Row(it.guest, it.peer, place(it), underlay.to_owned(), numbers));
    }
    let footer = Footer { crc32: crc32fast::hash(text.as_bytes()) };
    text + &line(&footer)
}

/// Beside a VLAN: the connection is inside a tunnel.
const INSIDE: u16 = sys::KEY_INSIDE as u16;

fn place(flow: &Flow) -> Option<u16> {
    if flow.inside { Some(flow.vlan.unwrap_or(0) | INSIDE) } else { flow.vlan }
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and strings have a form in JSON") + "\n"
}

/// The connections, in the order of the text.
pub fn read(text: &str) -> Result<Vec<Flow>, Unreadable> {
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
    let fields = fields(&header)?;
    rows.iter().zip(2..).map(|(row, number)| flow(row, number, &fields)).collect()
}

/// Those of the header, in its order; None for one that this version does not know.
fn fields(header: &Header) -> Result<Vec<Option<&'static Field>>, Unreadable> {
    let lacks = |field: &&Field| !header.fields.iter().any(|name| name == field.name);
    match Field::ALL.iter().find(lacks) {
        Some(field) => Err(Unreadable::Lacks(field.name)),
        None => Ok(header.fields.iter().map(|name| Field::named(name)).collect()),
    }
}

fn flow(row: &str, number: usize, fields: &[Option<&'static Field>]) -> Result<Flow, Unreadable> {
    let wrong = || Unreadable::Row(number);
    let Row(guest, peer, vlan, underlay, numbers) =
        serde_json::from_str(row).map_err(|_| wrong())?;
    if numbers.len() != fields.len() {
        return Err(wrong());
    }
    // Its window is one of segments under any underlay. The rule here decides which is next.
    let underlay = underlay.parse().unwrap_or_else(|_| default_underlay());
    let mut state = FlowState::travelling(underlay);
    for (field, value) in fields.iter().zip(numbers) {
        if field.is_some_and(|field| !field.set(&mut state, value)) {
            return Err(wrong());
        }
    }
    let inside = vlan.is_some_and(|place| place & INSIDE != 0);
    let vlan = vlan.map(|place| place & !INSIDE).filter(|vlan| *vlan != 0);
    Ok(Flow { guest, peer, vlan, inside, state })
}

fn default_underlay() -> Underlay {
    let built_in = Underlay::built_in().find(|it| it.controls());
    built_in.expect("one of the underlays controls the window")
}

#[cfg(test)]
mod tests;
