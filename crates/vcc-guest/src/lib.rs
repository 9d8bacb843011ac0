//! The congestion controls that guests may run beyond the kernel's own.
//!
//! A guest of the lab is a network namespace, so it has the TCP of this machine's kernel, and that
//! knows few congestion controls. `guest/` has more, as BPF struct_ops. Each is registered while
//! somebody holds its [`CongestionControls`], under a name of its own: the kernel's names are global
//! to the machine, and several labs may run at once.
//!
//! Set one on a socket, by TCP_CONGESTION and the name that [`CongestionControls::kernel_name`]
//! says; before it connects or listens, or ECN is not negotiated for one that needs it. Never make
//! one a namespace's default: that would keep it, and its name, beyond the process.

mod available;
mod error;
mod list;
mod names;
mod registration;

pub use error::Error;
pub use list::names;

use available::Available;
use registration::Registration;

pub type Result<T> = std::result::Result<T, Error>;

/// Congestion controls that sockets can use while this lives. When it is dropped, and when the
/// process ends in whichever way, they are no longer to be had; a socket that uses one keeps it.
pub struct CongestionControls {
    registrations: Vec<Registration>,
}

impl CongestionControls {
    /// Registers those of `names` that the kernel lacks.
    pub fn load(names: &[&str]) -> Result<Self> {
        let available = Available::read()?;
        let mut wanted = Vec::new();
        for &name in names {
            if available.has(name) {
                continue;
            }
            let known = list::find(name)
                .ok_or_else(|| Error::Unknown { name: name.into(), known: available.known() })?;
            if !wanted.contains(&known) {
                wanted.push(known);
            }
        }
        let registrations = wanted.into_iter().map(Registration::new).collect::<Result<_>>()?;
        Ok(Self { registrations })
    }

    /// What the kernel calls it, for TCP_CONGESTION. A name that was not registered here is the
    /// kernel's own.
    pub fn kernel_name<'a>(&'a self, name: &'a str) -> &'a str {
        let found = self.registrations.iter().find(|registration| registration.name() == name);
        found.map_or(name, Registration::kernel_name)
    }
}
