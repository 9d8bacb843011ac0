//! A port: the host side of a guest's network device, with vcc attached to it.
//!
//! This crate compiles the datapath, loads and attaches it, and reads its maps; no other crate
//! knows its programs. The ports of a host share programs and maps, in which each has room that the
//! others cannot take, so that one guest cannot affect another guest's flows.

mod arrival;
mod batch;
#[doc(hidden)]
pub mod bpffs;
mod capabilities;
mod claim;
mod clock;
pub mod coexistence;
pub mod counters;
mod counts;
mod datapath;
mod detour;
mod device;
pub mod doctor;
mod emit;
mod error;
mod flows;
mod governor;
mod grace_periods;
pub mod harness;
mod host;
mod kernel;
mod layout;
mod libbpf;
mod limits;
pub mod links;
#[doc(hidden)]
pub mod lock;
mod maps;
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
mod predecessor;
mod program;
mod recorder;
mod ring;
mod run_time;
mod sweep;
mod tcx;
mod test_run;
#[cfg(feature = "testing")]
pub mod testing;
mod timers;
mod trace;
mod underlays;
mod usage;
mod verifier_log;

pub use arrival::Arrived;
pub use clock::monotonic;
pub use counters::{Counter, Counters};
pub use datapath::Datapath;
pub use detour::Detour;
pub use emit::{Emitted, Emitter};
pub use error::{Error, VerifierRefusal};
pub use flows::{Flow, FlowId};
pub use governor::Governor;
pub use grace_periods::Expedited;
pub use host::{Host, Loading, Unloading};
pub use namespace::{Netns, isolated};
pub use options::AttachOptions;
pub use own_directory::open_own_directory;
pub use policy::{
    Judgement, PORTS_MAX, PoolUse, Property, RuleInForce, RuleTotals, Rules, SharedPolicy,
};
pub use port::Port;
pub use predecessor::{Inherited, Predecessor};
pub use program::Program;
pub use recorder::{RecordedPacket, RecordedSide, Recorder, RecorderOptions};
pub use run_time::{RunTime, RunTimeByDirection, RunTimes};
pub use test_run::RunOutput;
pub use timers::{Turning, are_wheels_still};
pub use trace::{Trace, TraceEvent};
pub use underlays::Underlays;
pub use usage::{Shortage, Usage};

pub type Result<T> = std::result::Result<T, Error>;
