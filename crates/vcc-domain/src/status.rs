//! What a port knows, as bytes for another process on this machine, which reads ports like those in
//! the kernel.

use vcc_engine::{FlowState, Params, sys};

use crate::key::FlowKey;
use crate::port::Port;

/// A port, as of the time when it was asked.
#[derive(Clone)]
pub struct Status {
    pub params: Params,
    pub max_flows: u32,
    /// Bytes that wait in its buffer.
    pub held_bytes: u32,
    /// By reason, in the order of `enum vcc_count`.
    pub counts: Vec<u64>,
    pub flows: Vec<(FlowKey, FlowState)>,
}

/// The bytes are of another version, or cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadStatus;

/// First: what must be equal in both processes.
const HEAD: [u32; 6] = [
    u32::from_le_bytes(*b"vcc\0"),
    sys::LAYOUT_VERSION,
    size_of::<sys::vcc_params>() as u32,
    size_of::<sys::vcc_key>() as u32,
    size_of::<sys::vcc_flow>() as u32,
    sys::COUNT_MAX,
];

/// # Safety
/// A type without padding, of which any bytes are a value.
unsafe trait Plain: Copy + Default {}

// SAFETY: structs of integers, whose header refuses padding.
unsafe impl Plain for sys::vcc_params {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_key {}
// SAFETY: as above.
unsafe impl Plain for sys::vcc_flow {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}

fn write<T: Plain>(value: &T, bytes: &mut Vec<u8>) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: the bytes of a plain value, all of which are initialised.
    bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start, size_of::<T>()) });
}

fn read<T: Plain>(bytes: &mut &[u8]) -> Result<T, BadStatus> {
    let (value, rest) = bytes.split_at_checked(size_of::<T>()).ok_or(BadStatus)?;
    *bytes = rest;
    // SAFETY: as many bytes as the type has, of which any are a value, at any address.
    Ok(unsafe { value.as_ptr().cast::<T>().read_unaligned() })
}

impl Status {
    pub fn of(port: &Port) -> Self {
        Status {
            params: *port.params(),
            max_flows: port.max_flows() as u32,
            held_bytes: port.held_bytes(),
            counts: port.counters().iter().map(|(_, count)| count).collect(),
            flows: port.flows().map(|(key, flow)| (*key, *flow)).collect(),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        HEAD.iter().for_each(|word| write(word, &mut bytes));
        write(&self.params.0, &mut bytes);
        write(&self.max_flows, &mut bytes);
        write(&self.held_bytes, &mut bytes);
        self.counts.iter().for_each(|count| write(count, &mut bytes));
        write(&(self.flows.len() as u32), &mut bytes);
        for (key, flow) in &self.flows {
            write(key.as_raw(), &mut bytes);
            write(&flow.0, &mut bytes);
        }
        bytes
    }

    /// # Errors
    /// Another version of vcc wrote them, or they are not all there.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, BadStatus> {
        let bytes = &mut bytes;
        for word in HEAD {
            if read::<u32>(bytes)? != word {
                return Err(BadStatus);
            }
        }
        let params = Params(read(bytes)?);
        let (max_flows, held_bytes) = (read(bytes)?, read(bytes)?);
        let counts = (0..sys::COUNT_MAX).map(|_| read(bytes)).collect::<Result<_, _>>()?;
        let flows = (0..read::<u32>(bytes)?)
            .map(|_| Ok((FlowKey::from_raw(read(bytes)?), FlowState(read(bytes)?))))
            .collect::<Result<_, _>>()?;
        if !bytes.is_empty() {
            return Err(BadStatus);
        }
        Ok(Status { params, max_flows, held_bytes, counts, flows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Talk;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut talk = Talk::v4();
        talk.open(&[]);
        talk.data_from_guest();
        let status = Status::of(&talk.port);
        let bytes = status.to_bytes();
        let read = Status::from_bytes(&bytes).expect("a status");
        assert_eq!((read.params, read.max_flows, read.held_bytes), (status.params, 16, 0));
        assert_eq!(read.counts, status.counts);
        let [(key, flow)] = &read.flows[..] else { panic!("one flow") };
        assert_eq!((*key, flow.0), (talk.key(), talk.flow().0));
        for end in 0..bytes.len() {
            assert_eq!(Status::from_bytes(&bytes[..end]).err(), Some(BadStatus), "{end} bytes");
        }
        assert_eq!(Status::from_bytes(&[&bytes[..], &[0]].concat()).err(), Some(BadStatus));
        for at in 0..size_of_val(&HEAD) {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(Status::from_bytes(&other).err(), Some(BadStatus), "byte {at}");
        }
    }
}
