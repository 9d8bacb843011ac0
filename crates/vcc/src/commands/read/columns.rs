//! The columns of connections in captures, behind those of flows.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use vcc_capture::{ECN_FLAGS, Life, Syn};
use vcc_engine::Limit;
use vcc_overlay::{Class, Guess};
use vcc_view::Unit::{Bytes, Count, Fraction, Text, Us};
use vcc_view::{FLOW_COLUMNS, FlowView, Shown};

type Column = vcc_view::Column<Row>;

/// A connection in a capture.
#[derive(Clone)]
pub struct Row {
    pub flow: FlowView,
    pub life: Life,
    /// The second view of a connection that is shown twice.
    pub is_turned: bool,
    /// Of the guest's own congestion control; None if it was not watched.
    pub guess: Option<Guess>,
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
    .sort("began")
    .always(),
    Column::new(
        "Lasted",
        "lasted_us",
        Us,
        |row| (row.life.lasted_ns / NS_PER_US).into(),
        "the time from its first to its last packet; RATE is the mean over it",
    )
    .sort("lasted")
    .always(),
    Column::new(
        "Sent",
        "sent_bytes",
        Bytes,
        |row| row.life.sent_bytes.into(),
        "new bytes that the guest sent; a FIN counts as one",
    )
    .sort("sent")
    .always(),
    Column::new(
        "Acknowledged",
        "acked_bytes",
        Bytes,
        |row| row.life.acked_bytes.into(),
        "bytes that the peer acknowledged",
    ),
    Column::new(
        "Lost upstream",
        "lost_upstream_bytes",
        Bytes,
        |row| row.life.lost_upstream_bytes.into(),
        "the part of SENT that was lost between the guest and the capture, and sent again",
    )
    .sort("lost-upstream")
    .given(|row| row.life.lost_upstream_bytes > 0),
    Column::new(
        "Reordered",
        "reordered_bytes",
        Bytes,
        |row| row.life.reordered_bytes.into(),
        "the part of SENT that came behind later bytes within half a round trip",
    )
    .sort("reordered")
    .given(|row| row.life.reordered_bytes > 0),
    Column::new(
        "Recoveries",
        "recoveries",
        Count,
        |row| u64::from(row.life.recoveries).into(),
        "how often fast recovery began",
    )
    .sort("recoveries"),
    Column::new(
        "Timeouts",
        "timeouts",
        Count,
        |row| u64::from(row.life.timeouts).into(),
        "how often the guest's timer went off, by its retransmissions",
    )
    .sort("timeouts")
    .given(|row| row.life.timeouts > 0),
    Column::new(
        "Missing",
        "missing_bytes",
        Bytes,
        |row| row.life.missing_bytes.into(),
        "the part of SENT that the capture itself has lost: the peer has it, and the file does not",
    )
    .sort("missing")
    .given(|row| row.life.missing_bytes > 0),
    Column::new(
        "Peer's missing",
        "peer_missing_bytes",
        Bytes,
        |row| row.life.peer_missing_bytes.into(),
        "the same of what the peer sent: the guest has it, and the file does not",
    )
    .sort("peer-missing")
    .given(|row| row.life.peer_missing_bytes > 0),
    Column::new(
        "Beyond",
        "beyond",
        Fraction,
        |row| share(row.life.beyond_bytes, row.life.sent_bytes).into(),
        "the share of SENT that the underlay would have delayed: it left when more was in flight than the \
         underlay's window",
    )
    .sort("beyond")
    .always(),
    Column::new(
        "Beyond, time",
        "beyond_time",
        Fraction,
        |row| share(row.life.beyond_ns, row.life.lasted_ns).into(),
        "the share of the time in which more was in flight than the underlay's window",
    ),
    Column::new(
        "Stalled",
        "stalled_us",
        Us,
        |row| (row.life.stalls.total_ns / NS_PER_US).into(),
        "the time of all stalls: silences of 200 ms and two round trips or more, while an answer was awaited",
    )
    .sort("stalled")
    .given(|row| row.life.stalls.count > 0),
    Column::new(
        "Stalls",
        "stalls",
        Count,
        |row| u64::from(row.life.stalls.count).into(),
        "their number",
    ),
    Column::new(
        "Longest stall",
        "longest_stall_us",
        Us,
        |row| row.life.stalls.longest.map(|stall| stall.lasted_ns / NS_PER_US).into(),
        "the longest of them",
    )
    .sort("longest-stall"),
    Column::new(
        "Cause of the longest stall",
        "longest_stall_cause",
        Text,
        |row| row.life.stalls.longest.map(|stall| stall.cause.name()).into(),
        "`handshake`, `window` (the peer's was closed), `loss`, or `late-ack`",
    ),
    Column::new(
        "Mostly",
        "mostly_limited_by",
        Text,
        |row| row.mostly_limited_by().into(),
        "what LIMITED-BY said for most of the time",
    )
    .sort("mostly")
    .always(),
    Column::new(
        "Overlay",
        "overlay",
        Text,
        |row| row.guess.as_ref().map(|guess| guess.class.name()).into(),
        "the guest's own congestion control, by its behaviour, as `vcc guests` guesses it; of the first 1000 \
         connections of a file",
    )
    .sort("overlay")
    .given(|row| row.guess.as_ref().is_some_and(|guess| guess.class != Class::Unknown)),
    Column::new(
        "Confidence",
        "overlay_confidence",
        Fraction,
        |row| row.guess.as_ref().map(|guess| guess.confidence).into(),
        "how sure that is, from 0 to 1",
    ),
    Column::new(
        "Guest's handshake",
        "handshake_guest_us",
        Us,
        |row| row.life.handshake.guest_ns.map(|ns| ns / NS_PER_US).into(),
        "the handshake's time from the place of the capture to the guest and back",
    ),
    Column::new(
        "Peer's handshake",
        "handshake_peer_us",
        Us,
        |row| row.life.handshake.peer_ns.map(|ns| ns / NS_PER_US).into(),
        "the same for the peer",
    ),
];

impl Row {
    /// The share of time of each limit, in the order of [`Limit::NAMES`].
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all_ns = self.life.limited_ns.iter().sum::<u64>().max(1);
        let shares = self.life.limited_ns.map(|time_ns| time_ns as f64 / all_ns as f64);
        Limit::NAMES.iter().copied().zip(shares)
    }

    /// None if no time has passed.
    fn mostly_limited_by(&self) -> Option<&'static str> {
        let longest = self.limits().max_by(|one, other| one.1.total_cmp(&other.1));
        longest.filter(|(_, share)| *share > 0.0).map(|(name, _)| name)
    }
}

/// What an end has offered in its SYN or SYN-ACK.
#[derive(Serialize)]
struct Offer {
    mss_bytes: Option<u16>,
    scale: Option<u8>,
    sack: bool,
    timestamps: bool,
    ecn_flags: String,
}

impl From<Syn> for Offer {
    fn from(syn: Syn) -> Self {
        Self {
            mss_bytes: syn.mss_bytes,
            scale: syn.scale,
            sack: syn.permits_sack,
            timestamps: syn.has_timestamps,
            ecn_flags: ecn_flags(&syn),
        }
    }
}

/// Their names, such as "CWR ECE".
pub fn ecn_flags(syn: &Syn) -> String {
    let set = ECN_FLAGS.iter().filter(|(_, flag)| syn.ecn_flags & flag != 0);
    set.map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
}

/// None of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(FLOW_COLUMNS.len() + MORE.len() + 5))?;
        for column in FLOW_COLUMNS {
            map.serialize_entry(column.key, &(column.value)(&self.flow))?;
        }
        for column in MORE {
            map.serialize_entry(column.key, &(column.value)(self))?;
        }
        map.serialize_entry("has_syn", &!self.life.is_joined)?;
        map.serialize_entry("is_second_view", &self.is_turned)?;
        map.serialize_entry("guest_syn", &self.life.guest_syn.map(Offer::from))?;
        map.serialize_entry("peer_syn", &self.life.peer_syn.map(Offer::from))?;
        let limits: BTreeMap<&str, f64> = self.limits().collect();
        map.serialize_entry("limited_by_share", &limits)?;
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
