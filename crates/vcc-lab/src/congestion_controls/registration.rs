//! A congestion control registered in the kernel under a unique name.

use libbpf_rs::Link;
use vcc_guest::CongestionControl;

use super::{Error, Result, names};

/// More than a handful of collisions indicate another problem.
const ATTEMPTS: usize = 64;

pub(crate) struct Registration {
    name: &'static str,
    kernel_name: String,
    /// Registered through its descriptor only, so it ends with the process in any case.
    _link: Link,
}

impl Registration {
    pub fn new(control: &'static CongestionControl) -> Result<Self> {
        let name = control.name();
        for _ in 0..ATTEMPTS {
            let kernel_name = names::next(name);
            if let Some(link) = control.register(&kernel_name)? {
                return Ok(Self { name, kernel_name, _link: link });
            }
        }
        Err(Error::NamesTaken { name: name.into(), attempts: ATTEMPTS })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn kernel_name(&self) -> &str {
        &self.kernel_name
    }
}
