//! Which connection gets which treatment: one file of rules, read, checked and compiled.
//!
//! [`Policy::parse`] reads the file and reports all that is wrong with it at once;
//! [`Policy::judge`] says which rule a connection falls under, [`Policy::explain`] why; and
//! [`Policy::compile`] makes tables of it that find the same rule in a handful of look-ups.
//! Nothing here does I/O.

mod check;
mod compile;
mod conditions;
mod connection;
mod explain;
mod file;
mod listing;
mod nearest;
mod policy;
mod pool;
mod port;
mod problem;
mod ranges;
mod rule;
mod settings;
pub mod text;
pub mod units;

use vcc_engine::sys;

pub use compile::{Compiled, Prefix, RuleSet};
pub use conditions::{Conditions, PortRange};
pub use connection::{Connection, Role};
pub use explain::{Explanation, Miss};
pub use file::schema;
pub use policy::{Checked, Policy, RuleCount};
pub use pool::Pool;
pub use port::PortSelector;
pub use problem::{Problem, Problems, Severity};
pub use rule::{DEFAULT_RULE_NAME, Rule};
pub use settings::settings;
pub use vcc_engine::{PoolShare, Treatment};

/// Rules that a policy can have; the default is one of them, always the last.
pub const MAX_RULES: usize = sys::RULES_MAX as usize;
/// Networks that the rules can distinguish.
pub const MAX_PREFIXES: usize = sys::PREFIXES_MAX as usize;
/// Different sets of rules that the compiled tables can refer to.
pub const MAX_SETS: usize = sys::RULE_SETS_MAX as usize;
/// Patterns of ports: which ones hide another is found by looking at all pairs.
pub const MAX_SELECTORS: usize = 4096;
pub const MAX_POOLS: usize = sys::POOLS_MAX as usize;
