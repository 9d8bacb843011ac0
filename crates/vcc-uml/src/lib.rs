//! Guests that are real Linux kernels, in virtual time.
//!
//! A guest is a process: a kernel built as User-Mode Linux, started with `time-travel=ext:`. It
//! requests the times at which it wants to run, and runs until it is idle at such a time; its clock
//! does not advance in between. Its network card is a vhost-user device of this process. This
//! process is thus the calendar of all guests, their cards, and the driver domain of their
//! hypervisor.
//!
//! [`World`] boots guests and runs them through a [`Network`] in conservative windows: no frame
//! sent within a window can reach another guest before the window's end. The order of guests within
//! a window therefore does not matter, and the same input gives the same frames at the same times.
//! Guests whose virtual CPUs share a core run in order of time within a window, as the core's
//! scheduler decides.

mod calendar;
mod card;
mod error;
mod files;
mod guest;
mod kernel;
mod numbered;
mod process;
mod shared_core;
mod shared_page;
mod system;
mod temp_dir;
mod time_travel;
mod turns;
mod vcpu;
mod vhost_user;

pub use calendar::{Delivery, Moment, Network, World, WorldSpec};
pub use card::{CardSpec, PortChange, Tamper, Tampered};
pub use error::{Error, Result};
pub use guest::{GuestSpec, VcpuSpec, Watch};
pub use kernel::{Kernel, Release};
pub use process::last_lines;
pub use vcpu::{CoreSpec, Load, SchedulerSpec};
