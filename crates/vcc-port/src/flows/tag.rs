//! The tag of a flow, which is its key in the kernel's map: mirrors `datapath/flow_tag.h`.

use std::fs::File;
use std::io::Read;

use vcc_engine::sys;

use crate::plain::{from_bytes, to_bytes};
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
    let words = to_bytes(key).chunks_exact(4).filter_map(from_bytes::<u32>);
    let sums: Vec<u64> =
        words.zip(secrets).map(|(word, secret)| secret.wrapping_add(word.into())).collect();
    let products = sums.chunks_exact(2).map(|pair| pair[0].wrapping_mul(pair[1]));
    products.fold(0, u64::wrapping_add) & !PORT_MASK | u64::from(key.port)
}
