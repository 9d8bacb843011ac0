//! What is pinned in the BPF file system, where it outlives the command.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_net::netlink::bytes;
use vcc_port::open_own_directory;

use crate::{Error, Result};

#[derive(Debug)]
pub(crate) struct Pins {
    /// Of what is pinned and nothing else.
    pub directory: PathBuf,
    pub name: String,
}

/// Whether something is pinned, as far as this user may look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Pin(PathBuf),
    Hidden,
}

impl Pins {
    /// Of a link, which registers the congestion control while it exists.
    pub fn link(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Of a map, for kernels without such links.
    pub fn map(&self) -> PathBuf {
        self.directory.join(format!("{}_map", self.name))
    }

    /// Of the maps of a congestion control that needs a lease.
    pub fn leases(&self) -> PathBuf {
        self.directory.join(format!("{}_leases", self.name))
    }

    pub fn flows(&self) -> PathBuf {
        self.directory.join(format!("{}_flows", self.name))
    }

    /// Is what is pinned in need of a lease?
    pub fn needs_lease(&self) -> bool {
        self.leases().exists()
    }

    pub fn find(&self) -> Result<Found> {
        for path in [self.link(), self.map()] {
            match fs::symlink_metadata(&path) {
                Ok(_) => return Ok(Found::Pin(path)),
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) if e.kind() == ErrorKind::PermissionDenied => return Ok(Found::Hidden),
                Err(e) => return Err(Error::file("look at", path, e)),
            }
        }
        Ok(Found::Nothing)
    }

    /// The directory, in a BPF file system.
    pub fn create_directory(&self) -> Result<()> {
        vcc_port::bpffs::require()?;
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::file("create", &self.directory, e));
            }
            _ => {}
        }
        open_own_directory(&self.directory).map_err(|e| Error::file("use", &self.directory, e))?;
        Ok(())
    }

    /// Unregisters what is pinned, as far as the kernel does so at once.
    pub fn remove(&self) -> Result<()> {
        remove_if_there(&self.link()).map_err(|e| Error::file("remove", self.link(), e))?;
        let map = self.map();
        if fs::symlink_metadata(&map).is_ok() {
            unregister(&map).map_err(|e| Error::file("unregister", &map, e))?;
            remove_if_there(&map).map_err(|e| Error::file("remove", &map, e))?;
        }
        for path in [self.leases(), self.flows()] {
            remove_if_there(&path).map_err(|e| Error::file("remove", path, e))?;
        }
        match fs::remove_dir(&self.directory) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::file("remove", &self.directory, e))
            }
            _ => Ok(()),
        }
    }
}

/// A struct_ops map stays registered until its only element is deleted.
fn unregister(map: &Path) -> io::Result<()> {
    const KEY: [u8; 4] = 0u32.to_ne_bytes();
    /// BPF_STRUCT_OPS_STATE_INUSE.
    const IN_USE: u32 = 1;
    let map = MapHandle::from_pinned_path(map).map_err(io::Error::other)?;
    let value = map.lookup(&KEY, MapFlags::ANY).map_err(io::Error::other)?.unwrap_or_default();
    // Behind a reference count. It is another if the registration or the removal was interrupted.
    if bytes(&value, 4).map(u32::from_ne_bytes) != Some(IN_USE) {
        return Ok(());
    }
    map.delete(&KEY).map_err(io::Error::other)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
