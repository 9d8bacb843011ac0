//! A port's counts, on each CPU.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::{Delays, sys};

use crate::plain::from_bytes;
use crate::{Counters, Error, Result};

const DOING: &str = "read what the port has counted";

pub(crate) fn counters(counts: &MapHandle, index: u32) -> Result<Counters> {
    Ok(Counters::from_counts(&read(counts, index)?))
}

/// What the round trips of the port's connections wait for, as histograms.
pub(crate) fn delays(counts: &MapHandle, index: u32) -> Result<Delays> {
    let mut sum = Delays::default();
    for on_cpu in read(counts, index)? {
        sum += &Delays(on_cpu.delays);
    }
    Ok(sum)
}

/// Frames that the fast path has handed on, from the guest and to it.
pub(crate) fn handed_on(counts: &MapHandle, index: u32) -> Result<[u64; 2]> {
    let per_cpu = read(counts, index)?;
    let of = |direction: usize| per_cpu.iter().map(|on_cpu| on_cpu.handed_on[direction]).sum();
    Ok([of(0), of(1)])
}

fn read(counts: &MapHandle, index: u32) -> Result<Vec<sys::vcc_counts>> {
    let per_cpu = counts
        .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
        .map_err(|e| Error::system(DOING, e))?
        .ok_or_else(|| Error::layout(DOING))?;
    let of_cpu = |bytes: &Vec<u8>| from_bytes(bytes).ok_or_else(|| Error::layout(DOING));
    per_cpu.iter().map(of_cpu).collect()
}
