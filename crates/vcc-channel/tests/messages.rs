//! Messages and their bytes, whole, broken and in pieces.

use std::fmt::Debug;

use vcc_channel::{
    Field, Flow, FromGuest, FromHost, LEASE_MAX_MS, MESSAGE_BYTES, Message, Stream, VERSION,
    agreed_version,
};

const KIND_AT: usize = 6;
const FLOW: std::ops::Range<usize> = 8..44;
const GRANT: std::ops::Range<usize> = 44..48;
const LEASE: std::ops::Range<usize> = 48..52;
const RESERVED: std::ops::Range<usize> = 52..64;

fn flow() -> Flow {
    let end = |text: &str| text.parse().expect("an end");
    Flow::new(end("192.0.2.1:40000"), end("[2001:db8::9]:443"))
}

fn from_host() -> [FromHost; 6] {
    [
        FromHost::Hello { version: VERSION, lease_ms: 2000 },
        FromHost::Online { lease_ms: LEASE_MAX_MS },
        FromHost::Offline,
        FromHost::FlowOnline { flow: flow(), grant_bytes: 0x0102_0304 },
        FromHost::FlowOffline { flow: flow() },
        FromHost::FlowRepaired { flow: flow() },
    ]
}

fn from_guest() -> [FromGuest; 2] {
    [FromGuest::Hello { version: VERSION }, FromGuest::Alive]
}

/// Changed at a place, the message is refused for this field.
#[track_caller]
fn refused<M: Message + Debug>(message: &M, at: usize, byte: u8, field: Field) {
    let mut bytes = message.to_bytes();
    bytes[at] = byte;
    let bad = M::from_bytes(&bytes).map_err(|bad| bad.field);
    assert_eq!(bad.expect_err("refused"), field, "{message:?}: byte {at} is {byte:#x}");
}

fn come_back<M: Message + Debug + PartialEq>(messages: &[M]) {
    for message in messages {
        assert_eq!(M::from_bytes(&message.to_bytes()).as_ref(), Ok(message));
        for at in 0..4 {
            refused(message, at, 0, Field::Magic);
        }
        for at in RESERVED {
            refused(message, at, 1, Field::Reserved);
        }
        refused(message, KIND_AT, 0, Field::Kind);
        refused(message, KIND_AT, 0x77, Field::Kind);
    }
}

#[test]
fn what_is_written_is_read() {
    come_back(&from_host());
    come_back(&from_guest());
}

/// The format is what both ends have, however they were built.
#[test]
fn the_layout_is_fixed() {
    let bytes = FromHost::FlowOnline { flow: flow(), grant_bytes: 0x0102_0304 }.to_bytes();
    let mut expected = b"vccF\x01\x00\x04\x00".to_vec();
    expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]);
    expected.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    expected.extend([0x40, 0x9c, 0xbb, 0x01, 4, 3, 2, 1]);
    expected.resize(MESSAGE_BYTES, 0);
    assert_eq!(bytes[..], expected);
    let online = FromHost::Online { lease_ms: 2000 }.to_bytes();
    assert_eq!(online[..8], *b"vccF\x01\x00\x02\x00");
    assert_eq!(online[LEASE], 2000u32.to_le_bytes());
    assert_eq!(FromGuest::Alive.to_bytes()[..8], *b"vccF\x01\x00\x02\x01");
}

#[test]
fn fields_that_a_kind_does_not_have_are_zero() {
    let [hello, online, offline, flow_online, flow_offline, repaired] = from_host();
    for message in [hello, online, offline] {
        for at in FLOW {
            refused(&message, at, 1, Field::Flow);
        }
    }
    for message in [hello, online, offline, flow_offline, repaired] {
        refused(&message, GRANT.start, 1, Field::Grant);
    }
    for message in [offline, flow_online, flow_offline, repaired] {
        refused(&message, LEASE.start, 1, Field::Lease);
    }
    for message in from_guest() {
        refused(&message, FLOW.start, 1, Field::Flow);
        refused(&message, GRANT.end - 1, 1, Field::Grant);
        refused(&message, LEASE.start, 1, Field::Lease);
    }
}

#[test]
fn a_lease_has_bounds() {
    for lease_ms in [0, LEASE_MAX_MS + 1, u32::MAX] {
        for message in
            [FromHost::Online { lease_ms }, FromHost::Hello { version: VERSION, lease_ms }]
        {
            let bad = FromHost::from_bytes(&message.to_bytes()).expect_err("no lease");
            assert_eq!((bad.field, bad.value), (Field::Lease, lease_ms.into()));
        }
    }
}

#[test]
fn each_end_refuses_its_own_messages() {
    for message in from_host() {
        let bad = FromGuest::from_bytes(&message.to_bytes()).expect_err("of the host");
        assert_eq!(bad.field, Field::Kind);
    }
    for message in from_guest() {
        let bad = FromHost::from_bytes(&message.to_bytes()).expect_err("of the guest");
        assert_eq!(bad.field, Field::Kind);
    }
}

/// A Hello may name a later version; all else is in the version that both know.
#[test]
fn both_use_the_lower_version() {
    assert_eq!([1, 2, u16::MAX].map(agreed_version), [1; 3]);
    let hello = FromHost::Hello { version: 7, lease_ms: 5 };
    assert_eq!(FromHost::from_bytes(&hello.to_bytes()), Ok(hello));
    let hello = FromGuest::Hello { version: 7 };
    assert_eq!(FromGuest::from_bytes(&hello.to_bytes()), Ok(hello));
    let [_, others @ ..] = from_host();
    for message in others {
        refused(&message, 4, 7, Field::Version);
    }
    refused(&FromGuest::Alive, 4, 7, Field::Version);
    refused(&FromGuest::Hello { version: VERSION }, 4, 0, Field::Version);
    let mut bytes = FromGuest::Alive.to_bytes();
    bytes[4] = 9;
    let text = FromGuest::from_bytes(&bytes).expect_err("refused").to_string();
    assert_eq!(text, "a message whose version is 0x9");
}

#[test]
fn pieces_of_any_size_are_put_together() {
    let messages = from_host();
    let bytes: Vec<u8> = messages.iter().flat_map(Message::to_bytes).collect();
    for size in 1..=2 * MESSAGE_BYTES + 1 {
        let (mut stream, mut read) = (Stream::<FromHost>::default(), Vec::new());
        for piece in bytes.chunks(size) {
            stream.push(piece);
            while let Some(message) = stream.take().expect("messages") {
                read.push(message);
            }
        }
        assert_eq!(read, messages, "pieces of {size}");
    }
}

#[test]
fn a_stream_stops_at_garbage_and_one_that_begins_anew_skips_it() {
    let mut stream = Stream::<FromHost>::default();
    stream.push(&FromHost::Offline.to_bytes());
    stream.push(&[7; MESSAGE_BYTES]);
    assert_eq!(stream.take(), Ok(Some(FromHost::Offline)));
    for _ in 0..2 {
        assert_eq!(stream.take().map_err(|bad| bad.field), Err(Field::Magic));
    }
    for garbage in 0..=3 * MESSAGE_BYTES {
        let mut stream = Stream::<FromHost>::default();
        stream.push(&vec![7; garbage]);
        assert_eq!(stream.find(), None);
        let bytes = FromHost::Offline.to_bytes();
        let (first, second) = bytes.split_at(20);
        stream.push(first);
        assert_eq!(stream.find(), None);
        stream.push(second);
        assert_eq!(stream.find(), Some(FromHost::Offline), "behind {garbage} bytes");
        assert_eq!(stream.take(), Ok(None));
    }
}

/// Bytes of a generator: nothing panics, and what is accepted is what would be written.
#[test]
fn random_bytes_are_refused_or_mean_one_thing() {
    let mut state = 1u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut stream, mut accepted) = (Stream::<FromHost>::default(), 0);
    for _ in 0..200_000 {
        let mut bytes = from_host()[random() as usize % 6].to_bytes();
        for _ in 0..random() % 3 {
            bytes[random() as usize % MESSAGE_BYTES] = random() as u8;
        }
        if let Ok(message) = FromHost::from_bytes(&bytes) {
            assert_eq!(message.to_bytes(), bytes, "{message:?}");
            accepted += 1;
        }
        if let Ok(message) = FromGuest::from_bytes(&bytes) {
            assert_eq!(message.to_bytes(), bytes, "{message:?}");
        }
        stream.push(&bytes[random() as usize % MESSAGE_BYTES..]);
        while stream.find().is_some() {}
    }
    assert!((50_000..200_000).contains(&accepted), "{accepted}");
}
