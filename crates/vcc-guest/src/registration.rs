//! Congestion controls in the kernel's TCP.

use std::path::{Path, PathBuf};

use libbpf_rs::{ErrorKind, Link, MapCore, MapMut, MapType, Object, OpenMapMut, OpenObject};
use vcc_port::object;

use crate::list::CongestionControl;
use crate::{Error, Result, kernel};

/// TCP_CA_NAME_MAX without the NUL.
const NAME_BYTES_MAX: usize = 15;

/// The name of the section of struct_ops that are registered by a link.
const LINKED: &[u8] = b".struct_ops.link\0";

impl CongestionControl {
    /// Registers it under a name while the link lives. None if the name is taken.
    pub fn register(&self, kernel_name: &str) -> Result<Option<Link>> {
        let mut object = self.load(self.object_of_kernel(), kernel_name)?;
        let mut map = operations(&mut object).ok_or_else(|| self.has_no_operations())?;
        self.attach(&mut map)
    }

    /// Registers it under a name by a link that is pinned, as are these of its maps, by their names. False if
    /// the name is taken.
    pub(crate) fn register_pinned(
        &self,
        kernel_name: &str,
        pin: &Path,
        maps: &[(&str, PathBuf)],
    ) -> Result<bool> {
        let mut object = self.load(self.object_of_kernel(), kernel_name)?;
        self.pin_maps(&mut object, maps)?;
        let mut map = operations(&mut object).ok_or_else(|| self.has_no_operations())?;
        let Some(mut link) = self.attach(&mut map)? else { return Ok(false) };
        link.pin(pin)
            .map_err(|e| self.failed(format!("cannot pin it at {}: {e:#}", pin.display())))?;
        Ok(true)
    }

    /// For kernels before 6.4, which have no such links: registers it under a name by its map, which is
    /// pinned, as are these others. False if the name is taken.
    pub(crate) fn register_map_pinned(
        &self,
        kernel_name: &str,
        pin: &Path,
        maps: &[(&str, PathBuf)],
    ) -> Result<bool> {
        let mut object = self.load(&without_link(self.object_of_kernel()), kernel_name)?;
        self.pin_maps(&mut object, maps)?;
        let mut map = operations(&mut object).ok_or_else(|| self.has_no_operations())?;
        // First, since it stays registered beyond this process.
        map.pin(pin)
            .map_err(|e| self.failed(format!("cannot pin it at {}: {e:#}", pin.display())))?;
        let attached = self.attach(&mut map);
        if !matches!(attached, Ok(Some(_))) {
            // The first error is reported; the next registration removes what is left.
            let _ = map.unpin(pin);
        }
        let Some(mut link) = attached? else { return Ok(false) };
        // Otherwise its end would unregister it.
        link.disconnect();
        Ok(true)
    }

    /// The BPF object for kernels and loaders of before Linux 6.4 (libbpf 1.2), which register struct_ops
    /// without a link.
    pub fn object_without_link(&self) -> Vec<u8> {
        without_link(self.object(false))
    }

    fn object_of_kernel(&self) -> &'static [u8] {
        // What else is missing shows when it is loaded.
        let has_tx_start = self.distinguishes_tx_start()
            && kernel::struct_ops(Path::new(kernel::BTF)).is_ok_and(|it| it.has_tx_start);
        self.object(has_tx_start)
    }

    fn load(&self, bytes: &[u8], kernel_name: &str) -> Result<Object> {
        let what = format!("the congestion control `{}`", self.name());
        let mut open = object::open(bytes, &what)?;
        self.rename(&mut open, kernel_name)?;
        Ok(object::load(open, &what)?)
    }

    fn pin_maps(&self, object: &mut Object, maps: &[(&str, PathBuf)]) -> Result<()> {
        for (name, path) in maps {
            let map = object.maps_mut().find(|map| map.name() == *name);
            let mut map =
                map.ok_or_else(|| self.failed(format!("its object has no map {name}")))?;
            map.pin(path).map_err(|e| {
                self.failed(format!("cannot pin its map at {}: {e:#}", path.display()))
            })?;
        }
        Ok(())
    }

    fn attach(&self, map: &mut MapMut<'_>) -> Result<Option<Link>> {
        match map.attach_struct_ops() {
            Ok(link) => Ok(Some(link)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(e) => Err(self.failed(format!("{e:#}"))),
        }
    }

    /// struct tcp_congestion_ops of guest/tcp.h starts with the name.
    fn rename(&self, open: &mut OpenObject, kernel_name: &str) -> Result<()> {
        let is_operations = |map: &OpenMapMut<'_>| map.map_type() == MapType::StructOps;
        let map = open.maps_mut().find(is_operations);
        let mut map = map.ok_or_else(|| self.has_no_operations())?;
        let value = map.initial_value_mut().ok_or_else(|| self.has_no_operations())?;
        let room = value.get_mut(..=NAME_BYTES_MAX).ok_or_else(|| self.has_no_operations())?;
        if !room.starts_with(self.name().as_bytes()) || kernel_name.len() > NAME_BYTES_MAX {
            return Err(self.has_no_operations());
        }
        room.fill(0);
        room[..kernel_name.len()].copy_from_slice(kernel_name.as_bytes());
        Ok(())
    }

    fn has_no_operations(&self) -> Error {
        let name = self.name();
        self.failed(format!("guest/{name}.bpf.c has no struct tcp_congestion_ops `{name}`"))
    }

    fn failed(&self, why: String) -> Error {
        Error::Register { name: self.name().into(), why }
    }
}

fn operations(object: &mut Object) -> Option<MapMut<'_>> {
    object.maps_mut().find(|map| map.map_type() == MapType::StructOps)
}

/// The same object with its struct_ops in the section `.struct_ops`. The name is all that differs.
fn without_link(object: &[u8]) -> Vec<u8> {
    let mut object = object.to_vec();
    for at in 0..object.len().saturating_sub(LINKED.len()) {
        if object[at..].starts_with(LINKED) {
            // The name ends before `.link`, in the tables of ELF and BTF.
            object[at + ".struct_ops".len()] = 0;
        }
    }
    object
}
