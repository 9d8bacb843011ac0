//! The bytes of the channel between a port and its guest's congestion control, from either end.

use std::fmt::Debug;

use vcc_channel::{Bad, Flow, FromGuest, FromHost, MESSAGE_BYTES, Message, Stream, VERSION};

use crate::input::Input;
use crate::steps;

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let piece_bytes = 1 + usize::from(input.u8());
    let sent = sent(&mut input);
    assert_read::<FromGuest>(&sent, piece_bytes);
    assert_read::<FromHost>(&sent, piece_bytes);
}

/// Messages, some of them with a byte changed, and arbitrary bytes.
fn sent(input: &mut Input) -> Vec<u8> {
    let mut sent = Vec::new();
    while !input.is_empty() {
        let begin = sent.len();
        let flow = Flow::new(([10, 0, 0, 1], input.u16()).into(), ([10, 0, 0, 2], 80).into());
        match input.below(9) {
            0 => sent.push(input.u8()),
            1 => sent.extend(FromGuest::Hello { version: input.u16() }.to_bytes()),
            2 => sent.extend(FromGuest::Alive.to_bytes()),
            3 => {
                let hello = FromHost::Hello { version: VERSION, lease_ms: input.u32() };
                sent.extend(hello.to_bytes());
            }
            4 => sent.extend(FromHost::Online { lease_ms: input.u32() }.to_bytes()),
            5 => sent.extend(FromHost::Offline.to_bytes()),
            6 => {
                let online = FromHost::FlowOnline { flow, grant_bytes: input.u32() };
                sent.extend(online.to_bytes());
            }
            7 => sent.extend(FromHost::FlowOffline { flow }.to_bytes()),
            _ => sent.extend(FromHost::FlowRepaired { flow }.to_bytes()),
        }
        let changed = begin + usize::from(input.u8());
        if let Some(byte) = sent.get_mut(changed) {
            *byte = input.u8();
        }
    }
    sent
}

/// What is read does not depend on the pieces that it comes in, and is what was sent.
fn assert_read<M: Message + Clone + Debug + PartialEq>(sent: &[u8], piece_bytes: usize) {
    let (whole, wrong) = read::<M>([sent]);
    assert_eq!(read::<M>(sent.chunks(piece_bytes)), (whole.clone(), wrong));
    for (message, bytes) in whole.iter().zip(sent.chunks(MESSAGE_BYTES)) {
        assert_eq!(message.to_bytes(), bytes, "{message:?}");
    }
    assert_eq!(wrong.is_none(), whole.len() == sent.len() / MESSAGE_BYTES);
    if let Some(bad) = wrong {
        assert!(!bad.to_string().is_empty());
    }
    assert_found::<M>(sent);
}

fn read<'a, M: Message>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<M>, Option<Bad>) {
    let mut stream = Stream::default();
    let mut messages = Vec::new();
    for piece in pieces {
        stream.push(piece);
        loop {
            match stream.take() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(bad) => return (messages, Some(bad)),
            }
            steps::count();
        }
    }
    (messages, None)
}

/// A reader that begins in the middle finds each message that stands behind garbage.
fn assert_found<M: Message + Debug + PartialEq>(sent: &[u8]) {
    let mut stream = Stream::<M>::default();
    stream.push(sent);
    let mut rest = sent;
    while let Some(message) = stream.find() {
        let is_it = |bytes: &[u8]| bytes == message.to_bytes();
        let at = rest.windows(MESSAGE_BYTES).position(is_it).expect("it was sent");
        rest = &rest[at + MESSAGE_BYTES..];
        steps::count();
    }
    let is_message = |bytes: &[u8]| bytes.first_chunk().is_some_and(|it| M::from_bytes(it).is_ok());
    assert!(!rest.windows(MESSAGE_BYTES).any(is_message));
}
