//! What is kept of a connection.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vcc_view::{FLOW_COLUMNS, FlowView, Value};

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By FIN or RST.
    Closed,
    /// The port has forgotten it: it was idle for too long, gave way to others, or its end was not seen.
    Forgotten,
    /// Nothing was sent on it, as where the peer refuses it.
    Unused,
}

/// A line of the file. What is unknown is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of its last segment, since 1970.
    pub ended_unix_s: f64,
    pub end: End,
    /// To its last segment, from when it was first seen; null if that was after its end.
    pub lasted_s: Option<f64>,
    /// False if bytes and counters are those of a part of it: from when it was first seen, or without what was
    /// not read in time.
    pub is_whole: bool,
    pub port: String,
    pub tenant: Option<String>,
    pub rule: Option<String>,
    pub mode: Option<String>,
    pub underlay: Option<String>,
    pub guest: String,
    pub peer: String,
    pub ecn_guest: Option<String>,
    pub ecn_fabric: Option<String>,
    /// Of the guest's full segments.
    pub mss_bytes: Option<f64>,
    /// What the guest has sent and the peer has acknowledged.
    pub acked_bytes: u64,
    pub marks: f64,
    pub reductions: f64,
    pub retransmissions: f64,
    pub needless: f64,
    pub drops: f64,
    pub policed: f64,
    pub srtt_us: Option<f64>,
    pub rtt_min_us: Option<f64>,
    pub fabric_delay_us: Option<f64>,
    pub fabric_worst_us: Option<f64>,
    pub guest_delay_us: Option<f64>,
    pub guest_worst_us: Option<f64>,
    /// Shares of its time; empty if it was first seen after its end.
    #[serde(default)]
    pub limited_by: BTreeMap<String, f64>,
}

/// The counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counted {
    marks: f64,
    reductions: f64,
    retransmissions: f64,
    needless: f64,
    drops: f64,
    policed: f64,
}

impl Counted {
    pub(super) fn of_flow(flow: &FlowView) -> Self {
        let count = |key| value(flow, key).number().unwrap_or_default();
        Self {
            marks: count("marks"),
            reductions: count("reductions"),
            retransmissions: count("retransmissions"),
            needless: count("needless"),
            drops: count("drops"),
            policed: count("policed"),
        }
    }
}

impl Record {
    /// False if a number of it can be of no connection: the file may be damaged.
    pub fn is_possible(&self) -> bool {
        /// Some 300 years.
        const MOST_S: f64 = 1e10;
        let counts = [self.marks, self.reductions, self.retransmissions, self.drops];
        (0.0..MOST_S).contains(&self.ended_unix_s)
            && (0.0..MOST_S).contains(&self.lasted_s.unwrap_or_default())
            && counts.iter().all(|count| (0.0..1e18).contains(count))
            && self.acked_bytes < 1 << 60
    }

    /// The columns of a connection as they were last, and what was counted since `before`.
    pub(super) fn of_flow(flow: &FlowView, before: &Counted) -> Self {
        let text = |key| match value(flow, key) {
            Value::Text(text) => Some(text.into_owned()),
            _ => None,
        };
        let number = |key| value(flow, key).number();
        let counted = Counted::of_flow(flow);
        Self {
            ended_unix_s: 0.0,
            end: End::Closed,
            lasted_s: None,
            is_whole: true,
            port: flow.port.to_string(),
            tenant: text("tenant"),
            rule: text("rule"),
            mode: text("mode"),
            underlay: text("underlay"),
            guest: flow.id().guest.to_string(),
            peer: flow.id().peer.to_string(),
            ecn_guest: text("ecn_guest"),
            ecn_fabric: text("ecn_fabric"),
            mss_bytes: number("mss_bytes"),
            acked_bytes: 0,
            marks: counted.marks - before.marks,
            reductions: counted.reductions - before.reductions,
            retransmissions: counted.retransmissions - before.retransmissions,
            needless: counted.needless - before.needless,
            drops: counted.drops - before.drops,
            policed: counted.policed - before.policed,
            srtt_us: number("srtt_us"),
            rtt_min_us: number("rtt_min_us"),
            fabric_delay_us: number("fabric_delay_us"),
            fabric_worst_us: number("fabric_worst_us"),
            guest_delay_us: number("guest_delay_us"),
            guest_worst_us: number("guest_worst_us"),
            limited_by: BTreeMap::new(),
        }
    }
}

fn value<'a>(flow: &'a FlowView, key: &str) -> Value<'a> {
    let column = FLOW_COLUMNS.iter().find(|column| column.key == key);
    column.map_or(Value::Unknown, |column| (column.value)(flow))
}
