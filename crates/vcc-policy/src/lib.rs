//! Which connection gets which treatment: one file of rules, read, checked and compiled.
//!
//! [`Policy::parse`] reads the file and reports all errors at once; [`Policy::judge`] finds the rule
//! of a connection and [`Policy::explain`] says why it is this one; [`Policy::compile`] makes tables
//! that find the same rule in a handful of look-ups. [`KEYS`] lists what a treatment can be, for
//! policies and everything else that treats connections. Nothing here does I/O.

mod admitted;
mod affiliation;
mod check;
mod compile;
mod conditions;
mod connection;
pub mod docs;
mod explain;
mod file;
mod keys;
mod listing;
mod name;
mod nearest;
mod network;
mod policy;
mod pool;
mod port;
mod problem;
mod ranges;
mod rule;
mod settings;
pub mod text;
mod treatment;
mod tunnels;
pub mod units;

use vcc_engine::sys;

pub use affiliation::Affiliation;
pub use check::Checked;
pub use compile::{Compiled, Prefix, RuleSet};
pub use conditions::{Conditions, PortRange};
pub use connection::{Connection, Role};
pub use explain::{Explanation, Miss};
pub use file::schema;
pub use keys::{KEYS, Key, Kind, Scalar, Scope, Surface, Value, dashed};
pub use name::LONGEST_BYTES as LONGEST_NAME_BYTES;
pub use policy::{Policy, RuleCount};
pub use pool::Pool;
pub use port::{
    BUFFER, BUFFER_POLICY, MAX_FLOWS, ORDER, Order, PortBuffer, PortSelector, pattern_of,
};
pub use problem::{Problem, Problems, Severity};
pub use rule::{DEFAULT_RULE_NAME, Rule};
pub use settings::{Complaint, Settings};
pub use treatment::Treatment;
pub use tunnels::{TunnelKind, Tunnels};

/// Rules that a policy can have; the default is one of them, always the last.
pub const MAX_RULES: usize = sys::RULES_MAX as usize;
/// Networks that the rules can distinguish.
pub const MAX_PREFIXES: usize = sys::PREFIXES_MAX as usize;
/// Different sets of rules that the compiled tables can refer to.
pub const MAX_SETS: usize = sys::RULE_SETS_MAX as usize;
/// Patterns of ports: all pairs are compared to find those that hide another.
pub const MAX_SELECTORS: usize = 4096;
pub const MAX_POOLS: usize = sys::POOLS_MAX as usize;
