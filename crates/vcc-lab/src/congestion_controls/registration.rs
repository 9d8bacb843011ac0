//! A congestion control registered in the kernel under a unique name.

use libbpf_rs::{ErrorKind, Link, MapCore, MapType, OpenMapMut, OpenObject};
use vcc_port::object;

use super::list::Known;
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
    pub fn new(known: &Known) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let kernel_name = names::next(known.name);
            if let Some(link) = register(known, &kernel_name)? {
                return Ok(Self { name: known.name, kernel_name, _link: link });
            }
        }
        Err(failed(known, format!("{ATTEMPTS} names for it are taken on this machine")))
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn kernel_name(&self) -> &str {
        &self.kernel_name
    }
}

/// None if the name is taken.
fn register(known: &Known, kernel_name: &str) -> Result<Option<Link>> {
    let what = format!("the congestion control `{}`", known.name);
    let mut open = object::open(known.object, &what)?;
    rename(&mut open, known, kernel_name)?;
    let mut object = object::load(open, &what)?;
    let mut map = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .ok_or_else(|| no_operations(known))?;
    match map.attach_struct_ops() {
        Ok(link) => Ok(Some(link)),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(e) => Err(failed(known, format!("{e:#}"))),
    }
}

/// struct tcp_congestion_ops of guest/tcp.h starts with the name.
fn rename(open: &mut OpenObject, known: &Known, kernel_name: &str) -> Result<()> {
    let is_operations = |map: &OpenMapMut<'_>| map.map_type() == MapType::StructOps;
    let mut map = open.maps_mut().find(is_operations).ok_or_else(|| no_operations(known))?;
    let value = map.initial_value_mut().ok_or_else(|| no_operations(known))?;
    let room = value.get_mut(..=names::MAX_BYTES).ok_or_else(|| no_operations(known))?;
    if !room.starts_with(known.name.as_bytes()) {
        return Err(no_operations(known));
    }
    room.fill(0);
    room[..kernel_name.len()].copy_from_slice(kernel_name.as_bytes());
    Ok(())
}

fn no_operations(known: &Known) -> Error {
    failed(known, format!("guest/{0}.bpf.c has no struct tcp_congestion_ops `{0}`", known.name))
}

fn failed(known: &Known, why: String) -> Error {
    Error::Register { name: known.name.into(), why }
}
