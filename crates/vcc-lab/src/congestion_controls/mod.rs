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

/// The BPF object of a congestion control of `guest/`, for kernels and loaders of before Linux 6.4
/// (libbpf 1.2), which register struct_ops without a link. The name of the section is all that
/// differs.
pub fn object_without_link(name: &str) -> Result<Vec<u8>> {
    const LINKED: &[u8] = b".struct_ops.link\0";
    let known = list::find(name)
        .ok_or_else(|| Error::Unknown { name: name.into(), known: names().join(", ") })?;
    let mut object = known.object.to_vec();
    for at in 0..object.len().saturating_sub(LINKED.len()) {
        if object[at..].starts_with(LINKED) {
            // The name ends before `.link`, in the tables of ELF and BTF.
            object[at + ".struct_ops".len()] = 0;
        }
    }
    Ok(object)
}

/// Congestion controls that sockets can select while this value lives. They are unregistered on
/// drop and at the end of the process; a socket that uses one keeps it.
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

    /// The kernel's name of a congestion control, for TCP_CONGESTION. A name that was not
    /// registered here is the kernel's own.
    pub fn kernel_name<'a>(&'a self, name: &'a str) -> &'a str {
        let found = self.registrations.iter().find(|registration| registration.name() == name);
        found.map_or(name, Registration::kernel_name)
    }
}
