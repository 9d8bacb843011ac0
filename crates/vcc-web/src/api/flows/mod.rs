//! Some of the flows: those with the most of something, or that have something in their names.

use std::cmp::Ordering;
use std::fmt::Write;

use serde::Serialize;

use super::unix_ms;
use crate::cache::Taken;
use crate::ledger::FlowActivity;
use crate::snapshot::{Counts, Flow, Snapshot};

const TOP_DEFAULT: usize = 50;
const TOP_MAX: usize = 1000;
const FILTER_BYTES_MAX: usize = 100;

/// What is asked for by `?top=N&sort=KEY&order=asc&filter=TEXT&flow=ID`.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    top: usize,
    sort: Sort,
    ascending: bool,
    /// In small letters; all of its words have to be found.
    filter: String,
    /// One that is wanted besides.
    flow: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Port,
    Rule,
    Guest,
    Peer,
    Stage,
    Underlay,
    Rate,
    Cwnd,
    Window,
    Srtt,
    Alpha,
    Marks,
    Reductions,
    Retransmissions,
    Drops,
}

impl Sort {
    const ALL: [(&'static str, Sort); 15] = [
        ("port", Self::Port),
        ("rule", Self::Rule),
        ("guest", Self::Guest),
        ("peer", Self::Peer),
        ("stage", Self::Stage),
        ("underlay", Self::Underlay),
        ("rate", Self::Rate),
        ("cwnd", Self::Cwnd),
        ("window", Self::Window),
        ("srtt", Self::Srtt),
        ("alpha", Self::Alpha),
        ("marks", Self::Marks),
        ("reductions", Self::Reductions),
        ("retransmissions", Self::Retransmissions),
        ("drops", Self::Drops),
    ];
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QueryError {
    #[error("`top` is {0}: a number from 1 to {TOP_MAX}")]
    Top(String),
    #[error("cannot sort by `{0}`: {known}", known = Sort::ALL.map(|(name, _)| name).join(", "))]
    Sort(String),
    #[error("`order` is {0}: asc or desc")]
    Order(String),
    #[error("`filter` is longer than {FILTER_BYTES_MAX} bytes")]
    Filter,
    #[error("`flow` is {0}: an id as in an answer before")]
    Flow(String),
    #[error("no parameter is called `{0}`: top, sort, order, filter, flow")]
    Unknown(String),
}

impl Query {
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let (top, filter) = (TOP_DEFAULT, String::new());
        let mut query = Self { top, sort: Sort::Rate, ascending: false, filter, flow: None };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value);
            match key {
                "top" => {
                    let top = value.parse().ok().filter(|top| (1..=TOP_MAX).contains(top));
                    query.top = top.ok_or(QueryError::Top(value))?;
                }
                "sort" => {
                    let sort = Sort::ALL.iter().find(|(name, _)| *name == value);
                    query.sort = sort.ok_or(QueryError::Sort(value))?.1;
                }
                "order" => match value.as_str() {
                    "asc" => query.ascending = true,
                    "desc" => query.ascending = false,
                    _ => return Err(QueryError::Order(value)),
                },
                "filter" if value.len() > FILTER_BYTES_MAX => return Err(QueryError::Filter),
                "filter" => query.filter = value.to_lowercase(),
                "flow" => {
                    let id = u64::from_str_radix(&value, 16);
                    query.flow = Some(id.map_err(|_| QueryError::Flow(value))?);
                }
                _ => return Err(QueryError::Unknown(decode(key))),
            }
        }
        Ok(query)
    }
}

/// What is not well-formed stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Serialize)]
pub struct FlowsView<'a> {
    at_unix_ms: u64,
    total: usize,
    matching: usize,
    flows: Vec<FlowView<'a>>,
    /// The one that was wanted besides, while it is there.
    selected: Option<FlowView<'a>>,
}

#[derive(Serialize)]
struct FlowView<'a> {
    id: String,
    port: &'a str,
    tenant: Option<&'a str>,
    rule: Option<&'a str>,
    guest: String,
    peer: String,
    vlan: Option<u16>,
    stage: &'static str,
    underlay: &'a str,
    ecn_guest: &'a str,
    ecn_fabric: &'a str,
    feedback: &'a str,
    acked_bytes_per_s: Option<f64>,
    marks_per_s: Option<f64>,
    cwnd_segs: Option<u32>,
    ssthresh_segs: Option<u32>,
    window_shown_bytes: Option<u32>,
    mss_bytes: u16,
    srtt_us: Option<u32>,
    alpha: Option<f64>,
    #[serde(flatten)]
    counts: Counts,
}

type Pair<'a> = (&'a Flow, &'a FlowActivity);

impl<'a> FlowsView<'a> {
    pub fn of(taken: &'a Taken, query: &Query) -> Self {
        let snapshot = &taken.snapshot;
        let all = || snapshot.flows.iter().zip(&taken.activity.flows);
        let words: Vec<&str> = query.filter.split_whitespace().collect();
        let mut haystack = String::new();
        let mut found: Vec<Pair> =
            all().filter(|(flow, _)| matches(snapshot, flow, &words, &mut haystack)).collect();
        let matching = found.len();
        let order = |a: &Pair, b: &Pair| {
            let by = compare(snapshot, query.sort, a, b);
            let by = if query.ascending { by } else { by.reverse() };
            // The same order each time, or rows would jump.
            by.then_with(|| (a.0.port, a.0.guest, a.0.peer).cmp(&(b.0.port, b.0.guest, b.0.peer)))
        };
        if matching > query.top {
            found.select_nth_unstable_by(query.top, order);
            found.truncate(query.top);
        }
        found.sort_unstable_by(order);
        let selected = query.flow.and_then(|id| all().find(|(_, activity)| activity.id == id));
        Self {
            at_unix_ms: unix_ms(snapshot.at),
            total: snapshot.flows.len(),
            matching,
            flows: found.into_iter().map(|pair| view(snapshot, pair)).collect(),
            selected: selected.map(|pair| view(snapshot, pair)),
        }
    }
}

fn matches(snapshot: &Snapshot, flow: &Flow, words: &[&str], haystack: &mut String) -> bool {
    if words.is_empty() {
        return true;
    }
    let port = &snapshot.ports[flow.port];
    let tenant = port.tenant.as_deref().unwrap_or_default();
    let rule = flow.rule.as_deref().unwrap_or_default();
    haystack.clear();
    let (guest, peer, stage) = (flow.guest, flow.peer, flow.stage.name());
    // A String takes whatever is written to it.
    let _ = write!(haystack, "{} {tenant} {rule} ", port.device);
    let _ = write!(haystack, "{guest} {peer} {stage} {}", flow.underlay);
    if let Some(vlan) = flow.vlan {
        let _ = write!(haystack, " vlan {vlan}");
    }
    let haystack = haystack.to_lowercase();
    words.iter().all(|word| haystack.contains(word))
}

fn compare(snapshot: &Snapshot, sort: Sort, a: &Pair, b: &Pair) -> Ordering {
    fn by<'a, T: PartialOrd>(a: &Pair<'a>, b: &Pair<'a>, key: impl Fn(&Pair<'a>) -> T) -> Ordering {
        key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal)
    }
    match sort {
        Sort::Port => {
            let name = |pair: &Pair| snapshot.ports[pair.0.port].device.as_str();
            name(a).cmp(name(b))
        }
        Sort::Rule => by(a, b, |p| p.0.rule.as_deref()),
        Sort::Guest => a.0.guest.cmp(&b.0.guest),
        Sort::Peer => a.0.peer.cmp(&b.0.peer),
        Sort::Stage => a.0.stage.cmp(&b.0.stage),
        Sort::Underlay => a.0.underlay.cmp(b.0.underlay),
        Sort::Rate => by(a, b, |p| p.1.acked_bytes_per_s),
        Sort::Cwnd => by(a, b, |p| p.0.cwnd_segs),
        Sort::Window => by(a, b, |p| p.0.window_shown_bytes),
        Sort::Srtt => by(a, b, |p| p.0.srtt_us),
        Sort::Alpha => by(a, b, |p| p.0.alpha),
        Sort::Marks => by(a, b, |p| p.0.counts.marks),
        Sort::Reductions => by(a, b, |p| p.0.counts.reductions),
        Sort::Retransmissions => by(a, b, |p| p.0.counts.retransmissions),
        Sort::Drops => by(a, b, |p| p.0.counts.drops),
    }
}

fn view<'a>(snapshot: &'a Snapshot, (flow, activity): Pair<'a>) -> FlowView<'a> {
    let port = &snapshot.ports[flow.port];
    FlowView {
        id: format!("{:016x}", activity.id),
        port: &port.device,
        tenant: port.tenant.as_deref(),
        rule: flow.rule.as_deref(),
        guest: flow.guest.to_string(),
        peer: flow.peer.to_string(),
        vlan: flow.vlan,
        stage: flow.stage.name(),
        underlay: flow.underlay,
        ecn_guest: flow.ecn_guest,
        ecn_fabric: flow.ecn_fabric,
        feedback: flow.feedback,
        acked_bytes_per_s: activity.acked_bytes_per_s,
        marks_per_s: activity.marks_per_s,
        cwnd_segs: flow.cwnd_segs,
        ssthresh_segs: flow.ssthresh_segs,
        window_shown_bytes: flow.window_shown_bytes,
        mss_bytes: flow.mss_bytes,
        srtt_us: flow.srtt_us,
        alpha: flow.alpha,
        counts: flow.counts,
    }
}

#[cfg(test)]
mod tests;
