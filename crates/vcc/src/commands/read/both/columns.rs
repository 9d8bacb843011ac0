//! The table of connections on both sides.

use vcc_capture::both::{Alone, Compared, Direction, Face};
use vcc_command::table;
use vcc_view::Unit::{Bytes, Count, Text};
use vcc_view::Value;

use crate::commands::flows::table::{is_shown, table_of};

type Column = vcc_view::Column<Compared>;

static COLUMNS: &[Column] = &[
    Column::new("Guest", "guest", Text, |row| Value::End(row.guest), "the guest's end").always(),
    Column::new("Peer", "peer", Text, |row| Value::End(row.peer), "the other end").always(),
    Column::new(
        "Guest's side",
        "segments_guest",
        Count,
        |row| row.counts.segments.guest.into(),
        "segments in the first file",
    )
    .always(),
    Column::new(
        "Fabric's side",
        "segments_fabric",
        Count,
        |row| row.counts.segments.fabric.into(),
        "segments in the second file",
    )
    .always(),
    Column::new(
        "Compared",
        "payload_compared_bytes",
        Bytes,
        |row| row.counts.payload.compared_bytes().into(),
        "payload that was compared, repeated segments included",
    )
    .always(),
    Column::new(
        "Different",
        "payload_different_bytes",
        Bytes,
        |row| row.counts.payload.different_bytes.into(),
        "payload that differs",
    )
    .always(),
    Column::new(
        "Uncaptured",
        "payload_uncaptured_bytes",
        Bytes,
        |row| row.counts.payload.uncaptured_bytes.into(),
        "payload that is not in both files, because packets were cut",
    )
    .given(|row| row.counts.payload.uncaptured_bytes > 0),
    Column::new(
        "Changes",
        "changes",
        Count,
        |row| of_vcc(row).into(),
        "changes that vcc makes, each field of each segment",
    )
    .always(),
    Column::new(
        "Only guest",
        "only_guest",
        Count,
        |row| alone(row, Face::Guest).into(),
        "segments on the guest's side only",
    )
    .always(),
    Column::new(
        "Only fabric",
        "only_fabric",
        Count,
        |row| alone(row, Face::Fabric).into(),
        "segments on the fabric's side only",
    )
    .always(),
    Column::new(
        "Given up",
        "given_up",
        Count,
        |row| row.counts.given_up.segments.into(),
        "segments that were not compared, because one file is too far behind the other",
    )
    .given(|row| row.counts.given_up.segments > 0),
    Column::new(
        "Pairs",
        "pairs",
        Count,
        |row| row.counts.pairs.into(),
        "segments on both sides; a super-segment has a pair with each of its parts",
    )
    .wide(),
    Column::new(
        "Errors",
        "errors",
        Count,
        |row| row.counts.errors.into(),
        "differences that vcc does not make",
    )
    .always(),
];

fn of_vcc(row: &Compared) -> u64 {
    let changes = row.counts.changes.iter();
    changes.filter(|(change, _)| change.is_of_vcc()).map(|(_, count)| count).sum()
}

fn alone(row: &Compared, face: Face) -> u64 {
    let of = |direction: &Direction| row.counts.alone[*direction][face];
    Direction::BOTH.iter().map(of).map(|Alone { segments, .. }| segments).sum()
}

pub fn table(rows: &[Compared], is_wide: bool) -> String {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|column| is_shown(column, rows.iter(), is_wide)).collect();
    table_of(&columns, rows)
}

/// The help of the columns in `--help`.
pub fn help() -> String {
    let lines = table::pairs(COLUMNS.iter().map(|column| (column.heading(), column.plain_help())));
    format!("Columns with --both:\n{lines}")
}
