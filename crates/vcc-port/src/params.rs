//! The parameters of a port, as the datapath reads them.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::Params;

use crate::plain::{from_bytes, to_bytes};
use crate::{Error, Result, lock};

const ONLY_ENTRY: [u8; 4] = [0; 4];

pub(crate) fn read(map: &MapHandle) -> Result<Params> {
    map.lookup(&ONLY_ENTRY, MapFlags::ANY)
        .map_err(|e| Error::system("read the port's parameters", e))?
        .as_deref()
        .and_then(from_bytes)
        .map(Params)
        .ok_or_else(|| Error::layout("read the port's parameters"))
}

pub(crate) fn write(map: &MapHandle, params: &Params) -> Result<()> {
    map.update(&ONLY_ENTRY, to_bytes(&params.0), MapFlags::ANY)
        .map_err(|e| Error::system("write the port's parameters", e))
}

/// Changes parameters. Those of a pinned port are changed under a lock, so that the changes of
/// another process are not lost.
pub(crate) fn change(
    map: &MapHandle,
    pinned: bool,
    change: impl FnOnce(&mut Params),
) -> Result<()> {
    let _lock = pinned.then(lock::pins).transpose()?;
    let mut params = read(map)?;
    change(&mut params);
    write(map, &params)
}
