//! The columns of connections in captures, behind those of flows.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use vcc_capture::Life;
use vcc_view::Unit::{Bytes, Fraction, Us};
use vcc_view::{FLOW_COLUMNS, FlowView, Shown};

type Column = vcc_view::Column<Row>;

/// A connection in a capture.
pub struct Row {
    pub flow: FlowView,
    pub life: Life,
}

const NS_PER_US: u64 = 1000;

pub static MORE: &[Column] = &[
    Column::new(
        "Began",
        "began_us",
        Us,
        |row| (row.life.began_ns / NS_PER_US).into(),
        "its first packet, since the first one of the file",
    )
    .always(),
    Column::new(
        "Lasted",
        "lasted_us",
        Us,
        |row| (row.life.lasted_ns / NS_PER_US).into(),
        "the time from its first to its last packet; RATE is the mean over it",
    )
    .always(),
    Column::new(
        "Sent",
        "sent_bytes",
        Bytes,
        |row| row.life.sent_bytes.into(),
        "new bytes that the guest sent",
    )
    .always(),
    Column::new(
        "Acknowledged",
        "acked_bytes",
        Bytes,
        |row| row.life.acked_bytes.into(),
        "bytes that the peer acknowledged",
    ),
    Column::new(
        "Beyond",
        "beyond",
        Fraction,
        |row| share(row.life.beyond_bytes, row.life.sent_bytes).into(),
        "the share of these bytes that the underlay would have delayed: they left when more was in \
         flight than its window",
    )
    .always(),
    Column::new(
        "Beyond, time",
        "beyond_time",
        Fraction,
        |row| share(row.life.beyond_ns, row.life.lasted_ns).into(),
        "the share of the time in which more was in flight than the underlay's window",
    ),
];

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(FLOW_COLUMNS.len() + MORE.len()))?;
        for column in FLOW_COLUMNS {
            map.serialize_entry(column.key, &(column.value)(&self.flow))?;
        }
        for column in MORE {
            map.serialize_entry(column.key, &(column.value)(self))?;
        }
        map.end()
    }
}

/// The help of the columns in `--help`.
pub fn help() -> String {
    let width = MORE.iter().map(|column| column.heading().chars().count()).max().unwrap_or(0);
    let shown = MORE.iter().filter(|column| !matches!(column.shown, Shown::Json));
    let line =
        |column: &Column| format!("  {:<width$}  {}\n", column.heading(), column.plain_help());
    let lines: String = shown.map(line).collect();
    format!(
        "Columns behind those of `vcc flows`, whose `--help` describes them; PORT is the file:\n{lines}\n\
         docs/captures.md explains what a capture shows."
    )
}
