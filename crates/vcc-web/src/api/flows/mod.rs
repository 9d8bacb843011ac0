//! Some of the flows: the first ones in an order, those that match a filter, or one.

use serde::Serialize;
use vcc_view::{Column, FLOW_COLUMNS, FlowView, Sort, Words, sortable, why_no_flows};

use crate::cache::Taken;
use crate::time::unix_ms;

const TOP_DEFAULT: usize = 50;
const TOP_MAX: usize = 1000;
const FILTER_BYTES_MAX: usize = 100;

/// The query `?top=N&sort=NAME&order=asc&filter=WORDS&flow=ID`.
pub struct Query {
    top: usize,
    sort: Sort,
    words: Words,
    /// This flow is always in the answer.
    flow: Option<u64>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QueryError {
    #[error("`top` is {0}: it must be a number from 1 to {TOP_MAX}")]
    Top(String),
    #[error("cannot sort by `{0}`: {known}", known = sort_names().join(", "))]
    Sort(String),
    #[error("`order` is {0}: it must be asc or desc")]
    Order(String),
    #[error("`filter` is longer than {FILTER_BYTES_MAX} bytes")]
    Filter,
    #[error("`flow` is {0}: it must be an id from an earlier answer")]
    Flow(String),
    #[error("unknown parameter `{0}`: there are top, sort, order, filter, flow")]
    Unknown(String),
}

fn sort_names() -> Vec<&'static str> {
    std::iter::once(Sort::PLACE).chain(sortable().map(|(name, _)| name)).collect()
}

fn sort_by(name: &str) -> Option<Sort> {
    if name == Sort::PLACE {
        return Some(Sort::natural(None));
    }
    let column = sortable().find(|(sort, _)| *sort == name)?.1;
    Some(Sort::natural(Some(column)))
}

impl Query {
    /// `order` defaults to descending for every column.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let (mut top, mut words, mut flow) = (TOP_DEFAULT, Words::default(), None);
        let (mut sort, mut is_descending) = (sort_by("rate").expect("a column"), true);
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value);
            match key {
                "top" => {
                    let wanted = value.parse().ok().filter(|top| (1..=TOP_MAX).contains(top));
                    top = wanted.ok_or(QueryError::Top(value))?;
                }
                "sort" => sort = sort_by(&value).ok_or(QueryError::Sort(value))?,
                "order" => match value.as_str() {
                    "asc" => is_descending = false,
                    "desc" => is_descending = true,
                    _ => return Err(QueryError::Order(value)),
                },
                "filter" if value.len() > FILTER_BYTES_MAX => return Err(QueryError::Filter),
                "filter" => words = Words::new(&value),
                "flow" => {
                    let id = u64::from_str_radix(&value, 16);
                    flow = Some(id.map_err(|_| QueryError::Flow(value))?);
                }
                _ => return Err(QueryError::Unknown(decode(key))),
            }
        }
        Ok(Self { top, sort: Sort { is_descending, ..sort }, words, flow })
    }
}

/// Malformed escapes stay as they are.
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
    flows: Vec<IdentifiedFlow<'a>>,
    /// The flow of the query, while it exists.
    selected: Option<IdentifiedFlow<'a>>,
    /// Why there is no flow in the answer.
    why_none: Option<String>,
    /// Keys of columns that are unknown for every flow, those that do not match included.
    unknown: Vec<&'static str>,
}

#[derive(Serialize)]
struct IdentifiedFlow<'a> {
    id: String,
    #[serde(flatten)]
    flow: &'a FlowView,
}

impl<'a> IdentifiedFlow<'a> {
    fn new((flow, id): (&'a FlowView, &u64)) -> Self {
        Self { id: format!("{id:016x}"), flow }
    }
}

impl<'a> FlowsView<'a> {
    pub fn new(taken: &'a Taken, query: &Query) -> Self {
        let snapshot = &taken.snapshot;
        let all = || snapshot.flows.iter().zip(&taken.activity.flow_ids);
        let mut found: Vec<_> = all().filter(|(flow, _)| query.words.are_in(flow)).collect();
        let matching = found.len();
        // In the same order at each request, or rows would jump.
        let order = |a: &(&FlowView, &u64), b: &(&FlowView, &u64)| query.sort.compare(a.0, b.0);
        if matching > query.top {
            found.select_nth_unstable_by(query.top, order);
            found.truncate(query.top);
        }
        found.sort_unstable_by(order);
        let selected = query.flow.and_then(|wanted| all().find(|(_, id)| **id == wanted));
        Self {
            at_unix_ms: unix_ms(snapshot.at),
            total: snapshot.flows.len(),
            matching,
            flows: found.into_iter().map(IdentifiedFlow::new).collect(),
            selected: selected.map(IdentifiedFlow::new),
            why_none: (matching == 0).then(|| why_no_flows(&snapshot.ports, snapshot.flows.len())),
            unknown: unknown(&snapshot.flows),
        }
    }
}

/// Without rates: the next reading has them.
fn unknown(flows: &[FlowView]) -> Vec<&'static str> {
    let columns = FLOW_COLUMNS.iter().filter(|it| it.is_in_page_table() && !it.unit.is_rate());
    let is_unknown = |column: &&Column| !flows.iter().any(|flow| (column.value)(flow).is_known());
    columns.filter(is_unknown).map(|column| column.key).collect()
}

#[cfg(test)]
mod tests;
