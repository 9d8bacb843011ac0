//! Underlays that are loaded at run time.
//!
//! An underlay is one C file, as the built-in ones of `engine/cc/`. [`build`] compiles it to an
//! [`Object`]: BPF code with its properties. The kernel runs that code as a part of the
//! datapath, user space in a [`Machine`]. [`check`] runs each of its hooks, and its errors say where
//! in the source.

mod build;
mod bytes;
mod check;
mod instruction;
mod lines;
mod machine;
mod object;

pub use build::{BuildError, build};
pub use check::{CheckError, Checked, check};
pub use machine::{Fault, Machine};
pub use object::{Object, ObjectError};
