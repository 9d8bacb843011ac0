//! What two files have shown, as JSON.

use std::net::SocketAddr;

use serde::Serialize;
use vcc_capture::both::{
    Alone, ByDirection, ByFace, Change, Compared, Counts, Delays, Difference, Direction, Face,
    Field,
};

use super::Report;

const NS_PER_US: f64 = 1000.0;

#[derive(Serialize)]
pub struct Document<'a> {
    files: [File<'a>; 2],
    connections: Vec<Connection>,
    total: Found,
    errors: Vec<Error>,
    clocks: &'static str,
    from_guest_us: Option<f64>,
    to_guest_us: Option<f64>,
    fabric_ahead_us: Option<f64>,
}

#[derive(Serialize)]
struct File<'a> {
    side: &'static str,
    file: &'a str,
    packets: u64,
    segments: u64,
    packets_unread: u64,
    segments_cut: u64,
    segments_of_others: u64,
    segments_left_out: u64,
    problems: &'a [String],
}

#[derive(Serialize)]
struct Connection {
    guest: SocketAddr,
    peer: SocketAddr,
    has_syn: bool,
    #[serde(flatten)]
    found: Found,
}

#[derive(Serialize)]
struct Found {
    segments: Sides<u64>,
    pairs: u64,
    copies: u64,
    payload_equal_bytes: u64,
    payload_different_bytes: u64,
    payload_uncaptured_bytes: u64,
    changes: Vec<Changed>,
    only_from_guest: Sides<Part>,
    only_to_guest: Sides<Part>,
    reports_from_guest: u64,
    reports_to_guest: u64,
    given_up: Part,
    errors: u64,
}

#[derive(Serialize)]
struct Sides<T> {
    guest: T,
    fabric: T,
}

#[derive(Serialize)]
struct Part {
    segments: u64,
    payload_bytes: u64,
}

#[derive(Serialize)]
struct Changed {
    change: &'static str,
    by_vcc: bool,
    from: Option<u16>,
    to: Option<u16>,
    option: Option<u8>,
    count: u64,
}

#[derive(Serialize)]
struct Error {
    from: SocketAddr,
    to: SocketAddr,
    is_from_guest: bool,
    sequence_number: u32,
    field: &'static str,
    /// In the payload of the guest's side.
    payload_at: Option<u32>,
    option: Option<u8>,
    values: Sides<String>,
    offsets: Sides<u64>,
}

impl<'a> Document<'a> {
    pub fn new(report: &'a Report) -> Self {
        let outcome = &report.outcome;
        let delays = outcome.delays;
        let medians = match delays {
            Delays::Agreed(ByDirection { from_guest, to_guest }) => Some((from_guest, to_guest)),
            _ => None,
        };
        Self {
            files: Face::BOTH.map(|face| file(report, face)),
            connections: outcome.connections.iter().map(connection).collect(),
            total: found(&outcome.total),
            errors: outcome.differences.iter().map(error).collect(),
            clocks: match delays {
                Delays::Agreed(_) => "agree",
                Delays::Apart(_) => "apart",
                Delays::Reversed => "reversed",
                Delays::Unknown => "unknown",
            },
            from_guest_us: medians.map(|(from_guest, _)| us(from_guest)),
            to_guest_us: medians.map(|(_, to_guest)| us(to_guest)),
            fabric_ahead_us: match delays {
                Delays::Apart(ahead_ns) => Some(us(ahead_ns)),
                _ => None,
            },
        }
    }
}

fn us(ns: i64) -> f64 {
    ns as f64 / NS_PER_US
}

fn file(report: &Report, face: Face) -> File<'_> {
    let seen = &report.outcome.seen[face];
    File {
        side: match face {
            Face::Guest => "guest",
            Face::Fabric => "fabric",
        },
        file: &report.files[face],
        packets: seen.packets,
        segments: seen.segments,
        packets_unread: seen.unread,
        segments_cut: seen.cut,
        segments_of_others: seen.others,
        segments_left_out: seen.left_out,
        problems: &report.problems[face],
    }
}

fn connection(compared: &Compared) -> Connection {
    let Compared { guest, peer, has_syn, ref counts } = *compared;
    Connection { guest, peer, has_syn, found: found(counts) }
}

fn found(counts: &Counts) -> Found {
    Found {
        segments: sides(counts.segments, |segments| segments),
        pairs: counts.pairs,
        copies: counts.copies,
        payload_equal_bytes: counts.payload.equal_bytes,
        payload_different_bytes: counts.payload.different_bytes,
        payload_uncaptured_bytes: counts.payload.uncaptured_bytes,
        changes: counts.changes.iter().map(|(change, count)| changed(*change, *count)).collect(),
        only_from_guest: sides(counts.alone.from_guest, part),
        only_to_guest: sides(counts.alone.to_guest, part),
        reports_from_guest: counts.reports.from_guest,
        reports_to_guest: counts.reports.to_guest,
        given_up: part(counts.given_up),
        errors: counts.errors,
    }
}

fn sides<T, U>(values: ByFace<T>, map: impl Fn(T) -> U) -> Sides<U> {
    Sides { guest: map(values.guest), fabric: map(values.fabric) }
}

fn part(alone: Alone) -> Part {
    Part { segments: alone.segments, payload_bytes: alone.payload_bytes }
}

fn changed(change: Change, count: u64) -> Changed {
    Changed {
        change: change.name(),
        by_vcc: change.is_of_vcc(),
        from: change.values().map(|(from, _)| from),
        to: change.values().map(|(_, to)| to),
        option: change.kind(),
        count,
    }
}

fn error(difference: &Difference) -> Error {
    Error {
        from: difference.from,
        to: difference.to,
        is_from_guest: difference.direction == Direction::FromGuest,
        sequence_number: difference.seq,
        field: difference.field.name(),
        payload_at: match difference.field {
            Field::Payload { at } => Some(at),
            _ => None,
        },
        option: match difference.field {
            Field::Option { kind } => Some(kind),
            _ => None,
        },
        values: sides(difference.values.clone(), |value| value),
        offsets: sides(difference.offsets, |offset| offset),
    }
}
