//! A port: the host side of a guest's network device, with vcc on it.
//!
//! This crate compiles the datapath, loads it, attaches it, and reads what it keeps; no other
//! crate knows BPF. Every port has programs and maps of its own, so that nothing which one guest
//! does can reach another guest's flows.

pub mod bench;
mod bpffs;
mod capabilities;
pub mod counters;
mod datapath;
mod device;
pub mod doctor;
mod error;
mod flows;
mod kernel;
mod libbpf;
mod namespace;
mod options;
mod params;
mod pins;
mod plain;
mod port;
mod tcx;
#[doc(hidden)]
pub mod testing;

pub use counters::{Counter, Counters};
pub use datapath::{Datapath, Program, RunOutput};
pub use error::Error;
pub use flows::Flow;
pub use namespace::Netns;
pub use options::AttachOptions;
pub use port::Port;

pub type Result<T> = std::result::Result<T, Error>;
