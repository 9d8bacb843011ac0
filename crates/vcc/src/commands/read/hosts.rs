//! The connections of each pair of hosts together: `--hosts`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use vcc_view::Unit::{Bytes, Count, Fraction, Text, Us};

use super::columns::{Row, share};
use crate::commands::flows::table::table_of;

type Column = vcc_view::Column<Pair>;

/// A guest's host and a peer's, with the sums over their connections.
pub struct Pair {
    guest: IpAddr,
    peer: IpAddr,
    connections: u64,
    sent_bytes: u64,
    acked_bytes: u64,
    retransmissions: u64,
    marks: u64,
    missing_bytes: u64,
    peer_missing_bytes: u64,
    beyond_bytes: u64,
    stalls: u64,
    stalled_us: u64,
    /// The least over all.
    rtt_min_us: Option<u32>,
}

static COLUMNS: &[Column] = &[
    Column::new("Guest", "guest", Text, |pair| pair.guest.to_string().into(), "the guests' host"),
    Column::new("Peer", "peer", Text, |pair| pair.peer.to_string().into(), "the peers' host"),
    Column::new(
        "Connections",
        "connections",
        Count,
        |pair| pair.connections.into(),
        "their number",
    ),
    Column::new(
        "Sent",
        "sent_bytes",
        Bytes,
        |pair| pair.sent_bytes.into(),
        "new bytes of the guests",
    ),
    Column::new(
        "Acked",
        "acked_bytes",
        Bytes,
        |pair| pair.acked_bytes.into(),
        "bytes that the peers acknowledged",
    ),
    Column::new(
        "Retrans",
        "retransmissions",
        Count,
        |pair| pair.retransmissions.into(),
        "segments that the guests sent again",
    ),
    Column::new(
        "Marks",
        "marks",
        Count,
        |pair| pair.marks.into(),
        "ACKs and reports with congestion marks",
    ),
    Column::new(
        "Missing",
        "missing_bytes",
        Bytes,
        |pair| pair.missing_bytes.into(),
        "of the guests' bytes, what the capture itself has lost",
    ),
    Column::new(
        "Peers' missing",
        "peer_missing_bytes",
        Bytes,
        |pair| pair.peer_missing_bytes.into(),
        "the same of the peers' bytes",
    ),
    Column::new(
        "Beyond",
        "beyond",
        Fraction,
        |pair| share(pair.beyond_bytes, pair.sent_bytes).into(),
        "the share of the bytes that the underlay would have delayed",
    ),
    Column::new("Stalls", "stalls", Count, |pair| pair.stalls.into(), "their number"),
    Column::new("Stalled", "stalled_us", Us, |pair| pair.stalled_us.into(), "their time"),
    Column::new(
        "Least RTT",
        "rtt_min_us",
        Us,
        |pair| pair.rtt_min_us.into(),
        "the least round-trip time of all",
    ),
];

impl Pair {
    fn new(guest: IpAddr, peer: IpAddr) -> Self {
        let (connections, sent_bytes, acked_bytes, retransmissions, marks) = Default::default();
        let (missing_bytes, peer_missing_bytes, beyond_bytes) = Default::default();
        let (stalls, stalled_us, rtt_min_us) = Default::default();
        Self {
            guest,
            peer,
            connections,
            sent_bytes,
            acked_bytes,
            retransmissions,
            marks,
            missing_bytes,
            peer_missing_bytes,
            beyond_bytes,
            stalls,
            stalled_us,
            rtt_min_us,
        }
    }

    fn add(&mut self, row: &Row) {
        let (life, state) = (&row.life, &row.flow.state);
        // Sums over all pairs count each connection once, in the row of its first view.
        self.connections += u64::from(!row.is_turned);
        self.sent_bytes += life.sent_bytes;
        self.acked_bytes += life.acked_bytes;
        self.retransmissions += u64::from(state.retransmissions);
        self.marks += u64::from(state.marks);
        self.missing_bytes += life.missing_bytes;
        self.peer_missing_bytes += life.peer_missing_bytes;
        self.beyond_bytes += life.beyond_bytes;
        self.stalls += u64::from(life.stalls.count);
        self.stalled_us += life.stalls.total_ns / 1000;
        // 0: not measured.
        let measured_us = Some(state.cc.path.rtt_min_us).filter(|us| *us > 0);
        self.rtt_min_us = self.rtt_min_us.into_iter().chain(measured_us).min();
    }
}

/// The pairs with the most bytes first.
pub fn pairs(rows: &[Row]) -> Vec<Pair> {
    let mut pairs = BTreeMap::new();
    for row in rows {
        let id = row.flow.id();
        let (guest, peer) = (id.guest.ip(), id.peer.ip());
        pairs.entry((guest, peer)).or_insert_with(|| Pair::new(guest, peer)).add(row);
    }
    let mut pairs: Vec<Pair> = pairs.into_values().collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.sent_bytes));
    pairs
}

pub fn table(pairs: &[Pair]) -> String {
    table_of(&COLUMNS.iter().collect::<Vec<_>>(), pairs)
}

impl Serialize for Pair {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(COLUMNS.len()))?;
        for column in COLUMNS {
            map.serialize_entry(column.key, &(column.value)(self))?;
        }
        map.end()
    }
}
