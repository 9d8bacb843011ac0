//! The parameters of a port, as the datapath reads them.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::Params;

use crate::plain::{from_bytes, params_bytes};
use crate::{Error, Result};

const ONLY_ENTRY: [u8; 4] = [0; 4];

pub(crate) fn read(map: &MapHandle) -> Result<Params> {
    map.lookup(&ONLY_ENTRY, MapFlags::ANY)
        .map_err(|e| Error::system("read the port's parameters", e))?
        .as_deref()
        .and_then(from_bytes)
        .map(Params)
        .ok_or(Error::OtherVersion)
}

pub(crate) fn write(map: &MapHandle, params: &Params) -> Result<()> {
    map.update(&ONLY_ENTRY, params_bytes(&params.0), MapFlags::ANY)
        .map_err(|e| Error::system("write the port's parameters", e))
}
