//! Guests that are real Linux kernels, in virtual time.
//!
//! A guest is a process: a kernel built as User-Mode Linux, started with `time-travel=ext:`. It
//! asks for the times at which it wants to run, and runs until it has nothing more to do at that
//! time; between two such times no time passes for it. Its network card is a vhost-user device of
//! this process. So one process, this one, is the calendar of all guests, their cards, and the
//! place where a hypervisor's driver domain stands.
//!
//! [`World`] boots guests and runs them through a [`Network`] in conservative windows: nothing that
//! one guest sends within a window can reach another before the window's end, so the order in which
//! guests run within it does not matter, and the same input gives the same frames at the same times.
//! Guests whose virtual CPUs share a core run within it in the order of time, as its scheduler lets
//! them.

mod calendar;
mod card;
mod error;
mod files;
mod guest;
mod kernel;
mod numbered;
mod process;
mod shared_core;
mod system;
mod temp_dir;
mod time_travel;
mod vcpu;
mod vhost_user;

pub use calendar::{Delivery, Moment, Network, World, WorldSpec};
pub use card::CardSpec;
pub use error::{Error, Result};
pub use guest::{GuestSpec, VcpuSpec, Watch};
pub use kernel::Kernel;
pub use process::last_lines;
pub use vcpu::{CoreSpec, Load, SchedulerSpec};
