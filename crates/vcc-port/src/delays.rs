//! What the round trips of a port's connections wait for, as histograms.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::Delays;

use crate::plain::from_bytes;
use crate::{Error, Result};

/// Summed over all CPUs.
pub(crate) fn read(map: &MapHandle) -> Result<Delays> {
    const DOING: &str = "read the port's histograms of delays";
    let per_cpu = map
        .lookup_percpu(&[0; 4], MapFlags::ANY)
        .map_err(|e| Error::system(DOING, e))?
        .ok_or_else(|| Error::layout(DOING))?;
    let mut sum = Delays::default();
    for value in per_cpu {
        sum += &Delays(from_bytes(&value).ok_or_else(|| Error::layout(DOING))?);
    }
    Ok(sum)
}
