//! The view of ports and flows that the command and the page print: reads them, computes rates,
//! filters, sorts, and formats values with their units.
//!
//! [`FLOW_COLUMNS`], [`PORT_COLUMNS`] and [`RULE_COLUMNS`] are the lists of columns, and
//! [`TOTAL_COLUMNS`] that of the sums. They define the tables and the JSON of `vcc flows`, `vcc ports`,
//! `vcc top`, `vcc explain` and the page, the names that `--sort` and `--with` take, and the tables
//! in docs/seeing.md.

mod column;
mod columns;
mod cost;
mod cpu;
mod delay;
mod domain;
mod end;
mod filter;
mod flow;
pub mod guests;
pub mod histogram;
mod json;
pub mod limit;
mod names;
mod no_flows;
mod once;
mod pace;
mod port;
mod rates;
mod recording;
mod rule;
mod runtime_dir;
mod sampler;
mod sort;
mod source;
mod sums;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trial;
pub mod units;
mod value;
mod watch;
mod words;

pub use column::{Column, Page, Shown, Top};
pub use columns::{
    FLOW_COLUMNS, PORT_COLUMNS, RULE_COLUMNS, TOTAL_COLUMNS, cell, counters, key_of, rows, sortable,
};
pub use cost::{Cost, CostWatch, Counting, Work};
pub use cpu::{CpuWatch, GuestCpu};
pub use delay::is_guests as is_delayed_by_guest;
pub use domain::{DomainPort, NO_PROMISES, serves_tap, socket_of, status_socket, taps};
pub use end::End;
pub use filter::{EcnOwner, Filter};
pub use flow::{FlowView, Place};
pub use names::{FlowKey, compare as compare_names, keys, numbered};
pub use no_flows::why_no_flows;
pub use once::Once;
pub use pace::{Group, Grown, Pace, sum_up};
pub use port::{Counter, PortView, view_flows};
pub use rates::{Counted, Counts, Growth, Progress, READ_EVERY, Rates};
pub use recording::Recording;
pub use rule::{AppliedRule, RuleView, RulesInForce, Totals};
pub use runtime_dir::RuntimeDir;
pub use sampler::{Sampler, Snapshot};
pub use sort::Sort;
pub use source::Source;
pub use sums::Sums;
pub use value::{Unit, Value};
pub use vcc_domain::PoolUse;
pub use vcc_vcpu::Shares;
pub use watch::Watch;
pub use words::Words;
