//! Congestion controls for guests beyond the kernel's own.
//!
//! A lab guest is a network namespace, so it uses this machine's kernel TCP, which has few
//! congestion controls. `guest/` has more, as BPF struct_ops. Each is registered while a
//! [`CongestionControls`] holds it, under a unique name: the kernel's names are global to the
//! machine, and several labs may run at once.
//!
//! Set one on a socket by TCP_CONGESTION with [`CongestionControls::kernel_name`], before the
//! socket connects or listens: otherwise ECN is not negotiated for one that needs it. Never make
//! one a namespace's default: that would keep it registered beyond the process.

mod error;
mod names;
mod registration;

pub use error::Error;
pub use vcc_guest::names;

use registration::Registration;

pub type Result<T> = std::result::Result<T, Error>;

/// The BPF object of a congestion control of `guest/`, for kernels and loaders of before Linux 6.4.
pub fn object_without_link(name: &str) -> Result<Vec<u8>> {
    let control = vcc_guest::find(name)
        .ok_or_else(|| Error::Unknown { name: name.into(), known: names().join(", ") })?;
    Ok(control.object_without_link())
}

/// Congestion controls that sockets can select while this value lives. They are unregistered on
/// drop and at the end of the process; a socket that uses one keeps it.
pub struct CongestionControls {
    registrations: Vec<Registration>,
}

impl CongestionControls {
    /// Registers those of `names` that the kernel lacks.
    pub fn load(names: &[&str]) -> Result<Self> {
        let available = vcc_guest::available()?;
        let mut wanted = Vec::new();
        for &name in names {
            if available.iter().any(|one| one == name) {
                continue;
            }
            let known = vcc_guest::find(name).ok_or_else(|| Error::Unknown {
                name: name.into(),
                known: names_for_users(&available),
            })?;
            if !wanted.contains(&known) {
                wanted.push(known);
            }
        }
        let registrations = wanted.into_iter().map(Registration::new).collect::<Result<_>>()?;
        Ok(Self { registrations })
    }

    /// The kernel's name of a congestion control, for TCP_CONGESTION. A name that was not
    /// registered here is the kernel's own.
    pub fn kernel_name<'a>(&'a self, name: &'a str) -> &'a str {
        let found = self.registrations.iter().find(|registration| registration.name() == name);
        found.map_or(name, Registration::kernel_name)
    }
}

/// The names for users, without those that other processes have registered for themselves.
fn names_for_users(available: &[String]) -> String {
    let kernel = available.iter().map(String::as_str).filter(|name| !names::is_ours(name));
    let mut known: Vec<&str> = kernel.chain(names().iter().copied()).collect();
    known.sort_unstable();
    known.dedup();
    known.join(", ")
}
