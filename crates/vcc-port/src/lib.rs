//! A port: the host side of a guest's network device, with vcc on it.
//!
//! This crate compiles the datapath, loads it, attaches it, and reads what it keeps; no other
//! crate knows its programs. Every port has programs and maps of its own, so that nothing which one
//! guest does can reach another guest's flows.

mod batch;
pub mod bench;
mod bpffs;
mod capabilities;
pub mod counters;
mod datapath;
mod device;
pub mod doctor;
mod emit;
mod error;
mod flows;
mod kernel;
mod libbpf;
mod lock;
mod namespace;
#[doc(hidden)]
pub mod object;
mod options;
mod own_directory;
mod params;
mod pins;
mod plain;
mod policy;
mod port;
mod ring;
mod run_time;
mod sweep;
mod tcx;
#[doc(hidden)]
pub mod testing;
mod trace;
mod usage;

pub use counters::{Counter, Counters};
pub use datapath::{Datapath, Program, RunOutput};
pub use emit::{Emitted, Emitter};
pub use error::Error;
pub use flows::{Flow, FlowId};
pub use lock::Governor;
pub use namespace::Netns;
pub use options::AttachOptions;
pub use own_directory::open_own_directory;
pub use policy::{PORTS_MAX, PoolUse, RuleInForce, RuleTotals, Rules, SharedPolicy};
pub use port::Port;
pub use run_time::{RunTime, RunTimes};
pub use trace::{Trace, TraceEvent};
pub use usage::{Shortage, Usage};

pub type Result<T> = std::result::Result<T, Error>;
