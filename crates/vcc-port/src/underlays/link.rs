//! Links the datapath with underlays: a function of theirs takes the place of a slot's weak one.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};

use libbpf_rs::Linker;
use vcc_engine::sys;

use super::Underlays;
use crate::{Error, Result, libbpf};

/// The object that is loaded.
pub(crate) struct Linked {
    /// None: the datapath as it was compiled.
    pub object: Option<Vec<u8>>,
    pub slots: sys::vcc_slots,
}

impl Linked {
    pub(crate) fn link(datapath: &[u8], underlays: &Underlays) -> Result<Self> {
        let slots = underlays.slots();
        if underlays.is_empty() {
            return Ok(Self { object: None, slots });
        }
        let names: Vec<&str> = underlays.iter().map(|(_, object)| object.name()).collect();
        let doing = format!("link the datapath with the underlay {}", names.join(", "));
        let failed = |e: io::Error| Error::system(doing.clone(), e);
        // In memory: a daemon may have no directory in which it may write.
        let mut linked = memory().map_err(failed)?;
        let path = format!("/proc/self/fd/{}", linked.as_raw_fd());
        let link = || -> libbpf_rs::Result<()> {
            let mut linker = Linker::new(&path)?;
            linker.add_buf(datapath)?;
            for (slot, object) in underlays.iter() {
                linker.add_buf(&object.for_slot(slot))?;
            }
            linker.link()
        };
        let (result, output) = libbpf::listen(link);
        result.map_err(|e| Error::System {
            doing: doing.clone(),
            why: format!("{e:#} ({})", output.lines().last().unwrap_or_default()),
        })?;
        let mut object = Vec::new();
        linked.rewind().and_then(|()| linked.read_to_end(&mut object)).map_err(failed)?;
        Ok(Self { object: Some(object), slots })
    }
}

/// An empty file that ends with its descriptor.
fn memory() -> io::Result<File> {
    // SAFETY: a name that ends in NUL; the descriptor is checked, and nobody else owns it.
    unsafe {
        match libc::memfd_create(c"vcc-linked".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}
