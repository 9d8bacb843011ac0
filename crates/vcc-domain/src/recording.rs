//! Records flows ACK by ACK for another process, which reads on while the port works.

use vcc_engine::{FlowState, sys};

use crate::bytes::{self, BadBytes};
use vcc_engine::FlowKey;

/// ACKs that wait for a reader, which comes every few milliseconds: more than a million per second.
const ACKS_MAX: usize = 1 << 13;

/// A flow right after an ACK was passed to the guest.
#[derive(Clone, Copy)]
pub struct RecordedAck {
    pub at_us: u64,
    pub key: FlowKey,
    pub state: FlowState,
}

/// The part that a reader takes at a time.
#[derive(Clone, Default)]
pub struct Recorded {
    pub acks: Vec<RecordedAck>,
    /// The number of ACKs for which there was no room, since the recording began.
    pub lost: u64,
}

#[derive(Clone)]
pub(crate) struct Recording {
    /// None: all.
    pub(crate) flow: Option<FlowKey>,
    pub(crate) recorded: Recorded,
}

impl Recording {
    /// Returns false if there is no room.
    pub(crate) fn note(&mut self, at_us: u64, key: &FlowKey, state: &FlowState) -> bool {
        if self.flow.is_some_and(|flow| flow != *key) {
            return true;
        }
        let Recorded { acks, lost } = &mut self.recorded;
        let has_room = acks.len() < ACKS_MAX;
        match has_room {
            true => acks.push(RecordedAck { at_us, key: *key, state: *state }),
            false => *lost += 1,
        }
        has_room
    }
}

impl Recorded {
    const HEAD_BYTES: usize = size_of::<u32>() + size_of::<u64>();
    const ACK_BYTES: usize =
        size_of::<u64>() + size_of::<sys::vcc_key>() + size_of::<sys::vcc_flow>();

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::HEAD_BYTES + self.acks.len() * Self::ACK_BYTES);
        bytes::write(&(self.acks.len() as u32), &mut bytes);
        bytes::write(&self.lost, &mut bytes);
        for RecordedAck { at_us, key, state } in &self.acks {
            bytes::write(at_us, &mut bytes);
            bytes::write(key.as_raw(), &mut bytes);
            bytes::write(&state.0, &mut bytes);
        }
        bytes
    }

    /// Takes the first of those that were written one after the other. None if it is not all there
    /// yet.
    pub fn take_from(bytes: &mut Vec<u8>) -> Option<Self> {
        let rest = &mut &bytes[..];
        let recorded = Self::read(rest).ok()?;
        let left = rest.len();
        bytes.drain(..bytes.len() - left);
        Some(recorded)
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, BadBytes> {
        let count = bytes::read::<u32>(bytes)? as usize;
        let lost = bytes::read(bytes)?;
        if bytes.len() / Self::ACK_BYTES < count {
            return Err(BadBytes);
        }
        let mut ack = || {
            // In the order in which they are written.
            Ok(RecordedAck {
                at_us: bytes::read(bytes)?,
                key: FlowKey::from_raw(bytes::read(bytes)?),
                state: FlowState(bytes::read(bytes)?),
            })
        };
        Ok(Self { acks: (0..count).map(|_| ack()).collect::<Result<_, _>>()?, lost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Talk;

    fn acked(talk: &mut Talk) {
        talk.data_from_guest();
        talk.wait(1_000_000);
        let ack = talk.segment(false);
        talk.pass(false, &ack);
    }

    fn taken(talk: &mut Talk) -> Recorded {
        let mut taken = Recorded::default();
        talk.port.take_recorded(&mut taken);
        taken
    }

    #[test]
    fn acks_of_the_flow_are_recorded_until_the_end() {
        let mut talk = Talk::v4();
        talk.open(&[]);
        acked(&mut talk);
        assert!(talk.port.begin_recording(Some(talk.key())));
        assert!(!talk.port.begin_recording(None), "one at a time");
        acked(&mut talk);
        acked(&mut talk);
        let recorded = taken(&mut talk);
        let [_, last] = &recorded.acks[..] else { panic!("two ACKs") };
        assert_eq!((last.key, last.state.0), (talk.key(), talk.flow().0));
        assert_eq!((last.at_us, recorded.lost), (talk.now_ns / 1000, 0));
        assert!(taken(&mut talk).acks.is_empty());
        talk.port.end_recording();
        acked(&mut talk);
        assert!(talk.port.begin_recording(Some(Talk::v6().key())));
        acked(&mut talk);
        assert!(taken(&mut talk).acks.is_empty(), "of another flow");
    }

    #[test]
    fn more_than_the_reader_takes_is_counted() {
        let mut talk = Talk::v4();
        talk.open(&[]);
        acked(&mut talk);
        talk.port.begin_recording(None);
        let ack = talk.segment(false);
        (0..ACKS_MAX + 3).for_each(|_| drop(talk.pass(false, &ack)));
        let recorded = taken(&mut talk);
        assert_eq!((recorded.acks.len(), recorded.lost), (ACKS_MAX, 3));
        assert_eq!(talk.port.counters().get(sys::COUNT_TRACE_LOST), 3);
    }

    #[test]
    fn what_is_written_is_read_once_it_is_all_there() {
        let mut talk = Talk::v4();
        talk.open(&[]);
        talk.port.begin_recording(None);
        (0..3).for_each(|_| acked(&mut talk));
        let recorded = taken(&mut talk);
        let whole = recorded.to_bytes();
        for end in 0..whole.len() {
            let mut part = whole[..end].to_vec();
            assert!(Recorded::take_from(&mut part).is_none() && part.len() == end, "{end} bytes");
        }
        let mut two = [&whole[..], &Recorded { acks: Vec::new(), lost: 7 }.to_bytes()].concat();
        let first = Recorded::take_from(&mut two).expect("the first");
        let read = first.acks.iter().map(|ack| (ack.at_us, ack.key, ack.state.0));
        assert!(read.eq(recorded.acks.iter().map(|ack| (ack.at_us, ack.key, ack.state.0))));
        assert_eq!(Recorded::take_from(&mut two).map(|second| second.lost), Some(7));
        assert!(two.is_empty());
    }
}
