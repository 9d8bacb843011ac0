//! The tag of a flow, which is its key in the kernel's map: mirrors `datapath/tag.h`.

use std::fs::File;
use std::io::Read;

use vcc_engine::sys;

use crate::plain::to_bytes;
use crate::{Error, Result};

/// The lowest bits of a tag are the port's index.
const PORT_MASK: u64 = sys::PORTS_MAX as u64 - 1;

pub(crate) type Secrets = [u64; sys::TAG_SECRETS as usize];

/// A host's secrets, without which nobody can choose two connections with one tag.
pub(crate) fn secrets() -> Result<Secrets> {
    let mut bytes = [[0; 8]; sys::TAG_SECRETS as usize];
    let read = File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(bytes.as_flattened_mut()));
    read.map_err(|e| Error::system("read random numbers from /dev/urandom", e))?;
    Ok(bytes.map(u64::from_ne_bytes))
}

pub(crate) fn tag(secrets: &Secrets, key: &sys::vcc_key) -> u64 {
    let (words, _) = to_bytes(key).as_chunks::<4>();
    let mut sums = words
        .iter()
        .zip(secrets)
        .map(|(word, secret)| u64::from(u32::from_ne_bytes(*word)).wrapping_add(*secret));
    let mut hash = 0u64;
    while let (Some(one), Some(other)) = (sums.next(), sums.next()) {
        hash = hash.wrapping_add(one.wrapping_mul(other));
    }
    hash & !PORT_MASK | u64::from(key.port)
}
